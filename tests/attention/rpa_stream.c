/* SPDX-License-Identifier: Apache-2.0 */
#include "rpa_stream.h"

#include "../unit.h"
#include "attention/attention.h"
#include "base/number.h"
#include "rpa_case.h"
#include "rpa_context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NEIGHBOURS = 4 };

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Roughly normal. */
static float random_value(uint32_t *state) {
    float sum = 0.0f;
    for (int i = 0; i < 4; i++)
        sum += (float)next_random(state) / 16777216.0f - 0.5f;
    return 1.7f * sum;
}

static void put(void *data, octavo_dtype dtype, size_t i, float value) {
    if (dtype == OCTAVO_DTYPE_F16)
        ((uint16_t *)data)[i] = octavo_f32_to_f16(value);
    else if (dtype == OCTAVO_DTYPE_BF16)
        ((uint16_t *)data)[i] = octavo_f32_to_bf16(value);
    else
        ((float *)data)[i] = value;
}

static void *random_array(octavo_dtype dtype, size_t n, uint32_t *state) {
    void *data = malloc(n * octavo_dtype_size(dtype) + 1);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        put(data, dtype, i, random_value(state));
    return data;
}

rpa_stream rpa_stream_make(const rpa_shape *shape, int n, uint32_t seed) {
    uint32_t state = seed * 2654435761u + 1;
    const size_t kv = (size_t)n * (size_t)(shape->n_kv_heads * shape->head_dim);
    const size_t q = (size_t)n * (size_t)(shape->n_q_heads * shape->head_dim);
    rpa_stream stream = {.shape = *shape, .n = n};
    stream.queries = random_array(shape->q_dtype, q, &state);
    stream.keys = random_array(shape->kv_dtype, kv, &state);
    stream.values = random_array(shape->kv_dtype, kv, &state);
    stream.sink = random_array(OCTAVO_DTYPE_F32, (size_t)shape->n_q_heads, &state);
    return stream;
}

void rpa_stream_free(rpa_stream *stream) {
    free(stream->queries);
    free(stream->keys);
    free(stream->values);
    free(stream->sink);
}

size_t rpa_stream_output_bytes(const rpa_stream *stream) {
    return (size_t)stream->n * (size_t)(stream->shape.n_q_heads * stream->shape.head_dim) *
           octavo_dtype_size(stream->shape.q_dtype);
}

/* --- running --- */

/* A batch while it runs: the stream is sequence `self` of n_seqs. */
typedef struct world {
    const rpa_stream *stream;
    const rpa_way *way;
    octavo_attention_args args;
    int n_seqs, self, pages_per_seq;
    rpa_stream others[MOST_NEIGHBOURS + 1]; /* [self] is unused */
    int done[MOST_NEIGHBOURS + 1];          /* positions that each has in the cache */
    size_t slot_bytes, lane_bytes;
    int lanes, rows;
    uint8_t *before; /* the cache before a call */
    size_t cache_bytes;
} world;

static octavo_array dense(void *data, octavo_dtype dtype, int32_t n_axes, const int64_t *extents) {
    octavo_array array = {.data = data, .dtype = dtype, .n_axes = n_axes};
    memcpy(array.extents, extents, (size_t)n_axes * sizeof *extents);
    return array;
}

static void make_pages(world *w, int32_t *tables, int n_pages) {
    uint32_t state = w->way->shuffle;
    for (int i = 0; i < n_pages; i++)
        tables[i] = i;
    for (int i = n_pages - 1; i > 0 && state != 0; i--) {
        int k = (int)(next_random(&state) % (uint32_t)(i + 1));
        int32_t page = tables[i];
        tables[i] = tables[k];
        tables[k] = page;
    }
}

