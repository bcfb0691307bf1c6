/* SPDX-License-Identifier: Apache-2.0 */
#include "rpa_stream.h"

#include "../unit.h"
#include "base/number.h"
#include "rpa_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t rpa_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Roughly normal. */
static float random_value(uint32_t *state) {
    float sum = 0.0f;
    for (int i = 0; i < 4; i++)
        sum += (float)rpa_random(state) / 16777216.0f - 0.5f;
    return 1.7f * sum;
}

static int8_t to_int8(float value) {
    if (!(value == value)) return 0;
    float whole = rintf(value);
    return (int8_t)(whole > 127.0f ? 127.0f : whole < -128.0f ? -128.0f : whole);
}

void rpa_put(void *data, octavo_dtype dtype, int64_t i, float value) {
    switch (dtype) {
    case OCTAVO_DTYPE_F16:
        ((uint16_t *)data)[i] = octavo_f32_to_f16(value);
        break;
    case OCTAVO_DTYPE_BF16:
        ((uint16_t *)data)[i] = octavo_f32_to_bf16(value);
        break;
    case OCTAVO_DTYPE_FP8_E4M3:
        ((uint8_t *)data)[i] = octavo_f32_to_fp8_e4m3(value);
        break;
    case OCTAVO_DTYPE_FP8_E5M2:
        ((uint8_t *)data)[i] = octavo_f32_to_fp8_e5m2(value);
        break;
    case OCTAVO_DTYPE_INT8:
        ((int8_t *)data)[i] = to_int8(value);
        break;
    default:
        ((float *)data)[i] = value;
        break;
    }
}

int rpa_value_dim(const rpa_shape *shape) {
    return shape->value_dim > 0 ? shape->value_dim : shape->head_dim;
}

octavo_dtype rpa_out_dtype(const rpa_shape *shape) {
    return shape->output_scale != 0.0 ? shape->out_dtype : shape->q_dtype;
}

/* Values of an int8 cache have a spread of some tens. */
double rpa_k_scale(const rpa_shape *shape) {
    return shape->kv_dtype == OCTAVO_DTYPE_INT8 ? 0.03125 : 1.25;
}

static void *make_array(octavo_dtype dtype, int64_t n) {
    void *data = malloc((size_t)n * octavo_dtype_size(dtype) + 1);
    assert_non_null(data);
    return data;
}

static void *random_array(octavo_dtype dtype, int64_t n, float scale, uint32_t *state) {
    void *data = make_array(dtype, n);
    for (int64_t i = 0; i < n; i++)
        rpa_put(data, dtype, i, scale * random_value(state));
    return data;
}

static float *random_scales(int n, uint32_t *state) {
    float *scales = make_array(OCTAVO_DTYPE_F32, n);
    for (int i = 0; i < n; i++)
        scales[i] = 0.5f + (float)(rpa_random(state) % 100) / 100.0f;
    return scales;
}

/* What the cache must hold: the rows divided by their scale and rounded, or as they are. */
static void *cached(const rpa_stream *s, const void *rows, double scale, const float *scales,
                    int lanes) {
    const rpa_shape *shape = &s->shape;
    const int64_t n = (int64_t)s->n * shape->n_kv_heads * lanes;
    void *data = make_array(shape->kv_dtype, n);
    for (int64_t i = 0; i < n; i++) {
        float x = (float)rpa_value(rows, s->new_dtype, i), divisor = (float)scale;
        if (shape->has_head_scales) divisor *= scales[i / lanes % shape->n_kv_heads];
        rpa_put(data, shape->kv_dtype, i, shape->is_quantised_on_the_way ? x / divisor : x);
    }
    return data;
}

rpa_stream rpa_stream_make(const rpa_shape *shape, int n, uint32_t seed) {
    uint32_t state = seed * 2654435761u + 1;
    const int64_t tokens = n, d = shape->head_dim, dv = rpa_value_dim(shape);
    rpa_stream s = {.shape = *shape, .n = n, .new_dtype = shape->kv_dtype};
    if (shape->is_quantised_on_the_way) s.new_dtype = shape->q_dtype;
    const float spread = s.new_dtype == OCTAVO_DTYPE_INT8 ? 40.0f : 1.0f;
    s.queries = random_array(shape->q_dtype, tokens * shape->n_q_heads * d, 1.0f, &state);
    s.keys = random_array(s.new_dtype, tokens * shape->n_kv_heads * d, spread, &state);
    s.values = random_array(s.new_dtype, tokens * shape->n_kv_heads * dv, spread, &state);
    if (shape->value_in_key) {
        const size_t size = octavo_dtype_size(s.new_dtype);
        for (int64_t r = 0; r < tokens * shape->n_kv_heads; r++)
            memcpy((uint8_t *)s.values + (size_t)(r * dv) * size,
                   (uint8_t *)s.keys + (size_t)(r * d) * size, (size_t)dv * size);
    }
    s.sink = random_array(OCTAVO_DTYPE_F32, shape->n_q_heads, 1.0f, &state);
    s.slopes = random_scales(shape->n_q_heads, &state);
    s.k_scales = random_scales(shape->n_kv_heads, &state);
    s.v_scales = random_scales(shape->n_kv_heads, &state);
    s.cached_keys = cached(&s, s.keys, rpa_k_scale(shape), s.k_scales, (int)d);
    s.cached_values = cached(&s, s.values, RPA_V_SCALE, s.v_scales, (int)dv);
    return s;
}

