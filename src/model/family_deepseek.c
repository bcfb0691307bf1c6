/* SPDX-License-Identifier: Apache-2.0
 *
 * DeepSeek V2 and V3: latent attention with neighbours rotated, the first layers dense, the others
 * of experts with shared ones beside them. V2 scores experts by softmax, V3 by sigmoids with a bias
 * for the choice; both may choose among groups. Under yarn the scale of attention grows.
 */
#include "model/family.h"

#include <math.h>

const octavo_weight_name octavo_family_deepseek_names[] = {
    {OCTAVO_ROLE_SHARED_GATE, "mlp.shared_experts.gate_proj.weight"},
    {OCTAVO_ROLE_SHARED_UP, "mlp.shared_experts.up_proj.weight"},
    {OCTAVO_ROLE_SHARED_DOWN, "mlp.shared_experts.down_proj.weight"},
    {OCTAVO_ROLE_NONE, NULL},
};

/* ---- attention ---- */

enum { MOST_RANK = 1 << 20, MOST_HEAD = 512, MOST_LANES = 576 };

/* Newer GGUF files call the cached row's width key_length, and the heads' own key_length_mla. */
static octavo_status read_gguf_widths(const octavo_config_reader *reader,
                                      octavo_model_config *config) {
    octavo_latent_config *l = &config->latent;
    const octavo_key new_key = {"attention.key_length_mla", NULL};
    const octavo_key new_value = {"attention.value_length_mla", NULL};
    const octavo_key key = {"attention.key_length", NULL};
    const octavo_key value = {"attention.value_length", NULL};
    const octavo_key rope = {"rope.dimension_count", NULL};
    const bool is_new = octavo_config_has(reader, new_key);
    octavo_status status;
    if ((status = octavo_config_integer(reader, is_new ? new_key : key, OCTAVO_REQUIRED, 1,
                                        MOST_HEAD, &l->key_dim)) ||
        (status = octavo_config_integer(reader, is_new ? new_value : value, OCTAVO_REQUIRED, 1,
                                        MOST_HEAD, &l->value_dim)) ||
        (status =
             octavo_config_integer(reader, rope, OCTAVO_REQUIRED, 2, MOST_HEAD, &config->rope_dim)))
        return status;
    if (l->key_dim <= config->rope_dim)
        return octavo_config_fail(reader, rope, OCTAVO_ERROR_FORMAT,
                                  "%lld of the %lld lanes of a head cannot be rotated; the file is "
                                  "damaged",
                                  (long long)config->rope_dim, (long long)l->key_dim);
    l->key_dim -= config->rope_dim;
    return OCTAVO_OK;
}

static octavo_status read_hf_widths(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    octavo_latent_config *l = &config->latent;
    octavo_status status;
    if ((status = octavo_config_integer(reader, (octavo_key){NULL, "qk_nope_head_dim"}, 128, 1,
                                        MOST_HEAD, &l->key_dim)) ||
        (status = octavo_config_integer(reader, (octavo_key){NULL, "v_head_dim"}, 128, 1, MOST_HEAD,
                                        &l->value_dim)))
        return status;
    return octavo_config_integer(reader, (octavo_key){NULL, "qk_rope_head_dim"}, 64, 2, MOST_HEAD,
                                 &config->rope_dim);
}

/* null, or absent in GGUF files: queries have no latent. */
static octavo_status read_ranks(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_latent_config *l = &config->latent;
    const octavo_key kv = {"attention.kv_lora_rank", "kv_lora_rank"};
    const octavo_key q = {"attention.q_lora_rank", "q_lora_rank"};
    const bool is_hf = octavo_config_is_hf(reader);
    octavo_status status = octavo_config_integer(reader, kv, is_hf ? 512 : OCTAVO_REQUIRED, 1,
                                                 MOST_LANES, &l->kv_rank);
    if (status || octavo_config_is_null(reader, q)) return status;
    return octavo_config_integer(reader, q, is_hf ? 1536 : 0, is_hf ? 1 : 0, MOST_RANK, &l->q_rank);
}

