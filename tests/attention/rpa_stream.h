/* SPDX-License-Identifier: Apache-2.0
 *
 * A sequence that is fed to ragged paged attention in many ways - chunk by chunk, alone or among
 * others, on any pages, in either layout - and what each of its rows must be, in double.
 */
#ifndef OCTAVO_TESTS_RPA_STREAM_H
#define OCTAVO_TESTS_RPA_STREAM_H

#include "octavo/attention.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 and false: without. */
typedef struct rpa_shape {
    int n_q_heads, n_kv_heads, head_dim;
    octavo_dtype q_dtype, kv_dtype;
    int window;
    double soft_cap;
    double q_scale;
    bool has_sink;
    bool has_alibi;
    bool has_head_scales;         /* of keys and values */
    bool is_quantised_on_the_way; /* keys and values come in q_dtype */
    int chunk;                    /* chunked local attention */
    int value_dim;                /* OCTAVO_KV_COLUMNS only */
    bool value_in_key;            /* likewise */
    octavo_attention_type type;   /* encoder: fed in one chunk only */
    octavo_attention_precision precision;
    double output_scale; /* out_dtype is then the output's type */
    octavo_dtype out_dtype;
} rpa_shape;

int rpa_value_dim(const rpa_shape *shape);
octavo_dtype rpa_out_dtype(const rpa_shape *shape);
double rpa_k_scale(const rpa_shape *shape);
#define RPA_V_SCALE 0.75

/* Random rows for n positions. */
typedef struct rpa_stream {
    rpa_shape shape;
    int n;
    octavo_dtype new_dtype; /* of keys and values */
    void *queries;          /* [n][n_q_heads][head_dim] q_dtype */
    void *keys;             /* [n][n_kv_heads][head_dim] new_dtype */
    void *values;           /* [n][n_kv_heads][value_dim] */
    void *cached_keys;      /* the same in the cache's type: what the cache must hold */
    void *cached_values;
    float *sink;     /* [n_q_heads] */
    float *slopes;   /* [n_q_heads] */
    float *k_scales; /* [n_kv_heads], of which the first is the same for all streams of a shape */
    float *v_scales;
} rpa_stream;

rpa_stream rpa_stream_make(const rpa_shape *shape, int n, uint32_t seed);
void rpa_stream_free(rpa_stream *stream);
/* What is the call's rather than a sequence's: sink, slopes, scales. */
void rpa_stream_share(rpa_stream *to, const rpa_stream *from);

/* How to feed it. */
typedef struct rpa_way {
    const char *isa;
    int n_threads;
    int page_size;
    uint32_t shuffle; /* of pages; 0 = in order */
    int start;        /* positions that the first call takes; 0 = like the others */
    int chunk;        /* positions that each further call takes */
    int neighbours;   /* other sequences in the batch, before and after */
    octavo_kv_layout layout;
    int queries_per_block; /* tuning, 0 = none */
    int pages_per_block;
    bool is_tight; /* hardly any scratch */
} rpa_way;

/* Runs all positions; output [n][n_q_heads][value_dim] in the output's type, for the caller to
 * free. Slots that nobody wrote, pad lanes, and positions that the window has left behind hold NaN
 * throughout; what a call must not change is checked. */
void *rpa_stream_run(const rpa_stream *stream, const rpa_way *way);
size_t rpa_stream_output_bytes(const rpa_stream *stream);

/* The row of one position and head in double, and what f32 may differ from it. */
void rpa_stream_row(const rpa_stream *stream, int position, int head, double *row, double *bound);

uint32_t rpa_random(uint32_t *state);
/* As the call rounds it; fp8 and int8 are clipped. */
void rpa_put(void *data, octavo_dtype dtype, int64_t i, float value);

#endif
