/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in a model file, without loading its weights.
 */
#ifndef OCTAVO_INSPECT_H
#define OCTAVO_INSPECT_H

#include "octavo/model.h"
#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octavo_inspect_options {
    size_t size;            /* sizeof(octavo_inspect_options) */
    bool with_program;      /* false: add the step program; needs an architecture that can be run */
    bool is_exact;          /* false: of exact precision */
    octavo_weights weights; /* OCTAVO_WEIGHTS_FILE: of matrices in the program */
    int chunk;              /* 512: tokens of the step that the program is planned for */
    size_t
        max_array_items; /* 8: longer metadata arrays are shortened to so many items and a count */
} octavo_inspect_options;

OCTAVO_API void octavo_inspect_options_init(octavo_inspect_options *options);

/* Describes the file or folder as one JSON document, which the caller frees with octavo_text_free
 * (octavo/template.h):
 *   {"path", "format", "version", "parts", "architecture", "bytes", "parameters",
 *    "types": {TYPE: {"tensors", "bytes"}}, "metadata": {...}, "tokenizer": {...} or null,
 *    "chat_template": text or null, "tensors": [{"name", "type", "shape", "bytes"}],
 *    "program": {"weights", "packed_bytes", "max_tokens", "arena_bytes", "tensors": [...],
 *                "ops": [...]}}
 * Of a Hugging Face folder, "metadata" is its config.json and "version" null.
 * Statuses as octavo_model_open. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_inspect(const char *path,
                                                          const octavo_inspect_options *options,
                                                          char **json, octavo_error *error);

/* The file's chat template, terminated, to free with octavo_text_free; *text is NULL when it has
 * none. Reads the header only. Statuses as octavo_inspect. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_chat_template_open(const char *path, char **text,
                                                                     octavo_error *error);

#ifdef __cplusplus
}
#endif
#endif
