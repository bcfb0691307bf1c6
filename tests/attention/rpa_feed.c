/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds a stream to the call and watches what the call does to the cache.
 */
#include "../unit.h"
#include "attention/attention.h"
#include "rpa_context.h"
#include "rpa_stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NEIGHBOURS = 4, GROUP = 16 };

/* A batch while it runs: the stream is sequence `self` of n_seqs. */
typedef struct world {
    const rpa_stream *stream;
    const rpa_way *way;
    octavo_attention_args args;
    int n_seqs, self, pages_per_seq;
    rpa_stream others[MOST_NEIGHBOURS + 1]; /* [self] is unused */
    int done[MOST_NEIGHBOURS + 1];          /* positions that each has in the cache */
    size_t size;                            /* bytes of an element of the cache */
    size_t page_bytes;
    uint8_t *memory; /* of the cache, which begins anywhere in its first line */
    uint8_t *before; /* the cache before a call */
    size_t cache_bytes;
} world;

static size_t up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

/* --- where things lie, as octavo/attention.h says --- */

typedef struct element {
    int seq, position, head, lane;
    bool is_value;
} element;

static size_t row_lanes(const world *w) { /* OCTAVO_KV_ROWS */
    return up((size_t)w->stream->shape.head_dim, 128);
}

static size_t slot_rows(const world *w) {
    return up((size_t)(2 * w->stream->shape.n_kv_heads), 4 / w->size);
}

/* Bytes of a value's row in OCTAVO_KV_COLUMNS, or of a key's where values are part of it. */
static size_t column_row(const world *w) {
    const rpa_shape *shape = &w->stream->shape;
    if (shape->value_in_key) return up((size_t)shape->head_dim * w->size, w->size == 4 ? 64 : 32);
    return up((size_t)rpa_value_dim(shape), 16) * w->size;
}

static size_t group_bytes(const world *w) {
    if (w->stream->shape.value_in_key) return 0;
    return up((size_t)w->stream->shape.head_dim * w->size, 4) * GROUP;
}

static size_t head_bytes(const world *w) {
    const size_t page_size = (size_t)w->way->page_size;
    return up(up(page_size, GROUP) / GROUP * group_bytes(w) + page_size * column_row(w), 64);
}

static uint8_t *address(const world *w, const element *e) {
    const int32_t *tables = w->args.block_tables.data;
    const size_t page = (size_t)tables[e->seq * w->pages_per_seq + e->position / w->way->page_size];
    const size_t slot = (size_t)(e->position % w->way->page_size), lane = (size_t)e->lane * w->size;
    uint8_t *at = (uint8_t *)w->args.kv_cache.data + page * w->page_bytes;
    if (w->way->layout == OCTAVO_KV_ROWS) {
        const size_t row = slot * slot_rows(w) + (size_t)(2 * e->head + e->is_value);
        return at + row * row_lanes(w) * w->size + lane;
    }
    at += (size_t)e->head * head_bytes(w);
    if (w->stream->shape.value_in_key) return at + slot * column_row(w) + lane;
    if (e->is_value) {
        at += up((size_t)w->way->page_size, GROUP) / GROUP * group_bytes(w);
        return at + slot * column_row(w) + lane;
    }
    return at + slot / GROUP * group_bytes(w) + lane / 4 * 4 * GROUP + slot % GROUP * 4 + lane % 4;
}

/* Calls visit for every lane of keys and values of a position; with pads for lanes that pad a key's
 * last word too. */
typedef void visit_fn(world *w, const element *e, uint8_t *at);

static void visit_slot(world *w, int seq, int position, bool with_pads, visit_fn *visit) {
    const rpa_shape *shape = &w->stream->shape;
    int key_lanes = shape->head_dim;
    if (with_pads && w->way->layout == OCTAVO_KV_COLUMNS && !shape->value_in_key)
        key_lanes = (int)(group_bytes(w) / GROUP / w->size);
    for (int h = 0; h < shape->n_kv_heads; h++) {
        for (int i = 0; i < key_lanes; i++) {
            const element e = {seq, position, h, i, false};
            visit(w, &e, address(w, &e));
        }
        for (int i = 0; i < rpa_value_dim(shape) && !shape->value_in_key; i++) {
            const element e = {seq, position, h, i, true};
            visit(w, &e, address(w, &e));
        }
    }
}