void rpa_stream_share(rpa_stream *to, const rpa_stream *from) {
    const size_t q = (size_t)to->shape.n_q_heads * sizeof(float);
    const size_t kv = (size_t)to->shape.n_kv_heads * sizeof(float);
    memcpy(to->sink, from->sink, q);
    memcpy(to->slopes, from->slopes, q);
    memcpy(to->k_scales, from->k_scales, kv);
    memcpy(to->v_scales, from->v_scales, kv);
    free(to->cached_keys);
    free(to->cached_values);
    to->cached_keys =
        cached(to, to->keys, rpa_k_scale(&to->shape), to->k_scales, to->shape.head_dim);
    to->cached_values =
        cached(to, to->values, RPA_V_SCALE, to->v_scales, rpa_value_dim(&to->shape));
}

void rpa_stream_free(rpa_stream *stream) {
    void *all[] = {stream->queries,     stream->keys,          stream->values,
                   stream->cached_keys, stream->cached_values, stream->sink,
                   stream->slopes,      stream->k_scales,      stream->v_scales};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

size_t rpa_stream_output_bytes(const rpa_stream *stream) {
    const rpa_shape *shape = &stream->shape;
    return (size_t)stream->n * (size_t)(shape->n_q_heads * rpa_value_dim(shape)) *
           octavo_dtype_size(rpa_out_dtype(shape));
}

/* --- what a row must be --- */

static double rounded(double x, octavo_dtype dtype) {
    uint8_t one[4];
    uint16_t two[2];
    float four;
    void *at = octavo_dtype_size(dtype) == 4   ? (void *)&four
               : octavo_dtype_size(dtype) == 2 ? (void *)two
                                               : (void *)one;
    rpa_put(at, dtype, 0, (float)x);
    return rpa_value(at, dtype, 0);
}

static double query_value(const rpa_stream *s, int64_t i) {
    const double q = rpa_value(s->queries, s->shape.q_dtype, i);
    if (s->shape.q_scale == 0.0) return q;
    const float divisor = (float)rounded(s->shape.q_scale, s->shape.q_dtype);
    const double y = rounded((double)((float)q / divisor), s->shape.q_dtype);
    return s->shape.kv_dtype == OCTAVO_DTYPE_INT8 ? trunc(y) : rounded(y, s->shape.kv_dtype);
}

static bool sees(const rpa_stream *s, int position, int key) {
    const rpa_shape *shape = &s->shape;
    if (shape->type == OCTAVO_ATTENTION_DECODER && key > position) return false;
    if (shape->window > 0 && abs(position - key) >= shape->window) return false;
    return shape->chunk == 0 || position / shape->chunk == key / shape->chunk;
}

/* q . k, and the sum of the products' sizes. */
static double dot_product(const rpa_stream *s, int position, int head, int key, double *size) {
    const rpa_shape *shape = &s->shape;
    const int d = shape->head_dim, kv_head = head / (shape->n_q_heads / shape->n_kv_heads);
    double dot = 0.0;
    *size = 0.0;
    for (int i = 0; i < d; i++) {
        double product = query_value(s, ((int64_t)position * shape->n_q_heads + head) * d + i) *
                         rpa_value(s->cached_keys, shape->kv_dtype,
                                   ((int64_t)key * shape->n_kv_heads + kv_head) * d + i);
        dot += product;
        *size += fabs(product);
    }
    return dot;
}

void rpa_stream_row(const rpa_stream *s, int position, int head, double *row, double *bound) {
    const rpa_shape *shape = &s->shape;
    const int d = shape->head_dim, dv = rpa_value_dim(shape);
    const int kv_head = head / (shape->n_q_heads / shape->n_kv_heads);
    double scale = rpa_k_scale(shape) / sqrt((double)d), v_scale = RPA_V_SCALE;
    if (shape->q_scale != 0.0) scale *= shape->q_scale;
    if (shape->has_head_scales) {
        scale *= (double)s->k_scales[kv_head];
        v_scale *= (double)s->v_scales[kv_head];
    }
    if (shape->output_scale != 0.0) v_scale /= shape->output_scale;
    double *logits = malloc((size_t)s->n * sizeof *logits);
    assert_non_null(logits);
    double top = shape->has_sink ? (double)s->sink[head] : (double)-INFINITY, reach = 0.0,
           largest = 0.0;
    for (int j = 0; j < s->n; j++) {
        if (!sees(s, position, j)) continue;
        double size;
        logits[j] = dot_product(s, position, head, j, &size) * scale;
        if (shape->soft_cap != 0.0) logits[j] = shape->soft_cap * tanh(logits[j] / shape->soft_cap);
        if (shape->has_alibi) logits[j] -= (double)s->slopes[head] * abs(position - j);
        if (logits[j] > top) top = logits[j];
        if (size * scale > reach) reach = size * scale;
    }
    double weights = shape->has_sink ? exp((double)s->sink[head] - top) : 0.0;
    memset(row, 0, (size_t)dv * sizeof *row);
    for (int j = 0; j < s->n; j++) {
        if (!sees(s, position, j)) continue;
        const double weight = exp(logits[j] - top);
        weights += weight;
        for (int i = 0; i < dv; i++) {
            double v = rpa_value(s->cached_values, shape->kv_dtype,
                                 ((int64_t)j * shape->n_kv_heads + kv_head) * dv + i);
            row[i] += weight * v;
            if (fabs(v) > largest) largest = fabs(v);
        }
    }
    for (int i = 0; i < dv; i++)
        row[i] *= v_scale / weights;
    double logit_error = ldexp(4.0 + d / 16.0, -24) * reach + ldexp(fabs(shape->soft_cap), -21);
    if (shape->has_alibi) logit_error += ldexp(2.0 * s->n, -24);
    *bound = v_scale * largest * (2.0 * logit_error + ldexp(1.0, -19));
    if (shape->precision == OCTAVO_ATTENTION_BF16) *bound += v_scale * largest * 0x1p-8;
    free(logits);
}
