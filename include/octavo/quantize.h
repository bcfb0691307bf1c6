/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a model anew with weights of another type.
 */
#ifndef OCTAVO_QUANTIZE_H
#define OCTAVO_QUANTIZE_H

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a tensor. Errors are those of the values as they will be read against the values
 * that were there, as shares of these values' root mean square. */
typedef struct octavo_quantized_tensor {
    const char *name;       /* as long as the call that it is given to */
    const char *from, *to;  /* types, "F32"; live forever */
    const uint64_t *extent; /* [n_dims], extent[0] the contiguous row; as long as name */
    int n_dims;
    uint64_t from_bytes, to_bytes;
    bool is_copied; /* byte for byte */
    double rms_error;
    double max_error;
    const char
        *note; /* why it is not of the type asked for, or what to know; NULL; lives forever */
} octavo_quantized_tensor;

typedef struct octavo_quantize_total {
    uint64_t n_tensors;
    uint64_t n_converted;          /* not copied */
    uint64_t n_requantized;        /* of these, quantised before */
    uint64_t from_bytes, to_bytes; /* of tensors */
    uint64_t file_bytes;           /* written */
    double rms_error;              /* over all values converted */
    double max_error;              /* the largest of a tensor */
} octavo_quantize_total;

typedef struct octavo_quantize_options {
    size_t size;      /* sizeof(octavo_quantize_options) */
    const char *type; /* "F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K",
                         "Q6_K", "MXFP4", "TQ1_0", "TQ2_0", in upper or lower case; needed */
    const char *const *keep; /* [n_keep] "REGEX=TYPE": a matrix in whose name the regular expression
                                (POSIX, extended) is found gets that type; "REGEX": it stays as it
                                is. Of several that fit the first counts */
    size_t n_keep;
    int threads; /* 0: one for each physical core that the process may use */
    /* Called for each tensor, in file order, once it is written. NULL: not called. */
    void (*report)(void *cookie, const octavo_quantized_tensor *tensor);
    /* Called on the calling thread with bytes done and in all. Another value than 0 stops with
     * OCTAVO_ERROR_CANCELLED. NULL: not called. */
    int (*progress)(void *cookie, uint64_t done, uint64_t total);
    void *cookie; /* of both */
} octavo_quantize_options;

/* Fills in the defaults named above. */
OCTAVO_API void octavo_quantize_options_init(octavo_quantize_options *options);

/* Writes the model at `path`, a GGUF file (of a split one, the first part) or the folder of a
 * Hugging Face checkpoint, to one GGUF file `out`, matrices in the type asked for. Vectors, norms,
 * biases, routers, tables of positions and matrices of less than 1024 values stay as they are.
 * Where rows do not fill whole blocks of the type, a wider one is taken. Metadata stay as they are
 * but for general.file_type, general.quantization_version and those of splitting; a folder's are
 * made from its config.json, tokenizer.json and chat template.
 *
 * `out` is written under another name and gets its own when it is whole; on failure what stood
 * there is untouched. *total (may be NULL) is filled on success. Statuses:
 *   INVALID      a bad argument, type or pattern; a pattern that fits no tensor; `out` is a file of
 *                the input, or no plain file
 *   UNSUPPORTED  a type that cannot be made; a folder's model or tokenizer that GGUF cannot express
 *   FORMAT       a value that is not finite, or too large for the type; a malformed file
 *   IO, NOT_FOUND, MEMORY, CANCELLED
 * Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_quantize(const char *path, const char *out,
                                                           const octavo_quantize_options *options,
                                                           octavo_quantize_total *total,
                                                           octavo_error *error);

#ifdef __cplusplus
}
#endif
#endif
