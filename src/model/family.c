/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of families, and finding the row of a checkpoint.
 */
#include "model/family.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static const octavo_family families[] = {
    {.architecture = "llama",
     .gguf = "llama",
     .model_type = "llama",
     .configure = octavo_family_llama_or_mistral},
    {.architecture = "llama4",
     .gguf = "llama4",
     .model_type = "llama4_text",
     .configure = octavo_family_llama4,
     .defaults = {.norm_eps = 1e-5},
     .names = octavo_family_llama4_names},
    {.architecture = "mistral",
     .written_as = "llama",
     .model_type = "mistral",
     .configure = octavo_family_mistral},
    {.architecture = "ministral",
     .written_as = "llama",
     .model_type = "ministral",
     .configure = octavo_family_mistral},
    {.architecture = "ministral3",
     .gguf = "mistral3",
     .model_type = "ministral3",
     .configure = octavo_family_ministral3,
     .defaults = {.head_dim = 128, .norm_eps = 1e-5}},
    {.architecture = "mixtral",
     .written_as = "llama",
     .model_type = "mixtral",
     .configure = octavo_family_mixtral,
     .defaults = {.norm_eps = 1e-5},
     .names = octavo_family_mixtral_names},
    {.architecture = "qwen2",
     .gguf = "qwen2",
     .model_type = "qwen2",
     .configure = octavo_family_qwen2},
    {.architecture = "qwen3",
     .gguf = "qwen3",
     .model_type = "qwen3",
     .configure = octavo_family_qwen3,
     .defaults = {.head_dim = 128}},
    {.architecture = "qwen2_moe",
     .gguf = "qwen2moe",
     .model_type = "qwen2_moe",
     .configure = octavo_family_qwen2_moe},
    {.architecture = "qwen3_moe",
     .gguf = "qwen3moe",
     .model_type = "qwen3_moe",
     .configure = octavo_family_qwen3_moe},
    {.architecture = "gemma",
     .gguf = "gemma",
     .model_type = "gemma",
     .configure = octavo_family_gemma,
     .defaults = {.head_dim = 256, .context = 8192, .is_tied = true}},
    {.architecture = "gemma2",
     .gguf = "gemma2",
     .model_type = "gemma2",
     .configure = octavo_family_gemma2,
     .defaults = {.n_heads = 8,
                  .n_kv_heads = 4,
                  .head_dim = 256,
                  .vocab = 256000,
                  .context = 8192,
                  .is_tied = true},
     .names = octavo_family_gemma3_names},
    {.architecture = "gemma3",
     .gguf = "gemma3",
     .model_type = "gemma3_text",
     .configure = octavo_family_gemma3,
     .defaults = {.n_heads = 8,
                  .n_kv_heads = 4,
                  .head_dim = 256,
                  .vocab = 262208,
                  .context = 131072,
                  .is_tied = true},
     .names = octavo_family_gemma3_names},
    {.architecture = "olmo2",
     .gguf = "olmo2",
     .model_type = "olmo2",
     .configure = octavo_family_olmo2,
     .defaults = {.norm_eps = 1e-5}},
    {.architecture = "olmo3",
     .written_as = "olmo2",
     .model_type = "olmo3",
     .configure = octavo_family_olmo3,
     .defaults = {.norm_eps = 1e-5}},
    {.architecture = "granite",
     .gguf = "granite",
     .model_type = "granite",
     .configure = octavo_family_granite},
    {.architecture = "smollm3",
     .gguf = "smollm3",
     .model_type = "smollm3",
     .configure = octavo_family_smollm3,
     .defaults = {.is_tied = true}},
    {.architecture = "phi3",
     .gguf = "phi3",
     .model_type = "phi3",
     .configure = octavo_family_phi3,
     .defaults = {.norm_eps = 1e-5},
     .rotated = "partial_rotary_factor"},
    {.architecture = "cohere2",
     .gguf = "cohere2",
     .model_type = "cohere2",
     .configure = octavo_family_cohere2,
     .defaults = {.norm_eps = 1e-5, .is_tied = true},
     .norm_eps = {"attention.layer_norm_epsilon", "layer_norm_eps"}},
    {.architecture = "glm4",
     .gguf = "glm4",
     .model_type = "glm4",
     .configure = octavo_family_glm4,
     .defaults = {.head_dim = 128, .norm_eps = 1.5625e-7, .rotated = 0.5},
     .names = octavo_family_glm4_names,
     .rotated = "partial_rotary_factor"},
    {.architecture = "nemotron",
     .gguf = "nemotron",
     .model_type = "nemotron",
     .configure = octavo_family_nemotron,
     .defaults = {.norm_eps = 1e-5, .rotated = 0.5},
     .norm_eps = {"attention.layer_norm_epsilon", "norm_eps"},
     .rotated = "partial_rotary_factor"},
    {.architecture = "starcoder2",
     .gguf = "starcoder2",
     .model_type = "starcoder2",
     .configure = octavo_family_starcoder2,
     .defaults = {.norm_eps = 1e-5, .is_tied = true},
     .names = octavo_family_starcoder2_names,
     .norm_eps = {"attention.layer_norm_epsilon", "norm_epsilon"}},
    {.architecture = "gpt_oss",
     .gguf = "gpt-oss",
     .model_type = "gpt_oss",
     .configure = octavo_family_gpt_oss,
     .defaults = {.head_dim = 64, .norm_eps = 1e-5},
     .names = octavo_family_gpt_oss_names,
     .gguf_names = octavo_family_gpt_oss_gguf_names,
     .quant_method = "mxfp4"},
    {.architecture = "deepseek_v2",
     .gguf = "deepseek2",
     .model_type = "deepseek_v2",
     .configure = octavo_family_deepseek_v2,
     .names = octavo_family_deepseek_names,
     .has_own_heads = true},
    {.architecture = "deepseek_v3",
     .written_as = "deepseek2",
     .model_type = "deepseek_v3",
     .configure = octavo_family_deepseek_v3,
     .names = octavo_family_deepseek_names,
     .has_own_heads = true},
    {.architecture = "kimi_k2",
     .model_type = "kimi_k2",
     .configure = octavo_family_deepseek_v3,
     .names = octavo_family_deepseek_names,
     .has_own_heads = true},
    {.architecture = "gpt_neox",
     .gguf = "gptneox",
     .model_type = "gpt_neox",
     .configure = octavo_family_gpt_neox,
     .defaults = {.norm_eps = 1e-5, .rotated = 0.25},
     .names = octavo_family_gpt_neox_names,
     .norm_eps = {"attention.layer_norm_epsilon", "layer_norm_eps"},
     .rotated = "rotary_pct"},
    {.architecture = "bert",
     .gguf = "bert",
     .model_type = "bert",
     .configure = octavo_family_bert,
     .defaults = {.norm_eps = 1e-12},
     .names = octavo_family_bert_names,
     .norm_eps = {"attention.layer_norm_epsilon", "layer_norm_eps"},
     .is_encoder = true},
    {.architecture = "roberta",
     .model_type = "roberta",
     .configure = octavo_family_roberta,
     .defaults = {.norm_eps = 1e-12},
     .names = octavo_family_bert_names,
     .norm_eps = {"attention.layer_norm_epsilon", "layer_norm_eps"},
     .is_encoder = true},
    {.architecture = "xlm_roberta",
     .model_type = "xlm-roberta",
     .configure = octavo_family_roberta,
     .defaults = {.norm_eps = 1e-12},
     .names = octavo_family_bert_names,
     .norm_eps = {"attention.layer_norm_epsilon", "layer_norm_eps"},
     .is_encoder = true},
    {.architecture = "camembert",
     .model_type = "camembert",
     .configure = octavo_family_roberta,
     .defaults = {.norm_eps = 1e-12},
     .names = octavo_family_bert_names,
     .norm_eps = {"attention.layer_norm_epsilon", "layer_norm_eps"},
     .is_encoder = true},
    {.architecture = "distilbert",
     .model_type = "distilbert",
     .configure = octavo_family_bert,
     .defaults = {.norm_eps = 1e-12},
     .names = octavo_family_distilbert_names,
     .norm_eps = {"attention.layer_norm_epsilon", "layer_norm_eps"},
     .keys = octavo_family_distilbert_keys,
     .is_encoder = true},
    {.architecture = "modernbert",
     .gguf = "modern-bert",
     .model_type = "modernbert",
     .configure = octavo_family_modernbert,
     .defaults = {.norm_eps = 1e-5},
     .names = octavo_family_modernbert_names,
     .norm_eps = {"attention.layer_norm_epsilon", "norm_eps"},
     .is_encoder = true},
    {.architecture = "eurobert",
     .model_type = "eurobert",
     .configure = octavo_family_llama,
     .defaults = {.norm_eps = 1e-5},
     .is_encoder = true},
    {.architecture = "nomic_bert",
     .gguf = "nomic-bert",
     .model_type = "nomic_bert",
     .configure = octavo_family_nomic_bert,
     .defaults = {.norm_eps = 1e-12},
     .names = octavo_family_nomic_bert_names,
     .norm_eps = {"attention.layer_norm_epsilon", "layer_norm_eps"},
     .keys = octavo_family_nomic_bert_keys,
     .rotated = "rotary_emb_fraction",
     .is_encoder = true},
};