/* --- the world --- */

static void make_pages(world *w, int32_t *tables, int n_pages) {
    uint32_t state = w->way->shuffle;
    for (int i = 0; i < n_pages; i++)
        tables[i] = i;
    for (int i = n_pages - 1; i > 0 && state != 0; i--) {
        int k = (int)(rpa_random(&state) % (uint32_t)(i + 1));
        int32_t page = tables[i];
        tables[i] = tables[k];
        tables[k] = page;
    }
}

static void set_options(world *w) {
    const rpa_stream *s = w->stream;
    const rpa_shape *shape = &s->shape;
    octavo_attention_args *args = &w->args;
    args->softmax_scale = 1.0 / sqrt((double)shape->head_dim);
    args->use_k_scale = args->use_v_scale = true;
    args->k_scale = rpa_k_scale(shape);
    args->v_scale = RPA_V_SCALE;
    args->use_sliding_window = shape->window > 0;
    args->sliding_window = shape->window;
    args->use_logits_soft_cap = shape->soft_cap != 0.0;
    args->logits_soft_cap = shape->soft_cap;
    args->use_q_scale = shape->q_scale != 0.0;
    args->q_scale = shape->q_scale;
    args->chunk_size = shape->chunk;
    args->type = shape->type;
    args->precision = shape->precision;
    args->use_output_scale = shape->output_scale != 0.0;
    args->output_scale = shape->output_scale;
    const int64_t q_heads[] = {shape->n_q_heads}, kv_heads[] = {shape->n_kv_heads};
    if (shape->has_sink)
        args->attention_sink = octavo_array_dense(s->sink, OCTAVO_DTYPE_F32, 1, q_heads);
    if (shape->has_alibi)
        args->alibi_slopes = octavo_array_dense(s->slopes, OCTAVO_DTYPE_F32, 1, q_heads);
    if (shape->has_head_scales) {
        args->k_scales = octavo_array_dense(s->k_scales, OCTAVO_DTYPE_F32, 1, kv_heads);
        args->v_scales = octavo_array_dense(s->v_scales, OCTAVO_DTYPE_F32, 1, kv_heads);
    }
}

static void set_way(world *w) {
    const rpa_shape *shape = &w->stream->shape;
    octavo_attention_args *args = &w->args;
    args->layout = w->way->layout;
    args->page_size = args->layout == OCTAVO_KV_COLUMNS ? w->way->page_size : 0;
    args->value_in_key = shape->value_in_key;
    args->value_dim = shape->value_in_key ? rpa_value_dim(shape) : 0;
    args->num_queries_per_block = w->way->queries_per_block;
    args->chunk_prefill_size = w->way->queries_per_block / 2;
    args->num_kv_pages_per_block = w->way->pages_per_block;
    const octavo_attention_heads heads = {.n_q_heads = shape->n_q_heads,
                                          .n_kv_heads = shape->n_kv_heads,
                                          .head_dim = shape->head_dim,
                                          .value_dim = rpa_value_dim(shape)};
    if (w->way->is_tight)
        args->vmem_limit_bytes = (int64_t)octavo_attention_least_scratch(&heads) + 5000;
}

