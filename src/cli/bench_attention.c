/* SPDX-License-Identifier: Apache-2.0
 *
 * All arrays of a call lie in one block of memory, every byte of which is written before the first
 * call, so that no page of it is the system's shared page of zeros. Numbers come from a fixed
 * sequence in [-1, 1).
 */
#include "cli/bench_attention.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/measure.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* A pattern's length is prime: no two rows or pages that start alike. */
enum { PATTERN = 65521, MOST_RUNS = 10000, LEAST_RUNS = 3 };

typedef struct call {
    const octavo_bench_attention *bench;
    octavo_attention_args args; /* arrays in `memory` */
    octavo_array pages; /* [P], i32: page numbers in the order in which they are given out */
    uint8_t *memory;
    uint64_t random;
} call;

static uint32_t next_random(call *c) {
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(c->random >> 32);
}

/* ---- shapes ---- */

static octavo_array make_array(octavo_dtype dtype, int32_t n_axes, const int64_t *extents) {
    octavo_array array = {.dtype = dtype, .n_axes = n_axes};
    memcpy(array.extents, extents, (size_t)n_axes * sizeof *extents);
    return array;
}

#define ARRAY(dtype, ...)                                                                          \
    make_array(dtype, (int32_t)OCTAVO_COUNT(((const int64_t[]){__VA_ARGS__})),                     \
               (const int64_t[]){__VA_ARGS__})

static octavo_array shape_cache(const octavo_bench_attention *b, int64_t n_pages) {
    if (b->layout == OCTAVO_KV_COLUMNS)
        return ARRAY(b->kv_dtype, n_pages,
                     octavo_attention_page_elements(b->kv_dtype, b->page_size, b->kv_heads,
                                                    b->head_dim, b->head_dim, false));
    const int64_t packing = 4 / (int64_t)octavo_dtype_size(b->kv_dtype);
    return ARRAY(b->kv_dtype, n_pages, b->page_size, (2 * b->kv_heads + packing - 1) / packing,
                 packing, (b->head_dim + 127) / 128 * 128);
}

/* All arrays without their data, and the options that go with them. */
static octavo_status shape(call *c, octavo_error *error) {
    const octavo_bench_attention *b = c->bench;
    const int64_t n = (int64_t)b->batch.n;
    int64_t n_queries = 0, n_pages = 0, most_pages = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t pages = (b->batch.sequences[i].kv_len + b->page_size - 1) / b->page_size;
        n_queries += b->batch.sequences[i].q_len;
        n_pages += pages;
        if (pages > most_pages) most_pages = pages;
    }
    if (n_queries > INT32_MAX || n_pages > INT32_MAX)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "batch (%lld new tokens, %lld pages): more than 2147483647; give fewer "
                           "or shorter sequences with --batch",
                           (long long)n_queries, (long long)n_pages);
    octavo_attention_args *args = &c->args;
    octavo_attention_args_init(args);
    args->queries = ARRAY(b->q_dtype, n_queries, b->heads, b->head_dim);
    args->keys = ARRAY(b->kv_dtype, n_queries, b->kv_heads, b->head_dim);
    args->values = args->keys;
    args->kv_cache = shape_cache(b, n_pages);
    args->kv_lens = ARRAY(OCTAVO_DTYPE_I32, n);
    args->block_tables = ARRAY(OCTAVO_DTYPE_I32, n * most_pages);
    args->query_start_loc = ARRAY(OCTAVO_DTYPE_I32, n + 1);
    args->distribution = ARRAY(OCTAVO_DTYPE_I32, 3);
    args->output = args->queries;
    c->pages = ARRAY(OCTAVO_DTYPE_I32, n_pages);
    if (b->layout == OCTAVO_KV_COLUMNS && args->kv_cache.extents[1] == 0)
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "cache (%lld kv heads of %lld): no page in columns can have this shape; "
                           "give less with --kv-heads or --head-dim",
                           (long long)b->kv_heads, (long long)b->head_dim);

    args->softmax_scale = 1.0 / sqrt((double)b->head_dim);
    args->use_sliding_window = b->window > 0;
    if (args->use_sliding_window) args->sliding_window = b->window;
    args->precision = b->precision;
    args->layout = b->layout;
    args->page_size = b->layout == OCTAVO_KV_COLUMNS ? b->page_size : 0;
    /* As with models: a type of one byte comes with a scale. */
    args->use_k_scale = args->use_v_scale = octavo_dtype_size(b->kv_dtype) == 1;
    if (b->kv_dtype == OCTAVO_DTYPE_INT8) args->k_scale = args->v_scale = 1.0 / 127.0;
    return OCTAVO_OK;
}

