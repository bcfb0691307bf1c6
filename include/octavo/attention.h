/* SPDX-License-Identifier: Apache-2.0
 *
 * Ragged paged attention: one call for a batch of sequences of different lengths whose keys and
 * values lie in pages, with decode, prefill and mixed rows, the update of the cache included.
 *
 * Sequence i, 0 <= i < distribution[2], owns the query rows query_start_loc[i] ..
 * query_start_loc[i + 1] - 1. kv_lens[i] is its context length after this step, those new tokens
 * included: its t-th new token sits at position kv_lens[i] - q_len + t. Position p lies in slot
 * p % page_size of page block_tables[i * pages_per_seq + p / page_size].
 *
 * A query at position p sees the keys at positions j <= p, and with a sliding window only
 * j > p - sliding_window. Query head a reads kv head a / (Hq / Hkv). For the keys it sees
 *     s = q . k * softmax_scale * k_scale * q_scale
 *     s = logits_soft_cap * tanh(s / logits_soft_cap)                       (if used)
 *     s = s + alibi_slope * -|p - j|                                        (if used)
 *     out = v_scale * sum of softmax(s) * v
 * where an attention sink is one more logit per query head, as it is, without a value. All sums are
 * f32; the result is rounded once. Keys that are not seen, slots past kv_lens and unused block
 * table entries have no influence, whatever they hold.
 *
 * Sequences may share pages that a call only reads, such as those of an equal beginning; a slot
 * that it writes must belong to one sequence.
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

/* An array in the caller's memory, aligned to its elements (64 bytes are fastest). All-zero strides
 * mean dense, last axis fastest; else strides are in elements and the last axis of length > 1 must
 * have stride 1. Only kv_cache and output are written. */
typedef struct octavo_array {
    void *data;
    octavo_dtype dtype;
    int32_t n_axes;
    int64_t extents[OCTAVO_ARRAY_MAX_AXES];
    int64_t strides[OCTAVO_ARRAY_MAX_AXES];
} octavo_array;

/* Which keys a query sees. */
typedef enum octavo_attention_type {
    OCTAVO_ATTENTION_DECODER = 0, /* those at positions up to its own */
    OCTAVO_ATTENTION_ENCODER = 1, /* all kv_lens of its sequence, also later ones; a sliding window
                                     then reaches to both sides: |p - j| < sliding_window */
    OCTAVO_ATTENTION_ENCODER_DECODER = 2, /* all kv_lens of another sequence (cross-attention): new
                                     keys and values have rows of their own (key_start_loc), and
                                     their number has nothing to do with that of the queries.
                                     Without window, chunks and ALiBi */
} octavo_attention_type;

/* How softmax weights enter the product with the values. They are f32 and their sum is; see
 * docs/attention.md for what each costs. */
typedef enum octavo_attention_precision {
    OCTAVO_ATTENTION_STRICT = 0, /* as they are */
    OCTAVO_ATTENTION_BF16 = 1,   /* rounded to bf16 first: an error of up to 2^-9 of a value */
} octavo_attention_precision;

/* clang-format off */
/* How a page lies in memory. Both give the same bits. */
typedef enum octavo_kv_layout {
    /* kv_cache is [P, page_size, ceil(2 Hkv / pk), pk, Dp]: within a slot row 2h is the key and row
     * 2h + 1 the value of kv head h, lanes up to Dp are padding. pk = 4 / bytes of an element, Dp =
     * D rounded up to a multiple of 128. The layout of the published kernel. */
    OCTAVO_KV_ROWS = 0,
    /* kv_cache is [P, E], E = octavo_attention_page_elements, at a multiple of 4 bytes. A page is
     * head after head, each rounded up to 64 bytes and of
     *   keys    [ceil(page_size / 16)][ceil(D / pk)][16] words of 32 bits: word w of 16 positions
     *           in a row, which holds lanes pk w .. pk w + pk - 1, the first in the lowest bits, 0
     *           past D
     *   values  [page_size][Dv up to a multiple of 16] elements
     * or, with value_in_key, of one array
     *   keys    [page_size][D elements up to a multiple of 32 bytes (f32: 64)]
     * One load has a vector of positions: the fastest here. Keys and values may differ in width;
     * nothing is padded to 128. */
    OCTAVO_KV_COLUMNS = 1,
} octavo_kv_layout;
/* clang-format on */

