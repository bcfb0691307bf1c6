/* SPDX-License-Identifier: Apache-2.0
 *
 * Families of architectures: one short file each (family_*.c), one row each in the table.
 */
#ifndef OCTAVO_MODEL_FAMILY_H
#define OCTAVO_MODEL_FAMILY_H

#include "model/config.h"
#include "model/config_read.h"

/* What config.json may leave out, since whoever writes it knows the family's numbers. 0: it may
 * not, or it follows from other numbers. */
typedef struct octavo_family_defaults {
    int64_t n_heads, n_kv_heads, head_dim, vocab, context;
    double norm_eps; /* 0: 1e-6 */
    double rotated;  /* share of a head; 0: 1 */
    bool is_tied;
} octavo_family_defaults;

typedef struct octavo_family {
    const char *architecture;
    const char *gguf;       /* general.architecture; NULL: of another row */
    const char *written_as; /* what GGUF files of this row say, where that is another row's */
    const char *model_type; /* of config.json */
    /* Sets what this family adds to the common numbers, which are read already. config->layers is
     * there, zeroed: every layer on rope 0 without a window. */
    octavo_status (*configure)(const octavo_config_reader *reader, octavo_model_config *config);
    octavo_family_defaults defaults;
    const octavo_weight_name *names;      /* of folders, see weight_name.h; NULL: none of its own */
    const octavo_weight_name *gguf_names; /* of GGUF files */
    octavo_key norm_eps;                  /* of layer norms; empty: RMS norms, with theirs */
    const char *rotated; /* in config.json: the share of a head that is rotated; NULL: all of it */
    const char *quant_method;     /* of config.json's quantization_config, where it can be read */
    const octavo_key_alias *keys; /* of config.json, where it calls some otherwise; or NULL */
    bool is_encoder;
    bool has_own_heads; /* head_dim, n_kv_heads and rope_dim are its own to set */
} octavo_family;

typedef octavo_status octavo_family_fn(const octavo_config_reader *reader,
                                       octavo_model_config *config);
octavo_family_fn octavo_family_cohere2, octavo_family_deepseek_v2, octavo_family_deepseek_v3,
    octavo_family_gemma, octavo_family_gemma2, octavo_family_gemma3, octavo_family_glm4,
    octavo_family_gpt_neox, octavo_family_gpt_oss, octavo_family_granite, octavo_family_llama,
    octavo_family_llama_or_mistral, octavo_family_llama4, octavo_family_ministral3,
    octavo_family_mistral, octavo_family_mixtral, octavo_family_nemotron, octavo_family_olmo2,
    octavo_family_olmo3, octavo_family_phi3, octavo_family_qwen2, octavo_family_qwen2_moe,
    octavo_family_qwen3, octavo_family_qwen3_moe, octavo_family_smollm3, octavo_family_starcoder2;
extern const octavo_weight_name octavo_family_deepseek_names[], octavo_family_gemma3_names[],
    octavo_family_glm4_names[], octavo_family_gpt_neox_names[], octavo_family_gpt_oss_gguf_names[],
    octavo_family_gpt_oss_names[], octavo_family_llama4_names[], octavo_family_mixtral_names[],
    octavo_family_starcoder2_names[];

/* Encoders. */
octavo_family_fn octavo_family_bert, octavo_family_modernbert, octavo_family_nomic_bert,
    octavo_family_roberta;
extern const octavo_key_alias octavo_family_distilbert_keys[], octavo_family_nomic_bert_keys[];
extern const octavo_weight_name octavo_family_bert_names[], octavo_family_distilbert_names[],
    octavo_family_modernbert_names[], octavo_family_nomic_bert_names[];

/* The family of a checkpoint. OCTAVO_ERROR_UNSUPPORTED names what it is and lists those that exist;
 * NOT_FOUND where it does not say. */
OCTAVO_MUST_CHECK octavo_status octavo_family_find(const octavo_checkpoint *checkpoint,
                                                   const octavo_family **family,
                                                   octavo_error *error);

/* general.architecture of GGUF files of a family, NULL where there is none; and the names that this
 * architecture has of its own, NULL for none. */
