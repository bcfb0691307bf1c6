/* SPDX-License-Identifier: Apache-2.0
 *
 * The ends of a row: a query on its way in, an accumulator on its way out.
 */
#include "attention/internal.h"
#include "base/compiler.h"
#include "base/number.h"

#include <math.h>

float octavo_attention_largest(octavo_dtype dtype) {
    switch (dtype) {
    case OCTAVO_DTYPE_INT8:
        return 127.0f;
    case OCTAVO_DTYPE_FP8_E4M3:
        return 448.0f;
    case OCTAVO_DTYPE_FP8_E5M2:
        return 57344.0f;
    case OCTAVO_DTYPE_F16:
        return 65504.0f;
    case OCTAVO_DTYPE_BF16:
        return octavo_bf16_to_f32(0x7f7f);
    default:
        return octavo_f32_from_bits(0x7f7fffff);
    }
}

static float rounded(float x, octavo_dtype dtype) {
    switch (dtype) {
    case OCTAVO_DTYPE_FP8_E4M3:
        return octavo_fp8_e4m3_to_f32(octavo_f32_to_fp8_e4m3(x));
    case OCTAVO_DTYPE_FP8_E5M2:
        return octavo_fp8_e5m2_to_f32(octavo_f32_to_fp8_e5m2(x));
    case OCTAVO_DTYPE_F16:
        return octavo_f16_to_f32(octavo_f32_to_f16(x));
    case OCTAVO_DTYPE_BF16:
        return octavo_bf16_to_f32(octavo_f32_to_bf16(x));
    default:
        return x;
    }
}

/* Towards zero, saturating; a NaN becomes 0. */
static float truncated(float x) {
    if (!(x == x)) return 0.0f;
    return x >= 127.0f ? 127.0f : x <= -128.0f ? -128.0f : truncf(x);
}

/* Rule R9: the quotient is rounded to the query's type, clipped to the cache's range and rounded to
 * the cache's type; the clipped value is one of the query's type, like the references'. int8 is
 * cast as in C. */
static void quantise(float *x, const octavo_attention_op *op, int64_t n) {
    const float divisor = rounded(op->q_scale, op->q_dtype);
    const float limit = octavo_attention_largest(op->kv_dtype);
    for (int64_t i = 0; i < n; i++) {
        float y = rounded(x[i] / divisor, op->q_dtype);
        if (op->kv_dtype == OCTAVO_DTYPE_INT8) {
            x[i] = truncated(y);
            continue;
        }
        if (y > limit) y = limit;
        if (y < -limit) y = -limit;
        x[i] = rounded(rounded(y, op->q_dtype), op->kv_dtype);
    }
}

void octavo_attention_load_query(float *out, const octavo_attention_kernels *kernels,
                                 const octavo_attention_op *op, int64_t row, int32_t head,
                                 int32_t head_dim) {
    const int64_t element = row * op->q_token_stride + head * op->q_head_stride;
    const uint8_t *from =
        (const uint8_t *)op->queries + element * (int64_t)octavo_dtype_size(op->q_dtype);
    kernels->load[op->q_dtype](out, from, head_dim);
    if (op->has_q_scale) quantise(out, op, head_dim);
}

void octavo_attention_store_output(const octavo_attention_kernels *kernels,
                                   const octavo_attention_op *op,
                                   const octavo_attention_heads *heads, int32_t head, uint8_t *to,
                                   const float *acc, float max, float sum) {
    const int64_t n = octavo_attention_value_dim(heads);
    float scale = op->v_scale;
    if (op->v_scales) scale *= op->v_scales[octavo_attention_kv_head(heads, head)];
    if (op->sink) scale *= kernels->sink(op->sink[head], &max, &sum);
    scale /= sum;
    float result[OCTAVO_ATTENTION_MAX_DIM];
    kernels->store[OCTAVO_DTYPE_F32](result, acc, scale, n);
    /* of two NaN an instruction keeps its first, so whose bits come out depends on the tile */
    for (int64_t i = 0; i < n; i++)
        result[i] = isnan(result[i]) ? NAN : result[i];
    if (op->quantise_output)
        kernels->quantise[op->out_dtype](to, result, op->output_scale, n);
    else
        kernels->store[op->out_dtype](to, result, 1.0f, n);
}