const json_t *octavo_family_text_config(const octavo_checkpoint *checkpoint) {
    const json_t *text = json_object_get(checkpoint->config, "text_config");
    return json_is_object(text) ? text : checkpoint->config;
}

/* What the checkpoint calls itself. */
static octavo_status read_name(const octavo_checkpoint *checkpoint, octavo_gguf_string *name,
                               octavo_error *error) {
    if (checkpoint->gguf)
        return octavo_gguf_get_string(checkpoint->gguf, "general.architecture", name, error);
    octavo_config_reader reader = {.checkpoint = checkpoint,
                                   .object = octavo_family_text_config(checkpoint),
                                   .section = "",
                                   .error = error};
    const octavo_key key = {NULL, "model_type"};
    octavo_status status = octavo_config_text(&reader, key, NULL, name);
    if (status || name->data) return status;
    return octavo_config_fail(&reader, key, OCTAVO_ERROR_NOT_FOUND,
                              "the key is missing, so the architecture is not known; the file is "
                              "damaged or of no language model");
}

const char *octavo_family_gguf_of(const char *architecture) {
    for (size_t i = 0; i < OCTAVO_COUNT(families); i++)
        if (strcmp(families[i].architecture, architecture) == 0)
            return families[i].gguf ? families[i].gguf : families[i].written_as;
    return NULL;
}