/* ---- memory ---- */

/* Bytes of an array, rounded up to where the next may start. */
static bool count_bytes(const octavo_array *array, size_t *bytes) {
    size_t n = octavo_dtype_size(array->dtype);
    for (int32_t i = 0; i < array->n_axes; i++)
        if (!octavo_size_mul(n, (size_t)array->extents[i], &n)) return false;
    if (n > PTRDIFF_MAX) return false;
    *bytes = octavo_align_up(n, OCTAVO_ALIGN);
    return true;
}

/* Gives an array its memory; returns where the next one's is. */
static uint8_t *place(octavo_array *array, uint8_t *at) {
    size_t bytes = 0;
    array->data = at;
    return count_bytes(array, &bytes) ? at + bytes : at;
}

/* The system may promise more than it has and end the process later. */
static size_t machine_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    size_t bytes;
    if (pages <= 0 || page_bytes <= 0) return SIZE_MAX;
    return octavo_size_mul((size_t)pages, (size_t)page_bytes, &bytes) ? bytes : SIZE_MAX;
}

static octavo_status allocate(call *c, octavo_error *error) {
    octavo_attention_args *args = &c->args;
    octavo_array *arrays[] = {&args->kv_cache,
                              &args->queries,
                              &args->keys,
                              &args->values,
                              &args->output,
                              &args->kv_lens,
                              &args->query_start_loc,
                              &args->block_tables,
                              &args->distribution,
                              &c->pages};
    size_t total = 0, bytes = 0;
    bool is_possible = true;
    for (size_t i = 0; i < OCTAVO_COUNT(arrays) && is_possible; i++)
        is_possible = count_bytes(arrays[i], &bytes) && octavo_size_add(total, bytes, &total);
    if (!is_possible || total > machine_bytes())
        return octavo_fail(error, OCTAVO_ERROR_LIMIT,
                           "batch (%lld pages, %lld new tokens): needs more memory than the "
                           "machine's %.1f GB; give fewer or shorter sequences with --batch",
                           (long long)args->kv_cache.extents[0],
                           (long long)args->queries.extents[0], (double)machine_bytes() * 1e-9);
    c->memory = octavo_alloc_aligned(total);
    if (!c->memory) return octavo_fail_memory(error, "batch", total);
    uint8_t *next = c->memory;
    for (size_t i = 0; i < OCTAVO_COUNT(arrays); i++)
        next = place(arrays[i], next);
    return OCTAVO_OK;
}

/* ---- contents ---- */

static void store(octavo_dtype dtype, float value, uint8_t *to) {
    const size_t size = octavo_dtype_size(dtype);
    uint32_t word = octavo_f32_bits(value);
    uint16_t half =
        dtype == OCTAVO_DTYPE_F16 ? octavo_f32_to_f16(value) : octavo_f32_to_bf16(value);
    uint8_t byte = dtype == OCTAVO_DTYPE_FP8_E4M3   ? octavo_f32_to_fp8_e4m3(value)
                   : dtype == OCTAVO_DTYPE_FP8_E5M2 ? octavo_f32_to_fp8_e5m2(value)
                                                    : (uint8_t)(int8_t)(value * 127.0f);
    memcpy(to, size == 4 ? (const void *)&word : size == 2 ? (const void *)&half : &byte, size);
}

/* Fills an array, padding included, with a pattern of random numbers, over and over. */
static octavo_status fill(call *c, const octavo_array *array, octavo_error *error) {
    const size_t size = octavo_dtype_size(array->dtype);
    size_t bytes = 0;
    if (!count_bytes(array, &bytes)) return OCTAVO_OK; /* it was allocated: it can be counted */
    uint8_t *pattern = octavo_alloc(PATTERN * size), *to = array->data;
    if (!pattern) return octavo_fail_memory(error, "random numbers", PATTERN * size);
    for (size_t i = 0; i < PATTERN; i++) {
        float value = (float)(next_random(c) >> 8) * 0x1p-23f - 1.0f;
        store(array->dtype, value, pattern + i * size);
    }
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < PATTERN * size ? bytes - done : PATTERN * size;
        memcpy(to + done, pattern, n);
    }
    octavo_free(pattern);
    return OCTAVO_OK;
}