static void make_world(world *w, const rpa_stream *stream, const rpa_way *way) {
    const rpa_shape *shape = &stream->shape;
    *w = (world){.stream = stream, .way = way};
    w->n_seqs = 1 + way->neighbours;
    w->self = way->neighbours / 2;
    w->pages_per_seq = (stream->n + way->page_size - 1) / way->page_size;
    const octavo_attention_heads heads = {
        .n_q_heads = shape->n_q_heads, .n_kv_heads = shape->n_kv_heads, .head_dim = shape->head_dim};
    const int64_t packing = 4 / (int64_t)octavo_dtype_size(shape->kv_dtype);
    w->lanes = (int)octavo_attention_lanes(shape->head_dim);
    w->lane_bytes = octavo_dtype_size(shape->kv_dtype);
    w->slot_bytes = (size_t)octavo_attention_slot_elements(&heads, shape->kv_dtype) * w->lane_bytes;
    w->rows = (int)(w->slot_bytes / w->lane_bytes) / w->lanes;
    const int n_pages = w->n_seqs * w->pages_per_seq;
    w->cache_bytes = (size_t)n_pages * (size_t)way->page_size * w->slot_bytes;
    w->before = malloc(w->cache_bytes);
    uint8_t *cache = malloc(w->cache_bytes);
    int32_t *tables = malloc((size_t)n_pages * sizeof *tables);
    assert_true(w->before && cache && tables);
    memset(cache, 0xff, w->cache_bytes);
    make_pages(w, tables, n_pages);
    for (int i = 0; i < w->n_seqs; i++) {
        if (i == w->self) continue;
        w->others[i] = rpa_stream_make(shape, stream->n, 1000u + (uint32_t)i);
        for (int k = 0; k < shape->n_q_heads; k++) /* one call has one sink */
            w->others[i].sink[k] = stream->sink[k];
    }
    octavo_attention_args *args = &w->args;
    octavo_attention_args_init(args);
    args->kv_cache =
        dense(cache, shape->kv_dtype, 5,
              (int64_t[]){n_pages, way->page_size, w->rows / packing, packing, w->lanes});
    args->block_tables = dense(tables, OCTAVO_DTYPE_I32, 1, (int64_t[]){n_pages});
    args->softmax_scale = 1.0 / sqrt((double)shape->head_dim);
    args->use_k_scale = args->use_v_scale = true;
    args->k_scale = 1.25;
    args->v_scale = 0.75;
    args->use_sliding_window = shape->window > 0;
    args->sliding_window = shape->window;
    args->use_logits_soft_cap = shape->soft_cap != 0.0;
    args->logits_soft_cap = shape->soft_cap;
    args->use_q_scale = shape->q_scale != 0.0;
    args->q_scale = shape->q_scale;
    if (shape->has_sink)
        args->attention_sink =
            dense(stream->sink, OCTAVO_DTYPE_F32, 1, (int64_t[]){shape->n_q_heads});
}

static void free_world(world *w) {
    for (int i = 0; i < w->n_seqs; i++) {
        if (i != w->self) rpa_stream_free(&w->others[i]);
    }
    free(w->args.kv_cache.data);
    free(w->args.block_tables.data);
    free(w->before);
}

static uint8_t *slot_of(const world *w, int seq, int position) {
    const int32_t *tables = w->args.block_tables.data;
    size_t page = (size_t)tables[seq * w->pages_per_seq + position / w->way->page_size];
    size_t slot = page * (size_t)w->way->page_size + (size_t)(position % w->way->page_size);
    return (uint8_t *)w->args.kv_cache.data + slot * w->slot_bytes;
}

/* NaN into what must not be read any more: pad lanes and rows, positions behind the window. */
static void poison(world *w) {
    const rpa_shape *shape = &w->stream->shape;
    const size_t used = (size_t)shape->head_dim * w->lane_bytes;
    for (int seq = 0; seq < w->n_seqs; seq++) {
        for (int p = 0; p < w->done[seq]; p++) {
            uint8_t *slot = slot_of(w, seq, p);
            if (shape->window > 0 && p <= w->done[seq] - shape->window) {
                memset(slot, 0xff, w->slot_bytes);
                continue;
            }
            for (int r = 0; r < w->rows; r++) {
                uint8_t *row = slot + (size_t)(r * w->lanes) * w->lane_bytes;
                size_t keep = r < 2 * shape->n_kv_heads ? used : 0;
                memset(row + keep, 0xff, (size_t)w->lanes * w->lane_bytes - keep);
            }
        }
    }
}