/* A dense array: extents [n_axes]. Any thread. */
static inline octavo_array octavo_array_dense(void *data, octavo_dtype dtype, int32_t n_axes,
                                              const int64_t *extents) {
    octavo_array array;
    int32_t i;
    array.data = data;
    array.dtype = dtype;
    array.n_axes = n_axes;
    for (i = 0; i < OCTAVO_ARRAY_MAX_AXES; i++) {
        array.extents[i] = i < n_axes ? extents[i] : 0;
        array.strides[i] = 0;
    }
    return array;
}

/* T rows of tokens, S rows of sequences, P pages; Hq query and Hkv kv heads; D lanes of a query and
 * key, Dv of a value and of the output (Dv = D except with OCTAVO_KV_COLUMNS). D and Dv are 1..512,
 * with OCTAVO_KV_COLUMNS D is up to 576. An array with n_axes 0 is absent. Fill in by
 * octavo_attention_args_init first. */
typedef struct octavo_attention_args {
    size_t size;           /* sizeof(octavo_attention_args), set by init */
    octavo_array queries;  /* [T, Hq, D], f32, f16 or bf16 */
    octavo_array keys;     /* [Tk, Hkv, D], the cache's dtype; Tk = T without key_start_loc. Or the
                              queries' dtype, if both use_k_scale and use_v_scale (or k_scales and
                              v_scales) are set: keys are then divided by their scale, clipped to the
                              range of the cache's dtype and rounded to it, nearest even */
    octavo_array values;   /* [Tk, Hkv, Dv], the keys' dtype; absent with value_in_key */
    octavo_array kv_cache; /* f32, f16, bf16, fp8_e4m3, fp8_e5m2 or int8; shape: see layout. Axes
                              after the page (ROWS: after the slot) are dense */
    octavo_array kv_lens;  /* [S], i32 */
    octavo_array block_tables;    /* [S * pages_per_seq], i32 */
    octavo_array query_start_loc; /* [S + 1], i32 */
    octavo_array distribution;    /* [3], i32: sequences before [0] have one new token each, those
                                     before [1] a fixed number, [2] is how many live. The result
                                     depends on [2] alone */
    octavo_array attention_sink;  /* [Hq], f32; absent by default */
    octavo_array output;          /* [T, Hq, Dv], the queries' dtype, or fp8 or int8 with
                                     use_output_scale; rows of no sequence become 0. May not overlap
                                     another array, which is not checked */
    double softmax_scale;         /* default 1 (not 1 / sqrt(D)) */
    double k_scale;               /* with use_k_scale: the cache holds k / k_scale. Default 1 */
    double v_scale;               /* with use_v_scale: the cache holds v / v_scale. Default 1 */
    double q_scale;         /* with use_q_scale queries are first divided by it, rounded to their
                               type, clipped to and rounded to the cache's type (int8: cut off
                               towards zero, saturating). Default 1. Not needed for a quantised
                               cache. Any scale may be any number, but none that divides may be 0 */
    double logits_soft_cap; /* not 0; default 1 */
    int64_t sliding_window; /* at least 1, counts the query's own position; default 1 */
    bool use_q_scale;       /* default false, like all that follow but update_kv_cache */
    bool use_k_scale;
    bool use_v_scale;
    bool use_logits_soft_cap;
    bool use_sliding_window;
    bool update_kv_cache; /* default true: first the whole slot of every new token is written: keys
                             and values in lanes [0, D), 0 elsewhere. false: the data of keys and
                             values are not looked at */

    octavo_attention_type type;           /* default OCTAVO_ATTENTION_DECODER */
    octavo_attention_precision precision; /* default OCTAVO_ATTENTION_STRICT */
    octavo_kv_layout layout;              /* default OCTAVO_KV_ROWS */
    int64_t page_size;  /* with OCTAVO_KV_COLUMNS: slots of a page, at least 1; with
                           OCTAVO_KV_ROWS 0 (the shape tells) */
    bool value_in_key;  /* with OCTAVO_KV_COLUMNS: a value is the first value_dim lanes of its key
                           (latent attention, DeepSeek V2), stored once */
    int64_t value_dim;  /* with value_in_key: Dv <= D. Default 0 */
    int64_t chunk_size; /* chunked local attention (Llama 4): a query sees keys of its own chunk of
                           so many absolute positions. Default 0: none */
    octavo_array key_start_loc; /* [S + 1], i32, OCTAVO_ATTENTION_ENCODER_DECODER only: rows of new
                                   keys and values of each sequence, which become its last
                                   positions; absent: there are none (update_kv_cache is then
                                   ignored) */
    octavo_array alibi_slopes;  /* [Hq], f32: adds slope * -|p - j| to a logit, after the cap (Press
                                   et al., arXiv 2108.12409); absent by default */
    octavo_array k_scales;      /* [Hkv], f32: one k_scale for each kv head; absent by default */
    octavo_array v_scales;      /* [Hkv], f32 */
    bool use_output_scale; /* the output is divided by output_scale, clipped to the range of its
                              dtype (fp8 or int8) and rounded, nearest even */
    double output_scale;   /* default 1 */

    /* Tuning, 0 = chosen from the sizes of this machine's caches. These change speed, never bits.
     */
    int64_t chunk_prefill_size;     /* new tokens of the sequences before distribution[1] */
    int64_t num_kv_pages_per_block; /* pages that a head visits before the next head does; rounded
                                       to whole softmax blocks of 64 positions */
    int64_t num_queries_per_block;  /* most query tokens that share a visit */
    int64_t vmem_limit_bytes; /* scratch of one thread; too little for one token is an error */
} octavo_attention_args;