static void make_world(world *w, const rpa_stream *stream, const rpa_way *way) {
    const rpa_shape *shape = &stream->shape;
    *w = (world){.stream = stream, .way = way};
    w->n_seqs = 1 + way->neighbours;
    w->self = way->neighbours / 2;
    w->size = octavo_dtype_size(shape->kv_dtype);
    w->pages_per_seq = (stream->n + way->page_size - 1) / way->page_size;
    const int n_pages = w->n_seqs * w->pages_per_seq;
    w->page_bytes = way->layout == OCTAVO_KV_ROWS
                        ? (size_t)way->page_size * slot_rows(w) * row_lanes(w) * w->size
                        : (size_t)shape->n_kv_heads * head_bytes(w);
    w->cache_bytes = (size_t)n_pages * w->page_bytes;
    w->before = malloc(w->cache_bytes);
    w->memory = aligned_alloc(64, up(w->cache_bytes + 64, 64));
    uint8_t *cache = w->memory + (way->shuffle + (uint32_t)way->neighbours) % 16 * 4;
    int32_t *tables = malloc((size_t)n_pages * sizeof *tables);
    assert_true(w->before && w->memory && tables);
    memset(cache, 0xff, w->cache_bytes);
    make_pages(w, tables, n_pages);
    for (int i = 0; i < w->n_seqs; i++) {
        if (i == w->self) continue;
        w->others[i] = rpa_stream_make(shape, stream->n, 1000u + (uint32_t)i);
        rpa_stream_share(&w->others[i], stream);
    }
    octavo_attention_args_init(&w->args);
    w->args.block_tables = octavo_array_dense(tables, OCTAVO_DTYPE_I32, 1, (int64_t[]){n_pages});
    const int64_t packing = 4 / (int64_t)w->size;
    if (way->layout == OCTAVO_KV_ROWS)
        w->args.kv_cache =
            octavo_array_dense(cache, shape->kv_dtype, 5,
                               (int64_t[]){n_pages, way->page_size, (int64_t)slot_rows(w) / packing,
                                           packing, (int64_t)row_lanes(w)});
    else
        w->args.kv_cache = octavo_array_dense(
            cache, shape->kv_dtype, 2, (int64_t[]){n_pages, (int64_t)(w->page_bytes / w->size)});
    set_options(w);
    set_way(w);
}

static void free_world(world *w) {
    for (int i = 0; i < w->n_seqs; i++) {
        if (i != w->self) rpa_stream_free(&w->others[i]);
    }
    free(w->memory);
    free(w->args.block_tables.data);
    free(w->before);
}

/* --- the cache between calls --- */

static const rpa_stream *stream_of(const world *w, int seq) {
    return seq == w->self ? w->stream : &w->others[seq];
}

static void restore(world *w, const element *e, uint8_t *at) {
    (void)e;
    memcpy(at, w->before + (at - (uint8_t *)w->args.kv_cache.data), w->size);
}

/* NaN into what must not be read any more: pads and positions behind the window. */
static void poison(world *w) {
    const int window = w->stream->shape.window;
    memcpy(w->before, w->args.kv_cache.data, w->cache_bytes);
    memset(w->args.kv_cache.data, 0xff, w->cache_bytes);
    for (int seq = 0; seq < w->n_seqs; seq++) {
        const int done = w->done[seq];
        for (int p = window > 0 && done > window ? done - window + 1 : 0; p < done; p++)
            visit_slot(w, seq, p, true, restore);
    }
}

/* What a call writes, into `before`. */
static void clear(world *w, const element *e, uint8_t *at) {
    (void)e;
    memset(w->before + (at - (uint8_t *)w->args.kv_cache.data), 0, w->size);
}

static void expect(world *w, const element *e, uint8_t *at) {
    const rpa_stream *from = stream_of(w, e->seq);
    const int lanes = e->is_value ? rpa_value_dim(&from->shape) : from->shape.head_dim;
    const size_t i = (size_t)((e->position * from->shape.n_kv_heads + e->head) * lanes + e->lane);
    const uint8_t *rows = e->is_value ? from->cached_values : from->cached_keys;
    memcpy(w->before + (at - (uint8_t *)w->args.kv_cache.data), rows + i * w->size, w->size);
}

/* Pads of a row become 0. */
static void clear_rows(world *w, int seq, int position) {
    const rpa_shape *shape = &w->stream->shape;
    const uint8_t *cache = w->args.kv_cache.data;
    element e = {.seq = seq, .position = position};
    if (w->way->layout == OCTAVO_KV_ROWS) {
        memset(w->before + (address(w, &e) - cache), 0, slot_rows(w) * row_lanes(w) * w->size);
        return;
    }
    e.is_value = !shape->value_in_key;
    for (e.head = 0; e.head < shape->n_kv_heads; e.head++)
        memset(w->before + (address(w, &e) - cache), 0, column_row(w));
}

/* New slots hold the rows and zeros, all else what it held. */
static void check_cache(world *w, const int *q_lens) {
    for (int seq = 0; seq < w->n_seqs; seq++) {
        for (int p = w->done[seq]; p < w->done[seq] + q_lens[seq]; p++) {
            clear_rows(w, seq, p);
            visit_slot(w, seq, p, true, clear);
            visit_slot(w, seq, p, false, expect);
        }
    }
    assert_memory_equal(w->args.kv_cache.data, w->before, w->cache_bytes);
}