static octavo_status read_attention(const octavo_config_reader *reader,
                                    octavo_model_config *config) {
    const octavo_key kv = {"attention.kv_lora_rank", "kv_lora_rank"};
    const octavo_key rope = {"rope.dimension_count", "qk_rope_head_dim"};
    octavo_latent_config *l = &config->latent;
    const bool is_hf = octavo_config_is_hf(reader);
    bool is_pairwise;
    octavo_status status;
    if ((status = read_ranks(reader, config)) ||
        (status = is_hf ? read_hf_widths(reader, config) : read_gguf_widths(reader, config)) ||
        (status = octavo_config_flag(reader, (octavo_key){NULL, "rope_interleave"}, true,
                                     &is_pairwise)) ||
        (status = octavo_family_biases(reader, config)))
        return status;
    if (config->rope_dim % 2 != 0)
        return octavo_config_fail(reader, rope, OCTAVO_ERROR_UNSUPPORTED,
                                  "%lld rotated dimensions cannot be paired",
                                  (long long)config->rope_dim);
    config->n_kv_heads = 1;
    config->head_dim = l->kv_rank + config->rope_dim;
    config->pairing = is_pairwise ? OCTAVO_ROPE_PAIRWISE : OCTAVO_ROPE_HALF;
    config->attention_scale = 1.0f / sqrtf((float)(l->key_dim + config->rope_dim));
    l->norm_eps = is_hf ? 1e-6f : config->norm_eps; /* the models' own code has no other */
    if (l->kv_rank <= 512 && config->head_dim <= MOST_LANES) return OCTAVO_OK;
    return octavo_config_fail(reader, kv, OCTAVO_ERROR_UNSUPPORTED,
                              "a latent of %lld lanes and %lld that rotate; at most 512, and %d "
                              "together, are in this version",
                              (long long)l->kv_rank, (long long)config->rope_dim, MOST_LANES);
}

/* Yarn scales attention too: in folders by "mscale_all_dim", in GGUF files by a tenth of it as a
 * multiplier of the factor's logarithm; there cos and sin are never scaled. */
static octavo_status read_yarn(const octavo_config_reader *reader, octavo_model_config *config) {
    octavo_rope_config *rope = &config->ropes[0];
    octavo_config_reader scaling = *reader;
    const octavo_key key = {"rope.scaling.yarn_log_multiplier", "mscale_all_dim"};
    float by = 0.0f;
    octavo_status status = OCTAVO_OK;
    if (rope->scaling != OCTAVO_ROPE_SCALING_YARN) return OCTAVO_OK;
    if (octavo_config_is_hf(reader)) {
        if ((status = octavo_config_section(reader, "rope_parameters", &scaling)) ||
            (!scaling.object && (status = octavo_config_section(reader, "rope_scaling", &scaling))))
            return status;
    } else {
        rope->scale = 1.0f;
    }
    if (!octavo_config_has(&scaling, key)) return OCTAVO_OK;
    if ((status = octavo_config_positive(&scaling, key, 0.0, &by))) return status;
    if (!octavo_config_is_hf(reader)) by *= 10.0f;
    if (rope->factor > 1.0f) {
        const double scale = 0.1 * (double)by * log((double)rope->factor) + 1.0;
        config->attention_scale = (float)((double)config->attention_scale * scale * scale);
    }
    return OCTAVO_OK;
}

/* ---- experts ---- */

/* Scores by softmax, or by sigmoids and then with a bias: config.json calls the ways of choosing by
 * name, GGUF files have numbers for the scores and groups or none. */