/* New slots hold the rows and zeros, all others what they held. */
static void check_cache(world *w, const int *q_lens) {
    const rpa_shape *shape = &w->stream->shape;
    const size_t used = (size_t)shape->head_dim * w->lane_bytes;
    const uint8_t *cache = w->args.kv_cache.data;
    for (int seq = 0; seq < w->n_seqs; seq++) {
        const rpa_stream *from = seq == w->self ? w->stream : &w->others[seq];
        for (int p = w->done[seq]; p < w->done[seq] + q_lens[seq]; p++) {
            uint8_t *want = w->before + (slot_of(w, seq, p) - cache);
            memset(want, 0, w->slot_bytes);
            for (int h = 0; h < shape->n_kv_heads; h++) {
                size_t row = (size_t)(p * shape->n_kv_heads + h) * used;
                size_t to = (size_t)(2 * h * w->lanes) * w->lane_bytes;
                memcpy(want + to, (uint8_t *)from->keys + row, used);
                memcpy(want + to + (size_t)w->lanes * w->lane_bytes, (uint8_t *)from->values + row,
                       used);
            }
        }
    }
    assert_memory_equal(cache, w->before, w->cache_bytes);
}

/* Rows [done, done + q_len) of every sequence, gathered into one array. */
static void *gather(const world *w, const int *q_lens, int which, size_t row_bytes, int n_tokens) {
    uint8_t *all = malloc((size_t)n_tokens * row_bytes + 1), *to = all;
    assert_non_null(all);
    for (int seq = 0; seq < w->n_seqs; seq++) {
        const rpa_stream *from = seq == w->self ? w->stream : &w->others[seq];
        const uint8_t *rows = which == 0 ? from->queries : which == 1 ? from->keys : from->values;
        size_t bytes = (size_t)q_lens[seq] * row_bytes;
        memcpy(to, rows + (size_t)w->done[seq] * row_bytes, bytes);
        to += bytes;
    }
    return all;
}