const octavo_weight_name *octavo_family_gguf_names(const char *gguf) {
    for (size_t i = 0; i < OCTAVO_COUNT(families); i++)
        if (families[i].gguf && strcmp(families[i].gguf, gguf) == 0) return families[i].gguf_names;
    return NULL;
}

octavo_status octavo_family_find(const octavo_checkpoint *checkpoint, const octavo_family **family,
                                 octavo_error *error) {
    const bool is_gguf = checkpoint->gguf != NULL;
    octavo_gguf_string name;
    octavo_status status = read_name(checkpoint, &name, error);
    if (status) return status;
    for (size_t i = 0; i < OCTAVO_COUNT(families); i++) {
        const char *known = is_gguf ? families[i].gguf : families[i].model_type;
        if (!known || !octavo_text_is(name, known)) continue;
        *family = &families[i];
        return OCTAVO_OK;
    }
    char list[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < OCTAVO_COUNT(families); i++) {
        const char *known = is_gguf ? families[i].gguf : families[i].model_type;
        if (!known) continue;
        const bool is_room = used + strlen(known) + sizeof ", and more" < sizeof list;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                 is_room ? known : "and more");
        if (!is_room) break;
    }
    return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                       "%s \"%.*s\" (%s): unknown; this version "
                       "runs %s",
                       is_gguf ? "architecture" : "config \"model_type\"",
                       (int)(name.size < 64 ? name.size : 64), name.data,
                       octavo_checkpoint_path(checkpoint), list);
}
