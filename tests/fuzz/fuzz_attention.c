/* SPDX-License-Identifier: Apache-2.0
 *
 * Ragged paged attention against hostile arguments. The input describes a small call that is right,
 * then spoils some of it: numbers in the index arrays, scalars, dtypes, axes, extents that shrink.
 * Arrays are allocations of their own, as large as the right call needs, so a read or write beyond
 * them is seen. The call is either refused, with a message and with cache and output untouched, or
 * gives the same bits with other threads and tuning.
 */
#include "octavo/attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { SEQS = 4, MOST_ARRAYS = 16 };

typedef struct input {
    const uint8_t *data;
    size_t size;
    uint32_t noise;
} input;

static int below(input *in, int n) {
    if (in->size == 0) return 0;
    in->size--;
    return *in->data++ % n;
}

typedef struct call {
    octavo_attention_args args;
    int32_t lens[SEQS], starts[SEQS + 1], key_starts[SEQS + 1], kinds[3];
    void *owned[MOST_ARRAYS];
    int n_owned;
    size_t cache_bytes, output_bytes;
} call;

/* Random bytes; as numbers of any type some are NaN, which is as well. */
static octavo_array make_array(call *c, input *in, octavo_dtype dtype, int n_axes,
                               const int64_t *extents, size_t *bytes) {
    octavo_array array = {.dtype = dtype, .n_axes = n_axes};
    *bytes = octavo_dtype_size(dtype);
    for (int i = 0; i < n_axes; i++) {
        array.extents[i] = extents[i];
        *bytes *= (size_t)extents[i];
    }
    uint8_t *to = malloc(*bytes ? *bytes : 1);
    REQUIRE(to && c->n_owned < MOST_ARRAYS);
    for (size_t i = 0; i < *bytes; i++) {
        in->noise = in->noise * 1664525u + 1013904223u;
        to[i] = (uint8_t)(in->noise >> 25); /* no sign: finite more often than not */
    }
    array.data = c->owned[c->n_owned++] = to;
    return array;
}

#define ARRAY(c, in, dtype, ...)                                                                   \
    make_array(c, in, dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),            \
               (int64_t[]){__VA_ARGS__}, &(size_t){0})

static octavo_array borrowed(int32_t *data, int64_t n) {
    return (octavo_array){.data = data, .dtype = OCTAVO_DTYPE_I32, .n_axes = 1, .extents = {n}};
}

/* Sequences, and pages for them in an order of the input's. */
static void make_batch(call *c, input *in, int n_seqs, int page_size, int *n_pages) {
    int per_seq = 1;
    *n_pages = 0;
    for (int i = 0; i < n_seqs; i++) {
        c->lens[i] = below(in, 90);
        if (below(in, 20) == 0) c->lens[i] += 1024;
        const int q = below(in, 4) == 0 ? below(in, 40) : below(in, 2);
        c->starts[i + 1] = c->starts[i] + (q < c->lens[i] ? q : c->lens[i]);
        c->key_starts[i + 1] = c->key_starts[i] + (c->lens[i] > 5 ? below(in, 5) : 0);
        const int used = (c->lens[i] + page_size - 1) / page_size;
        if (used > per_seq) per_seq = used;
        *n_pages += used;
    }
    size_t bytes;
    c->args.block_tables =
        make_array(c, in, OCTAVO_DTYPE_I32, 1, (int64_t[]){n_seqs * per_seq}, &bytes);
    int32_t *table = c->args.block_tables.data;
    int page = 0, turn = below(in, 7) + 1;
    for (int i = 0; i < n_seqs; i++) {
        for (int k = 0; k < (c->lens[i] + page_size - 1) / page_size; k++)
            table[i * per_seq + k] = page++;
    }
    for (int i = 0; i + turn < per_seq && page > 0; i += turn) { /* within the first row */
        if (i >= (c->lens[0] + page_size - 1) / page_size - turn) break;
        int32_t swap = table[i];
        table[i] = table[i + turn];
        table[i + turn] = swap;
    }
    c->args.kv_lens = borrowed(c->lens, n_seqs);
    c->args.query_start_loc = borrowed(c->starts, n_seqs + 1);
    c->args.distribution = borrowed(c->kinds, 3);
    c->kinds[2] = n_seqs;
    c->kinds[1] = below(in, n_seqs + 1);
    c->kinds[0] = below(in, c->kinds[1] + 1);
}

static double scalar(input *in) {
    static const double some[] = {1.0, 0.0, -1.0, 0.125, 1e300, -1e-300, HUGE_VAL, 30.0};
    return some[below(in, sizeof some / sizeof some[0])];
}