static octavo_status read_scores(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_key gguf = {"expert_gating_func", NULL}, hf = {NULL, "scoring_func"};
    const bool is_v3 = config->choice_bias == OCTAVO_BIAS_NEEDED;
    octavo_gguf_string name;
    int64_t number;
    octavo_status status;
    if (!octavo_config_is_hf(reader)) {
        if ((status = octavo_config_integer(reader, gguf, 1, 0, INT32_MAX, &number))) return status;
        config->router.is_sigmoid = number == 2;
        config->choice_bias = OCTAVO_BIAS_OPTIONAL;
        if (number <= 2) return OCTAVO_OK;
        return octavo_config_fail(reader, gguf, OCTAVO_ERROR_UNSUPPORTED,
                                  "%lld: 1 (softmax) and 2 (sigmoid) are in this version",
                                  (long long)number);
    }
    if ((status = octavo_config_text(reader, hf, is_v3 ? "sigmoid" : "softmax", &name)))
        return status;
    config->router.is_sigmoid = octavo_text_is(name, "sigmoid");
    if (config->router.is_sigmoid || octavo_text_is(name, "softmax")) return OCTAVO_OK;
    return octavo_config_fail(reader, hf, OCTAVO_ERROR_UNSUPPORTED,
                              "\"%.*s\" is not in this version; softmax and sigmoid are",
                              (int)(name.size < 32 ? name.size : 32), name.data);
}

/* Whether groups count, and whether there is a bias. */
static octavo_status read_method(const octavo_config_reader *reader, octavo_model_config *config,
                                 bool *has_groups) {
    const octavo_key key = {NULL, "topk_method"};
    const bool is_v3 = config->choice_bias == OCTAVO_BIAS_NEEDED;
    octavo_gguf_string name;
    *has_groups = true;
    if (!octavo_config_is_hf(reader)) return OCTAVO_OK;
    octavo_status status = octavo_config_text(reader, key, is_v3 ? "noaux_tc" : "greedy", &name);
    if (status) return status;
    config->choice_bias = OCTAVO_BIAS_NONE;
    if (octavo_text_is(name, "noaux_tc")) {
        config->choice_bias = OCTAVO_BIAS_NEEDED;
        return OCTAVO_OK;
    }
    if (octavo_text_is(name, "group_limited_greedy")) return OCTAVO_OK;
    *has_groups = false;
    if (octavo_text_is(name, "greedy")) return OCTAVO_OK;
    return octavo_config_fail(reader, key, OCTAVO_ERROR_UNSUPPORTED,
                              "\"%.*s\" is not in this version; greedy, group_limited_greedy and "
                              "noaux_tc are",
                              (int)(name.size < 32 ? name.size : 32), name.data);
}

static octavo_status read_groups(const octavo_config_reader *reader, octavo_model_config *config) {
    const octavo_key groups = {"expert_group_count", "n_group"};
    const octavo_key chosen = {"expert_group_used_count", "topk_group"};
    int64_t n_groups = 1, n_chosen = 1;
    octavo_status status;
    if ((status = octavo_config_integer(reader, groups, 1, 1, config->n_experts, &n_groups)) ||
        (status = octavo_config_integer(reader, chosen, n_groups, 1, n_groups, &n_chosen)))
        return status;
    if (config->n_experts % n_groups != 0)
        return octavo_config_fail(
            reader, groups, OCTAVO_ERROR_FORMAT,
            "%lld experts do not divide into %lld groups; the file is damaged",
            (long long)config->n_experts, (long long)n_groups);
    if (config->router.n_chosen > config->n_experts / n_groups * n_chosen)
        return octavo_config_fail(
            reader, chosen, OCTAVO_ERROR_FORMAT,
            "%lld groups have fewer than the %d experts that a token chooses; "
            "the file is damaged",
            (long long)n_chosen, config->router.n_chosen);
    if (n_chosen == n_groups) return OCTAVO_OK;
    config->router.n_groups = (int)n_groups;
    config->router.n_chosen_groups = (int)n_chosen;
    return OCTAVO_OK;
}

