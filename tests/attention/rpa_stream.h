/* SPDX-License-Identifier: Apache-2.0
 *
 * A sequence that is fed to ragged paged attention in many ways - chunk by chunk, alone or among
 * others, on any pages - and what each of its rows must be, in double.
 */
#ifndef OCTAVO_TESTS_RPA_STREAM_H
#define OCTAVO_TESTS_RPA_STREAM_H

#include "octavo/attention.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rpa_shape {
    int n_q_heads, n_kv_heads, head_dim;
    octavo_dtype q_dtype, kv_dtype;
    int window;      /* 0 = none */
    double soft_cap; /* 0 = none */
    double q_scale;  /* 0 = none */
    bool has_sink;
} rpa_shape;

/* Random rows for n positions. */
typedef struct rpa_stream {
    rpa_shape shape;
    int n;
    void *queries; /* [n][n_q_heads][head_dim] q_dtype */
    void *keys;    /* [n][n_kv_heads][head_dim] kv_dtype */
    void *values;
    float *sink; /* [n_q_heads] */
} rpa_stream;

rpa_stream rpa_stream_make(const rpa_shape *shape, int n, uint32_t seed);
void rpa_stream_free(rpa_stream *stream);

/* How to feed it. */
typedef struct rpa_way {
    const char *isa;
    int n_threads;
    int page_size;
    uint32_t shuffle; /* of pages; 0 = in order */
    int start;        /* positions that the first call takes; 0 = like the others */
    int chunk;        /* positions that each further call takes */
    int neighbours;   /* other sequences in the batch, before and after */
} rpa_way;

/* Runs all positions; output [n][n_q_heads][head_dim] in q_dtype, for the caller to free. Slots
 * that nobody wrote, pad lanes, and positions that the window has left behind hold NaN throughout;
 * slots that a call must not change are checked. */
void *rpa_stream_run(const rpa_stream *stream, const rpa_way *way);
size_t rpa_stream_output_bytes(const rpa_stream *stream);

/* The row of one position and head in double, and what f32 may differ from it. */
void rpa_stream_row(const rpa_stream *stream, int position, int head, double *row, double *bound);

#endif
