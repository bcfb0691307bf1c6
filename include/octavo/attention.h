/* SPDX-License-Identifier: Apache-2.0
 *
 * Ragged paged attention: one call for a batch of sequences of different lengths whose keys and
 * values lie in pages, with decode, prefill and mixed rows, the update of the cache included.
 *
 * Sequence i, 0 <= i < distribution[2], owns the query rows query_start_loc[i] ..
 * query_start_loc[i + 1] - 1. kv_lens[i] is its context length after this step, those new tokens
 * included: its t-th new token sits at position kv_lens[i] - q_len + t. Position p lies in slot
 * p % page_size of page block_tables[i * pages_per_seq + p / page_size]. Within a slot row 2h holds
 * the key and row 2h + 1 the value of kv head h; only lanes [0, D) of a row are read.
 *
 * A query at position p sees the keys at positions j <= p, and with a sliding window only
 * j > p - sliding_window. Query head a reads kv head a / (Hq / Hkv). For the keys it sees
 *     s = q . k * softmax_scale * k_scale * q_scale
 *     s = logits_soft_cap * tanh(s / logits_soft_cap)                       (if used)
 *     out = v_scale * sum of softmax(s) * v
 * where an attention sink is one more logit per query head, as it is, without a value. All sums are
 * f32; the result is rounded once. Keys that are not seen, slots past kv_lens and unused block
 * table entries have no influence, whatever they hold.
 *
 * A row's bits depend on its query and on the keys and values that it sees, and on the instruction
 * set: not on the rest of the batch, on how a prompt is cut into calls, on threads, page size or
 * page numbers.
 */
#ifndef OCTAVO_ATTENTION_H
#define OCTAVO_ATTENTION_H

#include "octavo/dtype.h"
#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OCTAVO_ARRAY_MAX_AXES 5

/* An array in the caller's memory. All-zero strides mean dense, last axis fastest; else strides are
 * in elements and the last axis of length > 1 must have stride 1. Only kv_cache and output are
 * written. */
typedef struct octavo_array {
    void *data;
    octavo_dtype dtype;
    int32_t n_axes;
    int64_t extents[OCTAVO_ARRAY_MAX_AXES];
    int64_t strides[OCTAVO_ARRAY_MAX_AXES];
} octavo_array;

/* T rows of tokens, S rows of sequences, P pages, Hq and Hkv heads of width D (1..512);
 * pk = 4 / bytes of an element, Dp = D rounded up to a multiple of 128. Fill in by
 * octavo_attention_args_init first. */
typedef struct octavo_attention_args {
    size_t size;               /* sizeof(octavo_attention_args), set by init */
    octavo_array queries;      /* [T, Hq, D], f32, f16 or bf16 */
    octavo_array keys;         /* [T, Hkv, D], the cache's dtype */
    octavo_array values;       /* [T, Hkv, D], the cache's dtype */
    octavo_array kv_cache;     /* [P, page_size, ceil(2 Hkv / pk), pk, Dp], f32, f16 or bf16; slots
                                  (the last three axes) are dense */
    octavo_array kv_lens;      /* [S], i32 */
    octavo_array block_tables; /* [S * pages_per_seq], i32 */
    octavo_array query_start_loc; /* [S + 1], i32 */
    octavo_array distribution;    /* [3], i32: sequences before [0] have one new token each, those
                                     before [1] a fixed number, [2] is how many live. The result
                                     depends on [2] alone */
    octavo_array attention_sink;  /* [Hq], f32; data NULL: none. Default none */
    octavo_array output;          /* [T, Hq, D], the queries' dtype; rows of no sequence become 0.
                                     May not overlap another array */
    double softmax_scale;         /* default 1 (not 1 / sqrt(D)) */
    double k_scale;               /* default 1; the cache holds k / k_scale */
    double v_scale;               /* default 1 */
    double q_scale;           /* with use_q_scale queries are first divided by it, rounded to their
                                 type, clipped to and rounded to the cache's type. Default 1 */
    double logits_soft_cap;   /* not 0; default 1 */
    int64_t sliding_window;   /* at least 1, counts the query's own position; default 1 */
    bool use_q_scale;         /* default false */
    bool use_logits_soft_cap; /* default false */
    bool use_sliding_window;  /* default false */
    bool update_kv_cache;     /* default true: first the whole slot of every new token is written:
                                 keys and values in lanes [0, D), 0 elsewhere. false: the data
                                 of keys and values are not looked at */
} octavo_attention_args;

/* Defaults everywhere, no arrays. Any thread. */
OCTAVO_API void octavo_attention_args_init(octavo_attention_args *args);

/* Checks everything that can be wrong with a call, the contents of the index arrays included.
 * OCTAVO_ERROR_INVALID: shapes, strides, dtypes, ranges; OCTAVO_ERROR_UNSUPPORTED: well-formed, but
 * a dtype (fp8, int8) or head width that this build cannot do; OCTAVO_ERROR_LIMIT: too large. The
 * message names the culprit. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_attention_check(const octavo_attention_args *args,
                                                                  octavo_error *error);

typedef struct octavo_attention_options {
    size_t size;       /* sizeof(octavo_attention_options), set by init */
    int32_t n_threads; /* default 0: one for each physical core that the process may use */
    bool pin;          /* bind threads to cores; default false */
    const char *isa;   /* "scalar", "avx2", "avx512"; default NULL: the best that the machine has.
                          The environment variable OCTAVO_CPU narrows it */
} octavo_attention_options;

OCTAVO_API void octavo_attention_options_init(octavo_attention_options *options);

/* Threads, the choice of instruction set and memory that calls reuse. */
typedef struct octavo_attention_context octavo_attention_context;

/* options may be NULL: defaults. On success the caller owns *context and destroys it; on failure
 * (OCTAVO_ERROR_INVALID, _UNSUPPORTED: an isa; _MEMORY) it is untouched. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status
octavo_attention_context_create(octavo_attention_context **context,
                                const octavo_attention_options *options, octavo_error *error);
/* Joins the threads, frees everything and sets *context to NULL. Takes NULL handles. Not during a
 * call. */
OCTAVO_API void octavo_attention_context_destroy(octavo_attention_context **context);

/* Bytes that a call with arguments like these keeps in its context: they depend on T, S, Hq, Hkv,
 * D and the number of threads only. Checks as octavo_attention_check. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_attention_scratch_bytes(
    const octavo_attention_args *args, int32_t n_threads, size_t *bytes, octavo_error *error);

/* Checks (as octavo_attention_check), updates the cache and computes the output. Allocates only
 * where a call needs more scratch than any before it with this context. On failure neither cache
 * nor output was touched; OCTAVO_ERROR_MEMORY is possible besides the check's. One call at a time
 * for a context; contexts are independent. The arrays are the caller's and are not kept. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_ragged_paged_attention(
    octavo_attention_context *context, const octavo_attention_args *args, octavo_error *error);

#ifdef __cplusplus
}
#endif
#endif