/* The first layers are dense, then each `period`-th is of experts. */
static octavo_status read_sparse_layers(const octavo_config_reader *reader,
                                        octavo_model_config *config) {
    const octavo_key dense = {"leading_dense_block_count", "first_k_dense_replace"};
    const octavo_key step = {NULL, "moe_layer_freq"};
    const int64_t usual = config->choice_bias == OCTAVO_BIAS_NEEDED ? 3 : 0;
    int64_t n_dense, period;
    octavo_status status;
    if ((status = octavo_config_integer(reader, dense, octavo_config_is_hf(reader) ? usual : 0, 0,
                                        1 << 20, &n_dense)) ||
        (status = octavo_config_integer(reader, step, 1, 1, 1 << 20, &period)))
        return status;
    for (int i = 0; i < config->n_layers; i++)
        config->layers[i].is_sparse = i >= n_dense && i % period == 0;
    return OCTAVO_OK;
}

static octavo_status read_weights(const octavo_config_reader *reader, octavo_model_config *config,
                                  bool is_v3) {
    const octavo_key norm = {"expert_weights_norm", "norm_topk_prob"};
    const octavo_key scale = {"expert_weights_scale", "routed_scaling_factor"};
    const bool is_hf = octavo_config_is_hf(reader);
    octavo_status status;
    if ((status = octavo_config_flag(reader, norm, is_hf && is_v3, &config->router.is_normalised)))
        return status;
    if (is_hf && !is_v3 && config->router.is_normalised)
        return OCTAVO_OK; /* V2: one or the other */
    return octavo_config_positive(reader, scale, is_hf && is_v3 ? 2.5 : 1.0, &config->router.scale);
}

/* How many a token takes of all, times their width. */
static octavo_status read_shared(const octavo_config_reader *reader, octavo_model_config *config,
                                 int64_t usual) {
    const octavo_key key = {"expert_shared_count", "n_shared_experts"};
    const bool is_hf = octavo_config_is_hf(reader);
    int64_t n_shared = 0;
    octavo_status status;
    if (octavo_config_is_null(reader, key)) return OCTAVO_OK;
    if ((status = octavo_config_integer(reader, key, is_hf ? usual : 0, 0, 1024, &n_shared)))
        return status;
    config->ffw_shared = n_shared * config->ffw_expert;
    return OCTAVO_OK;
}

static octavo_status read_experts(const octavo_config_reader *reader, octavo_model_config *config,
                                  bool is_v3) {
    const octavo_key width = {"expert_feed_forward_length", "moe_intermediate_size"};
    bool has_groups;
    octavo_status status;
    if ((status = octavo_family_experts(reader, config, "n_routed_experts", is_v3 ? 8 : 6)) ||
        (status = octavo_config_integer(reader, width, OCTAVO_REQUIRED, 1, 1 << 22,
                                        &config->ffw_expert)) ||
        (status = read_sparse_layers(reader, config)) || (status = read_scores(reader, config)) ||
        (status = read_method(reader, config, &has_groups)) ||
        (has_groups && (status = read_groups(reader, config))) ||
        (status = read_weights(reader, config, is_v3)))
        return status;
    return read_shared(reader, config, is_v3 ? 1 : 2);
}

static octavo_status configure(const octavo_config_reader *reader, octavo_model_config *config,
                               bool is_v3) {
    const octavo_rope_source rope = {
        .base = {"rope.freq_base", "rope_theta"}, .fallback = 1e4, .is_scaled = true};
    octavo_status status;
    config->choice_bias = is_v3 ? OCTAVO_BIAS_NEEDED : OCTAVO_BIAS_NONE;
    if ((status = octavo_family_activation(reader, "hidden_act", "silu", &config->activation)) ||
        (status = read_attention(reader, config)) ||
        (status = octavo_family_rope(reader, config, 0, &rope)) ||
        (status = read_yarn(reader, config)))
        return status;
    return read_experts(reader, config, is_v3);
}

octavo_status octavo_family_deepseek_v2(const octavo_config_reader *reader,
                                        octavo_model_config *config) {
    return configure(reader, config, false);
}

octavo_status octavo_family_deepseek_v3(const octavo_config_reader *reader,
                                        octavo_model_config *config) {
    return configure(reader, config, true);
}