static void number_pages(call *c) {
    int32_t *pages = c->pages.data;
    const int64_t n = c->pages.extents[0];
    for (int64_t i = 0; i < n; i++)
        pages[i] = (int32_t)i;
    for (int64_t i = n - 1; i > 0 && !c->bench->has_runs; i--) {
        int64_t j = (int64_t)((uint64_t)next_random(c) * (uint64_t)(i + 1) >> 32);
        int32_t page = pages[i];
        pages[i] = pages[j];
        pages[j] = page;
    }
}

static void fill_indices(call *c) {
    const octavo_bench_attention *b = c->bench;
    const octavo_attention_args *args = &c->args;
    const int64_t n = (int64_t)b->batch.n, pages_per_seq = args->block_tables.extents[0] / n;
    const int32_t *next = c->pages.data;
    int32_t *kv_lens = args->kv_lens.data, *starts = args->query_start_loc.data;
    int32_t *kinds = args->distribution.data;
    int32_t n_decodes = 0;
    octavo_assert(next && kv_lens && starts && kinds);
    number_pages(c);
    starts[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const octavo_bench_sequence sequence = b->batch.sequences[i];
        int32_t *table = (int32_t *)args->block_tables.data + i * pages_per_seq;
        const int64_t n_pages = (sequence.kv_len + b->page_size - 1) / b->page_size;
        kv_lens[i] = (int32_t)sequence.kv_len;
        starts[i + 1] = starts[i] + (int32_t)sequence.q_len;
        for (int64_t j = 0; j < pages_per_seq; j++)
            table[j] = j < n_pages ? *next++ : -1; /* the rest is not to be looked at */
        if (sequence.q_len == 1 && n_decodes == i) n_decodes++;
    }
    kinds[0] = kinds[1] = n_decodes;
    kinds[2] = (int32_t)n;
}

static octavo_status prepare(call *c, octavo_error *error) {
    octavo_attention_args *args = &c->args;
    octavo_status status;
    if ((status = shape(c, error)) || (status = allocate(c, error)) ||
        (status = fill(c, &args->kv_cache, error)) || (status = fill(c, &args->queries, error)) ||
        (status = fill(c, &args->keys, error)) || (status = fill(c, &args->values, error)) ||
        (status = fill(c, &args->output, error)))
        return status;
    fill_indices(c);
    return OCTAVO_OK;
}

/* ---- time ---- */

/* Sorts seconds [runs]. */
static octavo_bench_times summarise(double *seconds, int64_t runs) {
    octavo_spread spread = octavo_spread_of(seconds, (size_t)runs);
    return (octavo_bench_times){.best = spread.least, .median = spread.median, .runs = runs};
}

static octavo_status measure(call *c, octavo_attention_context *context, octavo_bench_times *times,
                             octavo_error *error) {
    const int64_t repeat = c->bench->repeat, most = repeat ? repeat : MOST_RUNS;
    double *seconds = octavo_alloc_zero((size_t)most, sizeof *seconds);
    if (!seconds) return octavo_fail_memory(error, "times", (size_t)most * sizeof *seconds);
    octavo_status status = octavo_ragged_paged_attention(context, &c->args, error);
    double spent = 0.0;
    int64_t runs = 0;
    while (status == OCTAVO_OK && runs < most && (repeat || runs < LEAST_RUNS || spent < 1.0)) {
        int64_t start = octavo_clock_ns();
        status = octavo_ragged_paged_attention(context, &c->args, error);
        seconds[runs] = (double)(octavo_clock_ns() - start) * 1e-9;
        spent += seconds[runs++];
    }
    if (status == OCTAVO_OK) *times = summarise(seconds, runs);
    octavo_free(seconds);
    return status;
}

octavo_status octavo_bench_attention_run(const octavo_bench_attention *bench,
                                         octavo_bench_times *times, octavo_error *error) {
    call c = {.bench = bench, .random = 1};
    octavo_attention_context *context = NULL;
    octavo_attention_options options;
    octavo_attention_options_init(&options);
    options.n_threads = bench->threads;
    options.pin = true; /* as the threads that measure the limits are */
    options.isa = bench->isa;
    octavo_status status = octavo_attention_context_create(&context, &options, error);
    if (status == OCTAVO_OK) status = prepare(&c, error);
    if (status == OCTAVO_OK) status = measure(&c, context, times, error);
    octavo_attention_context_destroy(&context);
    octavo_free_aligned(c.memory);
    return status;
}