/* Defaults everywhere, no arrays. Any thread. */
OCTAVO_API void octavo_attention_args_init(octavo_attention_args *args);

/* Elements of a page in OCTAVO_KV_COLUMNS. value_dim may differ from head_dim; value_in_key: values
 * take no room. 0 for arguments that are no page (a dtype, an extent under 1, a size that does not
 * fit). Any thread. */
OCTAVO_API int64_t octavo_attention_page_elements(octavo_dtype dtype, int64_t page_size,
                                                  int64_t n_kv_heads, int64_t head_dim,
                                                  int64_t value_dim, bool value_in_key);

/* Checks everything that can be wrong with a call, the contents of the index arrays included.
 * OCTAVO_ERROR_INVALID: shapes, strides, dtypes, ranges; OCTAVO_ERROR_UNSUPPORTED: well-formed, but
 * wider than this build can do; OCTAVO_ERROR_LIMIT: too large. The message names the culprit. Any
 * thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_attention_check(const octavo_attention_args *args,
                                                                  octavo_error *error);

typedef struct octavo_attention_options {
    size_t size;       /* sizeof(octavo_attention_options), set by init */
    int32_t n_threads; /* default 0: one for each physical core that the process may use */
    bool pin;          /* bind threads to cores; default false */
    const char *isa;   /* "scalar", "avx2", "avx512", "avx512_vnni", "avx512_vbmi", "avx512_bf16",
                          "neon"; default NULL, or "best": what is fastest on this machine, which
                          on Intel's is not avx512_bf16 (docs/performance.md). The environment
                          variable OCTAVO_CPU narrows it */
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

/* The instruction set in use, as options.isa names it (lives forever), and the number of threads.
 */
OCTAVO_API const char *octavo_attention_context_isa(const octavo_attention_context *context);
OCTAVO_API int32_t octavo_attention_context_threads(const octavo_attention_context *context);

/* Bytes that a call with arguments like these keeps in its context: they depend on T, S, Hq, Hkv,
 * D, Dv, the tuning, the size of the level 2 cache and the number of threads (0: as in
 * octavo_attention_options) only. Checks as octavo_attention_check. Any thread. */
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
