/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block for AArch64: the words of attention_tmpl.h, and storing. The same
 * operations in the same order as AVX2's, half as wide.
 */
#include "kernels/arm/attention_transpose.h"
#include "kernels/arm/vector_ops_neon.h"
#include "kernels/attention.h"
#include "kernels/attention_types.h"

#include <string.h>

/* --- cache elements as f32 --- */

static inline vec low_f16(uint16x8_t halves) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(halves)));
}

static inline vec high_f16(uint16x8_t halves) {
    return vcvt_high_f32_f16(vreinterpretq_f16_u16(halves));
}

static inline vec low_bf16(uint16x8_t halves) {
    return vreinterpretq_f32_u16(vzip1q_u16(vdupq_n_u16(0), halves));
}

static inline vec high_bf16(uint16x8_t halves) {
    return vreinterpretq_f32_u16(vzip2q_u16(vdupq_n_u16(0), halves));
}

/* An fp8 in the upper byte of each lane, below which is zero, becomes an f16 with the same digits:
 * e5m2 is one already; e4m3 has a shorter exponent, and its NaN (all ones) has to be made one. */
static OCTAVO_ALWAYS_INLINE uint16x8_t fp8_as_f16(uint16x8_t upper, const int type) {
    if (type == FP8_E5M2) return upper;
    /* the sign twice, so one place is free to clear */
    uint16x8_t half = vreinterpretq_u16_s16(vshrq_n_s16(vreinterpretq_s16_u16(upper), 1));
    half = vandq_u16(half, vdupq_n_u16(0xbf80));
    /* of all ones only, one more carries into that place; an exponent of all ones with it */
    uint16x8_t is_nan = vaddq_u16(half, vdupq_n_u16(0x80));
    return vorrq_u16(half, vandq_u16(is_nan, vdupq_n_u16(0x4000)));
}

/* 8 elements; of e4m3 2^8 times too small. */
static OCTAVO_ALWAYS_INLINE void widen_fp8(vec x[2], uint8x8_t bytes, const int type) {
    uint16x8_t halves = fp8_as_f16(vshll_n_u8(bytes, 8), type);
    x[0] = low_f16(halves);
    x[1] = high_f16(halves);
}

static inline void widen_int8(vec x[2], int8x8_t bytes) {
    int16x8_t wide = vmovl_s8(bytes);
    x[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
    x[1] = vcvtq_f32_s32(vmovl_high_s16(wide));
}

/* Lanes [i, i + 16); of e4m3 2^8 times too small. */
static OCTAVO_ALWAYS_INLINE void vec_load_group(vec x[4], const void *row, int64_t i,
                                                const int type) {
    const uint8_t *bytes = row;
    switch (type) {
    case F32:
        for (int v = 0; v < 4; v++)
            x[v] = vld1q_f32((const float *)row + i + 4 * v);
        return;
    case F16:
        for (int v = 0; v < 4; v += 2) {
            uint16x8_t halves = vreinterpretq_u16_u8(vld1q_u8(bytes + 2 * i + 8 * v));
            x[v] = low_f16(halves);
            x[v + 1] = high_f16(halves);
        }
        return;
    case BF16:
        for (int v = 0; v < 4; v += 2) {
            uint16x8_t halves = vreinterpretq_u16_u8(vld1q_u8(bytes + 2 * i + 8 * v));
            x[v] = low_bf16(halves);
            x[v + 1] = high_bf16(halves);
        }
        return;
    case INT8:
        widen_int8(x, vreinterpret_s8_u8(vld1_u8(bytes + i)));
        widen_int8(x + 2, vreinterpret_s8_u8(vld1_u8(bytes + i + 8)));
        return;
    default:
        widen_fp8(x, vld1_u8(bytes + i), type);
        widen_fp8(x + 2, vld1_u8(bytes + i + 8), type);
    }
}

static OCTAVO_ALWAYS_INLINE void vec_load_acc(vec a[4], const float *acc, const int type) {
    (void)type;
    for (int v = 0; v < 4; v++)
        a[v] = vld1q_f32(acc + 4 * v);
}

static OCTAVO_ALWAYS_INLINE void vec_store_acc(float *acc, const vec a[4], const int type) {
    (void)type;
    for (int v = 0; v < 4; v++)
        vst1q_f32(acc + 4 * v, a[v]);
}

/* Of 4 words bytes lane and lane + 1, lane even, in the upper halves of 16-bit lanes: those of
 * `lane` in the lower half, those of lane + 1 in the upper one. */
static OCTAVO_ALWAYS_INLINE uint16x8_t word_bytes(const uint32_t *words, const int lane) {
    enum { Z = 255 }; /* a zero */
    static const uint8_t at[2][16] = {
        {Z, 0, Z, 4, Z, 8, Z, 12, Z, 1, Z, 5, Z, 9, Z, 13},
        {Z, 2, Z, 6, Z, 10, Z, 14, Z, 3, Z, 7, Z, 11, Z, 15},
    };
    uint8x16_t bytes = vreinterpretq_u8_u32(vld1q_u32(words));
    return vreinterpretq_u16_u8(vqtbl1q_u8(bytes, vld1q_u8(at[lane / 2])));
}

static OCTAVO_ALWAYS_INLINE vec vec_word_lane(const uint32_t *words, const int lane,
                                              const int type) {
    const uint32x4_t word = vld1q_u32(words);
    switch (type) {
    case F32:
        return vreinterpretq_f32_u32(word);
    case F16: {
        uint16x4_t halves = lane == 0 ? vmovn_u32(word) : vshrn_n_u32(word, 16);
        return vcvt_f32_f16(vreinterpret_f16_u16(halves));
    }
    case BF16:
        return vreinterpretq_f32_u32(lane == 0 ? vshlq_n_u32(word, 16)
                                               : vandq_u32(word, vdupq_n_u32(0xffff0000u)));
    case INT8: {
        int32x4_t upper = vreinterpretq_s32_u32(vshlq_u32(word, vdupq_n_s32(24 - 8 * lane)));
        return vcvtq_f32_s32(vshrq_n_s32(upper, 24));
    }
    default: {
        uint16x8_t halves = fp8_as_f16(word_bytes(words, lane), type);
        vec x = lane % 2 == 0 ? low_f16(halves) : high_f16(halves);
        return type == FP8_E4M3 ? vmulq_n_f32(x, E4M3_AS_F16) : x;
    }
    }
}

static OCTAVO_ALWAYS_INLINE vec vec_load_type(const void *x, int64_t i, const int type) {
    const uint8_t *bytes = x;
    switch (type) {
    case F32:
        return vld1q_f32((const float *)x + i);
    case F16:
        return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(bytes + 2 * i)));
    case BF16:
        return vreinterpretq_f32_u32(
            vshlq_n_u32(vmovl_u16(vreinterpret_u16_u8(vld1_u8(bytes + 2 * i))), 16));
    default: {
        uint32_t four;
        memcpy(&four, bytes + i, sizeof four);
        vec both[2];
        if (type == INT8)
            widen_int8(both, vreinterpret_s8_u32(vdup_n_u32(four)));
        else
            widen_fp8(both, vreinterpret_u8_u32(vdup_n_u32(four)), type);
        return type == FP8_E4M3 ? vmulq_n_f32(both[0], E4M3_AS_F16) : both[0];
    }
    }
}