/* One call; the stream's rows go to out. */
static void step(world *w, octavo_attention_context *context, const int *q_lens, uint8_t *out) {
    const rpa_shape *shape = &w->stream->shape;
    octavo_attention_args *args = &w->args;
    int32_t starts[MOST_NEIGHBOURS + 2] = {0}, lens[MOST_NEIGHBOURS + 1];
    for (int i = 0; i < w->n_seqs; i++) {
        starts[i + 1] = starts[i] + q_lens[i];
        lens[i] = w->done[i] + q_lens[i];
    }
    const int n_tokens = starts[w->n_seqs] + 2; /* two rows of nobody */
    const int64_t q_axes[] = {n_tokens, shape->n_q_heads, shape->head_dim};
    const int64_t kv_axes[] = {n_tokens, shape->n_kv_heads, shape->head_dim};
    const size_t q_row = (size_t)(q_axes[1] * q_axes[2]) * octavo_dtype_size(shape->q_dtype);
    const size_t kv_row = (size_t)(kv_axes[1] * kv_axes[2]) * octavo_dtype_size(shape->kv_dtype);
    args->queries = dense(gather(w, q_lens, 0, q_row, n_tokens), shape->q_dtype, 3, q_axes);
    args->keys = dense(gather(w, q_lens, 1, kv_row, n_tokens), shape->kv_dtype, 3, kv_axes);
    args->values = dense(gather(w, q_lens, 2, kv_row, n_tokens), shape->kv_dtype, 3, kv_axes);
    args->output = dense(malloc((size_t)n_tokens * q_row), shape->q_dtype, 3, q_axes);
    assert_non_null(args->output.data);
    memset(args->output.data, 0xff, (size_t)n_tokens * q_row);
    args->kv_lens = dense(lens, OCTAVO_DTYPE_I32, 1, (int64_t[]){w->n_seqs});
    args->query_start_loc = dense(starts, OCTAVO_DTYPE_I32, 1, (int64_t[]){w->n_seqs + 1});
    args->distribution = dense((int32_t[]){0, 0, w->n_seqs}, OCTAVO_DTYPE_I32, 1, (int64_t[]){3});

    memcpy(w->before, args->kv_cache.data, w->cache_bytes);
    octavo_error error;
    if (octavo_ragged_paged_attention(context, args, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    check_cache(w, q_lens);
    const uint8_t *rows = args->output.data;
    memcpy(out, rows + (size_t)starts[w->self] * q_row, (size_t)q_lens[w->self] * q_row);
    for (size_t i = 0; i < 2 * q_row; i++)
        assert_int_equal(rows[(size_t)starts[w->n_seqs] * q_row + i], 0);
    free(args->queries.data);
    free(args->keys.data);
    free(args->values.data);
    free(args->output.data);
}

void *rpa_stream_run(const rpa_stream *stream, const rpa_way *way) {
    assert_true(way->neighbours <= MOST_NEIGHBOURS);
    world w;
    make_world(&w, stream, way);
    octavo_attention_context *context = rpa_context(way->isa, way->n_threads);
    uint8_t *out = malloc(rpa_stream_output_bytes(stream));
    assert_non_null(out);
    const size_t row_bytes = rpa_stream_output_bytes(stream) / (size_t)stream->n;
    uint32_t state = 77;
    while (w.done[w.self] < stream->n) {
        int q_lens[MOST_NEIGHBOURS + 1];
        for (int i = 0; i < w.n_seqs; i++) { /* others: nothing, decode, a chunk of any length */
            const int left = stream->n - w.done[i];
            const uint32_t kind = next_random(&state) % 4;
            int wanted = kind < 2 ? (int)kind : (int)(next_random(&state) % 50);
            if (i == w.self) wanted = w.done[i] == 0 && way->start > 0 ? way->start : way->chunk;
            q_lens[i] = wanted < left ? wanted : left;
        }
        step(&w, context, q_lens, out + (size_t)w.done[w.self] * row_bytes);
        for (int i = 0; i < w.n_seqs; i++)
            w.done[i] += q_lens[i];
        poison(&w);
    }
    octavo_attention_context_destroy(&context);
    free_world(&w);
    return out;
}

/* --- what a row must be --- */

static double rounded(double x, octavo_dtype dtype) {
    float value = (float)x;
    if (dtype == OCTAVO_DTYPE_F16) return (double)octavo_f16_to_f32(octavo_f32_to_f16(value));
    if (dtype == OCTAVO_DTYPE_BF16) return (double)octavo_bf16_to_f32(octavo_f32_to_bf16(value));
    return (double)value;
}

static double query_value(const rpa_stream *s, int64_t i) {
    const double q = rpa_value(s->queries, s->shape.q_dtype, i);
    if (s->shape.q_scale == 0.0) return q;
    const float divisor = (float)rounded(s->shape.q_scale, s->shape.q_dtype);
    return rounded(rounded((double)((float)q / divisor), s->shape.q_dtype), s->shape.kv_dtype);
}

void rpa_stream_row(const rpa_stream *s, int position, int head, double *row, double *bound) {
    const rpa_shape *shape = &s->shape;
    const int d = shape->head_dim, kv_head = head / (shape->n_q_heads / shape->n_kv_heads);
    const int first =
        shape->window > 0 && position >= shape->window ? position - shape->window + 1 : 0;
    const double scale = 1.25 / sqrt((double)d) * (shape->q_scale != 0.0 ? shape->q_scale : 1.0);
    double *logits = malloc((size_t)(position + 1) * sizeof *logits);
    assert_non_null(logits);
    double top = shape->has_sink ? (double)s->sink[head] : (double)-INFINITY, reach = 0.0,
           largest = 0.0;
    for (int j = first; j <= position; j++) {
        double dot = 0.0, sum = 0.0;
        for (int i = 0; i < d; i++) {
            double product = query_value(s, ((int64_t)position * shape->n_q_heads + head) * d + i) *
                             rpa_value(s->keys, shape->kv_dtype,
                                       ((int64_t)j * shape->n_kv_heads + kv_head) * d + i);
            dot += product;
            sum += fabs(product);
        }
        logits[j] = dot * scale;
        if (shape->soft_cap != 0.0) logits[j] = shape->soft_cap * tanh(logits[j] / shape->soft_cap);
        if (logits[j] > top) top = logits[j];
        if (sum * scale > reach) reach = sum * scale;
    }
    double weights = shape->has_sink ? exp((double)s->sink[head] - top) : 0.0;
    memset(row, 0, (size_t)d * sizeof *row);
    for (int j = first; j <= position; j++) {
        const double weight = exp(logits[j] - top);
        weights += weight;
        for (int i = 0; i < d; i++) {
            double v = rpa_value(s->values, shape->kv_dtype,
                                 ((int64_t)j * shape->n_kv_heads + kv_head) * d + i);
            row[i] += weight * v;
            if (fabs(v) > largest) largest = fabs(v);
        }
    }
    for (int i = 0; i < d; i++)
        row[i] *= 0.75 / weights;
    const double logit_error =
        ldexp(4.0 + d / 16.0, -24) * reach + ldexp(fabs(shape->soft_cap), -21);
    *bound = 0.75 * largest * (2.0 * logit_error + ldexp(1.0, -19));
    free(logits);
}