static void make_options(call *c, input *in, int n_q, int n_kv, int64_t rows) {
    octavo_attention_args *a = &c->args;
    const int bits = below(in, 256), more = below(in, 256);
    a->use_q_scale = bits & 1;
    a->use_k_scale = bits & 2;
    a->use_v_scale = bits & 4;
    a->use_logits_soft_cap = bits & 8;
    a->use_sliding_window = bits & 16;
    a->update_kv_cache = !(bits & 32);
    a->q_scale = bits & 64 ? scalar(in) : 0.5;
    a->k_scale = bits & 128 ? scalar(in) : 0.5;
    a->softmax_scale = more & 1 ? scalar(in) : 0.2;
    a->logits_soft_cap = more & 2 ? scalar(in) : 20.0;
    a->sliding_window = more & 4 ? below(in, 100) : INT64_MAX;
    a->chunk_size = more & 8 ? below(in, 100) : 0;
    a->precision = more & 16 ? OCTAVO_ATTENTION_BF16 : OCTAVO_ATTENTION_STRICT;
    a->chunk_prefill_size = below(in, 30);
    a->num_queries_per_block = below(in, 30);
    a->num_kv_pages_per_block = below(in, 30);
    a->vmem_limit_bytes = more & 32 ? below(in, 256) * 1000 : 0;
    if (more & 64) a->attention_sink = ARRAY(c, in, OCTAVO_DTYPE_F32, n_q);
    if (more & 128) a->alibi_slopes = ARRAY(c, in, OCTAVO_DTYPE_F32, n_q);
    if (below(in, 4) == 0) a->k_scales = ARRAY(c, in, OCTAVO_DTYPE_F32, n_kv);
    if (below(in, 4) == 0) a->v_scales = ARRAY(c, in, OCTAVO_DTYPE_F32, n_kv);
    const int kind = below(in, 6);
    a->type = kind == 1   ? OCTAVO_ATTENTION_ENCODER
              : kind == 2 ? OCTAVO_ATTENTION_ENCODER_DECODER
                          : OCTAVO_ATTENTION_DECODER;
    if (kind == 2 && c->key_starts[c->kinds[2]] <= rows)
        a->key_start_loc = borrowed(c->key_starts, c->kinds[2] + 1);
}

static void make_call(call *c, input *in) {
    octavo_attention_args *a = &c->args;
    octavo_attention_args_init(a);
    const octavo_dtype q_dtype = (octavo_dtype)below(in, 3), kv_dtype = (octavo_dtype)below(in, 6);
    const octavo_dtype new_dtype = below(in, 5) == 0 ? q_dtype : kv_dtype;
    const int64_t n_kv = 1 + below(in, 3), n_q = n_kv * (1 + below(in, 4)),
                  size = (int64_t)octavo_dtype_size(kv_dtype);
    const int64_t d = 1 + (below(in, 10) == 0 ? below(in, 256) * 2 : below(in, 80));
    const int page_size = 1 + below(in, 20), n_seqs = 1 + below(in, SEQS);
    const bool has_columns = below(in, 2), is_shared = has_columns && below(in, 4) == 0;
    const int64_t dv = has_columns && d > 1 && below(in, 2) ? d - 1 : d;
    int n_pages;
    make_batch(c, in, n_seqs, page_size, &n_pages);
    const int64_t rows = c->starts[n_seqs] + below(in, 4);
    a->queries = ARRAY(c, in, q_dtype, rows, n_q, d);
    a->keys = ARRAY(c, in, new_dtype, rows, n_kv, d);
    if (!is_shared) a->values = ARRAY(c, in, new_dtype, rows, n_kv, dv);
    a->use_output_scale = below(in, 8) == 0;
    a->output_scale = 0.1;
    const octavo_dtype out = a->use_output_scale ? (octavo_dtype)(3 + below(in, 3)) : q_dtype;
    a->output = make_array(c, in, out, 3, (int64_t[]){rows, n_q, dv}, &c->output_bytes);
    if (has_columns) {
        a->layout = OCTAVO_KV_COLUMNS;
        a->page_size = page_size;
        a->value_in_key = is_shared;
        a->value_dim = is_shared ? dv : 0;
        const int64_t elements =
            octavo_attention_page_elements(kv_dtype, page_size, n_kv, d, dv, is_shared);
        a->kv_cache =
            make_array(c, in, kv_dtype, 2, (int64_t[]){n_pages, elements}, &c->cache_bytes);
    } else {
        const int64_t pk = 4 / size, words = (2 * n_kv + pk - 1) / pk,
                      lanes = (d + 127) / 128 * 128;
        a->kv_cache = make_array(
            c, in, kv_dtype, 5, (int64_t[]){n_pages, page_size, words, pk, lanes}, &c->cache_bytes);
    }
    make_options(c, in, (int)n_q, (int)n_kv, rows);
}