/* --- softmax --- */

/* Nearest even in the upper half of each lane, below which is anything; see octavo_f32_to_bf16. */
static inline uint32x4_t round_bf16(vec v) {
    uint32x4_t u = vreinterpretq_u32_f32(v);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    uint32x4_t quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
    return vbslq_u32(vceqq_f32(v, v), rounded, quiet);
}

static inline vec vec_round_bf16(vec v) {
    return vreinterpretq_f32_u32(vandq_u32(round_bf16(v), vdupq_n_u32(0xffff0000u)));
}

static inline int32x4_t count_from(int32_t first) {
    static const int32_t count[4] = {0, 1, 2, 3};
    return vaddq_s32(vld1q_s32(count), vdupq_n_s32(first));
}

/* first + add, first + add + 1 ... */
static inline vec vec_count(float first, int add) {
    return vaddq_f32(vdupq_n_f32(first), vcvtq_f32_s32(count_from(add)));
}

/* Lanes outside [begin, end) become -inf; lane 0 is position `first`. */
static inline vec keep_range(vec x, int first, int begin, int end) {
    int32x4_t lane = count_from(first);
    uint32x4_t inside =
        vandq_u32(vcgeq_s32(lane, vdupq_n_s32(begin)), vcltq_s32(lane, vdupq_n_s32(end)));
    return vbslq_f32(inside, x, vdupq_n_f32(-INFINITY));
}

/* Up to 20 accumulators, but for six rows; more do not stay in 32 registers beside what is loaded.
 */
static inline int tile_groups(int rows) {
    return rows == 1 ? 4 : rows == 2 ? 2 : 1;
}

/* Of one token's keys: enough accumulators to keep the pipes busy. */
enum { TOKEN_GROUPS = 2 };

#include "kernels/attention_tmpl.h"

/* --- storing --- */

static void store_f16(void *out, const float *x, float scale, int64_t n) {
    uint16_t *to = out;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float16x4_t halves = vcvt_f16_f32(vmulq_n_f32(vld1q_f32(x + i), scale));
        vst1_u16(to + i, vreinterpret_u16_f16(halves));
    }
    for (; i < n; i++)
        to[i] = octavo_f32_to_f16(x[i] * scale);
}

static void store_bf16(void *out, const float *x, float scale, int64_t n) {
    uint16_t *to = out;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1_u16(to + i, vshrn_n_u32(round_bf16(vmulq_n_f32(vld1q_f32(x + i), scale)), 16));
    for (; i < n; i++)
        to[i] = octavo_f32_to_bf16(x[i] * scale);
}

void octavo_attention_kernels_neon(octavo_attention_kernels *kernels) {
    set_kernels(kernels);
    kernels->store[F16] = store_f16;
    kernels->store[BF16] = store_bf16;
}