/* --- one call --- */

/* Rows [done, done + q_len) of every sequence, gathered into one array. */
static void *gather(const world *w, const int *q_lens, int which, size_t row_bytes, int n_tokens) {
    uint8_t *all = malloc((size_t)n_tokens * row_bytes + 1), *to = all;
    assert_non_null(all);
    for (int seq = 0; seq < w->n_seqs; seq++) {
        const rpa_stream *from = stream_of(w, seq);
        const uint8_t *rows = which == 0 ? from->queries : which == 1 ? from->keys : from->values;
        size_t bytes = (size_t)q_lens[seq] * row_bytes;
        memcpy(to, rows + (size_t)w->done[seq] * row_bytes, bytes);
        to += bytes;
    }
    return all;
}

static octavo_array gather_array(const world *w, const int *q_lens, int which, int n_tokens,
                                 int heads, int lanes) {
    const octavo_dtype dtype = which == 0 ? w->stream->shape.q_dtype : w->stream->new_dtype;
    const size_t row = (size_t)(heads * lanes) * octavo_dtype_size(dtype);
    return octavo_array_dense(gather(w, q_lens, which, row, n_tokens), dtype, 3,
                              (int64_t[]){n_tokens, heads, lanes});
}

/* The stream's rows go to out. */
static void step(world *w, octavo_attention_context *context, const int *q_lens, uint8_t *out) {
    const rpa_shape *shape = &w->stream->shape;
    octavo_attention_args *args = &w->args;
    int32_t starts[MOST_NEIGHBOURS + 2] = {0}, lens[MOST_NEIGHBOURS + 1];
    for (int i = 0; i < w->n_seqs; i++) {
        starts[i + 1] = starts[i] + q_lens[i];
        lens[i] = w->done[i] + q_lens[i];
    }
    const int n_tokens = starts[w->n_seqs] + 2; /* two rows of nobody */
    const int dv = rpa_value_dim(shape);
    args->queries = gather_array(w, q_lens, 0, n_tokens, shape->n_q_heads, shape->head_dim);
    args->keys = gather_array(w, q_lens, 1, n_tokens, shape->n_kv_heads, shape->head_dim);
    args->values = (octavo_array){0};
    if (!shape->value_in_key)
        args->values = gather_array(w, q_lens, 2, n_tokens, shape->n_kv_heads, dv);
    const size_t row = (size_t)(shape->n_q_heads * dv) * octavo_dtype_size(rpa_out_dtype(shape));
    args->output = octavo_array_dense(malloc((size_t)n_tokens * row), rpa_out_dtype(shape), 3,
                                      (int64_t[]){n_tokens, shape->n_q_heads, dv});
    assert_non_null(args->output.data);
    memset(args->output.data, 0xff, (size_t)n_tokens * row);
    args->kv_lens = octavo_array_dense(lens, OCTAVO_DTYPE_I32, 1, (int64_t[]){w->n_seqs});
    args->query_start_loc =
        octavo_array_dense(starts, OCTAVO_DTYPE_I32, 1, (int64_t[]){w->n_seqs + 1});
    const int prefill_end = w->way->queries_per_block > 0 ? w->n_seqs : 0;
    args->distribution = octavo_array_dense((int32_t[]){0, prefill_end, w->n_seqs},
                                            OCTAVO_DTYPE_I32, 1, (int64_t[]){3});

    memcpy(w->before, args->kv_cache.data, w->cache_bytes);
    octavo_error error;
    if (octavo_ragged_paged_attention(context, args, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    check_cache(w, q_lens);
    const uint8_t *rows = args->output.data;
    memcpy(out, rows + (size_t)starts[w->self] * row, (size_t)q_lens[w->self] * row);
    for (size_t i = 0; i < 2 * row; i++)
        assert_int_equal(rows[(size_t)starts[w->n_seqs] * row + i], 0);
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
            const uint32_t kind = rpa_random(&state) % 4;
            int wanted = kind < 2 ? (int)kind : (int)(rpa_random(&state) % 50);
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
