/* SPDX-License-Identifier: Apache-2.0
 *
 * One table entry per weight type for a level's general dots. Included with DOT_F32 or DOT_Q8
 * defined as a function that takes the type before octavo_dot_fn's parameters and is inlined with
 * the type as a constant. Makes the arrays entries_f32 [OCTAVO_WEIGHT_TYPES] and entries_q8 (float
 * types: NULL).
 */
#define ENTRY(name, dot, type)                                                                     \
    static void name(float *acc, const uint8_t *panel, const void *x, size_t x_stride, int n_rows, \
                     int64_t k0, int64_t k1) {                                                     \
        dot(type, acc, panel, x, x_stride, n_rows, k0, k1);                                        \
    }

#ifdef DOT_F32
ENTRY(dot_f32_f32, DOT_F32, OCTAVO_WEIGHT_F32)
ENTRY(dot_f32_f16, DOT_F32, OCTAVO_WEIGHT_F16)
ENTRY(dot_f32_bf16, DOT_F32, OCTAVO_WEIGHT_BF16)
ENTRY(dot_f32_q8_0, DOT_F32, OCTAVO_WEIGHT_Q8_0)
ENTRY(dot_f32_q4_0, DOT_F32, OCTAVO_WEIGHT_Q4_0)
ENTRY(dot_f32_q4_1, DOT_F32, OCTAVO_WEIGHT_Q4_1)
ENTRY(dot_f32_q5_0, DOT_F32, OCTAVO_WEIGHT_Q5_0)
ENTRY(dot_f32_q4_k, DOT_F32, OCTAVO_WEIGHT_Q4_K)
ENTRY(dot_f32_q6_k, DOT_F32, OCTAVO_WEIGHT_Q6_K)

static octavo_dot_fn *const entries_f32[OCTAVO_WEIGHT_TYPES] = {
    [OCTAVO_WEIGHT_F32] = dot_f32_f32,   [OCTAVO_WEIGHT_F16] = dot_f32_f16,
    [OCTAVO_WEIGHT_BF16] = dot_f32_bf16, [OCTAVO_WEIGHT_Q8_0] = dot_f32_q8_0,
    [OCTAVO_WEIGHT_Q4_0] = dot_f32_q4_0, [OCTAVO_WEIGHT_Q4_1] = dot_f32_q4_1,
    [OCTAVO_WEIGHT_Q5_0] = dot_f32_q5_0, [OCTAVO_WEIGHT_Q4_K] = dot_f32_q4_k,
    [OCTAVO_WEIGHT_Q6_K] = dot_f32_q6_k,
};
#endif

#ifdef DOT_Q8
ENTRY(dot_q8_q8_0, DOT_Q8, OCTAVO_WEIGHT_Q8_0)
ENTRY(dot_q8_q4_0, DOT_Q8, OCTAVO_WEIGHT_Q4_0)
ENTRY(dot_q8_q4_1, DOT_Q8, OCTAVO_WEIGHT_Q4_1)
ENTRY(dot_q8_q5_0, DOT_Q8, OCTAVO_WEIGHT_Q5_0)
ENTRY(dot_q8_q4_k, DOT_Q8, OCTAVO_WEIGHT_Q4_K)
ENTRY(dot_q8_q6_k, DOT_Q8, OCTAVO_WEIGHT_Q6_K)

static octavo_dot_fn *const entries_q8[OCTAVO_WEIGHT_TYPES] = {
    [OCTAVO_WEIGHT_Q8_0] = dot_q8_q8_0, [OCTAVO_WEIGHT_Q4_0] = dot_q8_q4_0,
    [OCTAVO_WEIGHT_Q4_1] = dot_q8_q4_1, [OCTAVO_WEIGHT_Q5_0] = dot_q8_q5_0,
    [OCTAVO_WEIGHT_Q4_K] = dot_q8_q4_k, [OCTAVO_WEIGHT_Q6_K] = dot_q8_q6_k,
};
#endif

#undef ENTRY