const char *octavo_family_gguf_of(const char *architecture);
const octavo_weight_name *octavo_family_gguf_names(const char *gguf);

/* The part of config.json about the text model, where that is one of several. */
const json_t *octavo_family_text_config(const octavo_checkpoint *checkpoint);

/* ---- what several families read ---- */

typedef struct octavo_rope_source {
    octavo_key base;
    double fallback;        /* base where the key is absent */
    bool is_scaled;         /* the checkpoint's rope scaling is about this table */
    const char *layer_type; /* of config.json, where it describes each kind of layer by itself */
} octavo_rope_source;

/* Sets ropes[index]. OCTAVO_ERROR_UNSUPPORTED for a kind of scaling that is not in this version. */
OCTAVO_MUST_CHECK octavo_status octavo_family_rope(const octavo_config_reader *reader,
                                                   octavo_model_config *config, int index,
                                                   const octavo_rope_source *about);

/* Layers from `first` on slide, except each `period`-th of all (0: no exception). */
typedef struct octavo_window_rule {
    int64_t window; /* 0: no layer slides */
    int rope;       /* of layers that slide */
    int64_t first, period;
    bool is_first_whole; /* the exception is the first of each period, not the last */
} octavo_window_rule;

/* Reads the period. GGUF files may have a list in its place, which octavo_family_windows takes. */
OCTAVO_MUST_CHECK octavo_status octavo_family_window_period(const octavo_config_reader *reader,
                                                            int64_t fallback, int64_t low,
                                                            int64_t *period);

/* Sets the layers by "layer_types" of config.json or the list of flags in GGUF metadata, or by the
 * rule where there is none. Other layers keep their rope. */
OCTAVO_MUST_CHECK octavo_status octavo_family_windows(const octavo_config_reader *reader,
                                                      octavo_model_config *config,
                                                      const octavo_window_rule *rule);

/* The sliding window, at most 2^28; 0 where config.json says null. `fallback` may be
 * OCTAVO_REQUIRED. */
OCTAVO_MUST_CHECK octavo_status octavo_family_window(const octavo_config_reader *reader,
                                                     int64_t fallback, int64_t *window);

/* Takes the rope off the layers that config.json says ("no_rope_layers", 1 for those with it), else
 * off every fourth ("no_rope_layer_interval"). After the windows. */
OCTAVO_MUST_CHECK octavo_status octavo_family_no_rope(const octavo_config_reader *reader,
                                                      octavo_model_config *config);

/* The biases of config.json's "attention_bias" and "mlp_bias", false where they are absent. GGUF
 * files have them or not. */
OCTAVO_MUST_CHECK octavo_status octavo_family_biases(const octavo_config_reader *reader,
                                                     octavo_model_config *config);

/* How many experts a token chooses, and which layers have them: those of config.json that
 * "decoder_sparse_step" and "mlp_only_layers" leave, else all. `count` is config.json's key of the
 * number of experts, of which there must be some. */
OCTAVO_MUST_CHECK octavo_status octavo_family_experts(const octavo_config_reader *reader,
                                                      octavo_model_config *config,
                                                      const char *count, int64_t usual_chosen);

/* Of encoders: norms of embedding and sums and no others, biases of the norms, the pooler if it is
 * there, no rope; biases everywhere in folders. */
void octavo_family_set_encoder(const octavo_config_reader *reader, octavo_model_config *config);
/* How many types of tokens there are. GGUF files have as many as the table has rows, or no table.
 */
OCTAVO_MUST_CHECK octavo_status octavo_family_types(const octavo_config_reader *reader,
                                                    octavo_model_config *config);
/* Takes the keys and values off the last layers ("num_kv_shared_layers"): each attends to those of
 * the last layer before them that slides and rotates as it does. When all else is known. */
OCTAVO_MUST_CHECK octavo_status octavo_family_kv_layers(const octavo_config_reader *reader,
                                                        octavo_model_config *config);

/* The gate's activation by its name in config.json; GGUF files, which do not name it, have
 * `fallback`. */
OCTAVO_MUST_CHECK octavo_status octavo_family_activation(const octavo_config_reader *reader,
                                                         const char *key, const char *fallback,
                                                         octavo_activation *activation);

#endif
