/* SPDX-License-Identifier: Apache-2.0
 *
 * Families of architectures: one short file each (family_*.c), one row each in the table.
 */
#ifndef OCTAVO_MODEL_FAMILY_H
#define OCTAVO_MODEL_FAMILY_H

#include "formats/gguf.h"
#include "model/config.h"

typedef struct octavo_family {
    const char *architecture; /* general.architecture */
    /* Sets what this family adds to the common numbers, which are read already. config->layers is
     * there, zeroed: every layer on rope 0 without a window. */
    octavo_status (*configure)(const octavo_gguf *gguf, octavo_model_config *config,
                               octavo_error *error);
} octavo_family;

octavo_status octavo_family_llama(const octavo_gguf *gguf, octavo_model_config *config,
                                  octavo_error *error);
octavo_status octavo_family_qwen2(const octavo_gguf *gguf, octavo_model_config *config,
                                  octavo_error *error);
octavo_status octavo_family_gemma3(const octavo_gguf *gguf, octavo_model_config *config,
                                   octavo_error *error);

/* The family of the file's architecture. OCTAVO_ERROR_UNSUPPORTED names it and lists those that
 * exist. */
OCTAVO_MUST_CHECK octavo_status octavo_family_find(const octavo_gguf *gguf,
                                                   const octavo_family **family,
                                                   octavo_error *error);

/* ARCHITECTURE.suffix as a key, in `key` [size]. */
const char *octavo_family_key(const octavo_model_config *config, const char *suffix, char *key,
                              size_t size);

/* Sets ropes[index] from the base under ARCHITECTURE.key (`fallback` without one) and, with
 * `is_scaled`, the file's rope.scaling entries: none and linear; any other kind is refused. */
OCTAVO_MUST_CHECK octavo_status octavo_family_rope(const octavo_gguf *gguf,
                                                   octavo_model_config *config, int index,
                                                   const char *key, float fallback, bool is_scaled,
                                                   octavo_error *error);

/* The whole configuration: common numbers, then the family's. On failure *config is empty. */
OCTAVO_MUST_CHECK octavo_status octavo_config_load(octavo_model_config *config,
                                                   const octavo_gguf *gguf, octavo_error *error);
void octavo_config_deinit(octavo_model_config *config);

#endif