/* What a caller may get wrong without lying about memory. */
static void spoil(call *c, input *in) {
    octavo_attention_args *a = &c->args;
    octavo_array *arrays[] = {
        &a->queries,      &a->keys,           &a->values,       &a->kv_cache,
        &a->output,       &a->kv_lens,        &a->block_tables, &a->query_start_loc,
        &a->distribution, &a->attention_sink, &a->alibi_slopes, &a->key_start_loc};
    static const int32_t numbers[] = {0, 1, -1, 2, 100, INT32_MAX, INT32_MIN, 16};
    octavo_array *one = arrays[below(in, sizeof arrays / sizeof arrays[0])];
    const int32_t number = numbers[below(in, 8)];
    const int axis = below(in, OCTAVO_ARRAY_MAX_AXES);
    switch (below(in, 12)) {
    case 0:
        c->lens[below(in, SEQS)] = number;
        break;
    case 1:
        c->starts[below(in, SEQS + 1)] = number;
        break;
    case 2:
        c->key_starts[below(in, SEQS + 1)] = number;
        break;
    case 3:
        c->kinds[below(in, 3)] = number;
        break;
    case 4:
        if (a->block_tables.extents[0] > 0)
            ((int32_t *)a->block_tables.data)[below(in, 256) % a->block_tables.extents[0]] = number;
        break;
    case 5:
        if (one->extents[axis] > number) one->extents[axis] = number;
        break;
    case 6:
        one->n_axes = below(in, 7) - 1;
        break;
    case 7: { /* of at most as many bytes */
        const octavo_dtype dtype = (octavo_dtype)below(in, 9);
        if (octavo_dtype_size(dtype) <= octavo_dtype_size(one->dtype)) one->dtype = dtype;
        break;
    }
    case 8:
        one->strides[axis] = number < 2 ? number : 1;
        break;
    case 9:
        a->value_dim = number;
        break;
    case 10:
        a->page_size = a->layout == OCTAVO_KV_COLUMNS && number > a->page_size ? 1 : number;
        break;
    default:
        a->type = (octavo_attention_type)number;
        break;
    }
}

typedef struct result {
    octavo_status status;
    octavo_error error;
    uint8_t *cache, *output;
} result;

/* Threads stay for all inputs. */
static octavo_attention_context *context_of(int n_threads) {
    static octavo_attention_context *contexts[3];
    octavo_attention_context **one = &contexts[n_threads];
    octavo_attention_options options;
    octavo_attention_options_init(&options);
    options.n_threads = n_threads;
    if (!*one) REQUIRE(octavo_attention_context_create(one, &options, NULL) == OCTAVO_OK);
    return *one;
}

static result run(call *c, const uint8_t *cache, const uint8_t *output, int n_threads) {
    result r = {0};
    octavo_attention_context *context = context_of(n_threads);
    memcpy(c->args.kv_cache.data, cache, c->cache_bytes);
    memcpy(c->args.output.data, output, c->output_bytes);
    r.status = octavo_ragged_paged_attention(context, &c->args, &r.error);
    r.cache = malloc(c->cache_bytes + 1);
    r.output = malloc(c->output_bytes + 1);
    REQUIRE(r.cache && r.output);
    memcpy(r.cache, c->args.kv_cache.data, c->cache_bytes);
    memcpy(r.output, c->args.output.data, c->output_bytes);
    return r;
}

/* Spoilt tables may share pages that are written: then only one thread has an order. */
static void check(call *c, bool is_spoilt) {
    void *cache_data = c->args.kv_cache.data, *output_data = c->args.output.data;
    if (!cache_data || !output_data) return;
    uint8_t *cache = malloc(c->cache_bytes + 1), *output = malloc(c->output_bytes + 1);
    REQUIRE(cache && output);
    memcpy(cache, cache_data, c->cache_bytes);
    memcpy(output, output_data, c->output_bytes);
    result one = run(c, cache, output, 1);
    if (one.status != OCTAVO_OK) {
        REQUIRE(one.error.message[0] != '\0' && one.error.status == one.status);
        REQUIRE(memcmp(one.cache, cache, c->cache_bytes) == 0);
        REQUIRE(memcmp(one.output, output, c->output_bytes) == 0);
    } else {
        octavo_attention_args *a = &c->args;
        a->chunk_prefill_size = a->num_queries_per_block = a->vmem_limit_bytes = 0;
        a->num_kv_pages_per_block = 3;
        result two = run(c, cache, output, is_spoilt ? 1 : 2);
        REQUIRE(two.status == OCTAVO_OK);
        REQUIRE(memcmp(one.cache, two.cache, c->cache_bytes) == 0);
        REQUIRE(memcmp(one.output, two.output, c->output_bytes) == 0);
        free(two.cache);
        free(two.output);
    }
    free(one.cache);
    free(one.output);
    free(cache);
    free(output);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size, 1};
    call *c = calloc(1, sizeof *c);
    REQUIRE(c);
    in.noise += (uint32_t)below(&in, 256);
    make_call(c, &in);
    const int n = below(&in, 4);
    for (int i = 0; i < n; i++)
        spoil(c, &in);
    check(c, n > 0);
    for (int i = 0; i < c->n_owned; i++)
        free(c->owned[i]);
    free(c);
    return 0;
}
