/* SPDX-License-Identifier: Apache-2.0
 *
 * One table entry per weight type for a level's general dots. Included with DOT_F32 or DOT_Q8
 * defined as a function that takes the type before octavo_dot_fn's parameters and is inlined with
 * the type as a constant; DOT_Q8_GRID, where a level has it, is for types of grids. Makes the
 * arrays entries_f32 [OCTAVO_WEIGHT_TYPES] and entries_q8 (float types: NULL).
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
ENTRY(dot_f32_f8_e4m3, DOT_F32, OCTAVO_WEIGHT_F8_E4M3)
ENTRY(dot_f32_f8_e5m2, DOT_F32, OCTAVO_WEIGHT_F8_E5M2)
ENTRY(dot_f32_q8_0, DOT_F32, OCTAVO_WEIGHT_Q8_0)
ENTRY(dot_f32_q4_0, DOT_F32, OCTAVO_WEIGHT_Q4_0)
ENTRY(dot_f32_q4_1, DOT_F32, OCTAVO_WEIGHT_Q4_1)
ENTRY(dot_f32_q5_0, DOT_F32, OCTAVO_WEIGHT_Q5_0)
ENTRY(dot_f32_q5_1, DOT_F32, OCTAVO_WEIGHT_Q5_1)
ENTRY(dot_f32_q1_0, DOT_F32, OCTAVO_WEIGHT_Q1_0)
ENTRY(dot_f32_iq4_nl, DOT_F32, OCTAVO_WEIGHT_IQ4_NL)
ENTRY(dot_f32_mxfp4, DOT_F32, OCTAVO_WEIGHT_MXFP4)
ENTRY(dot_f32_nvfp4, DOT_F32, OCTAVO_WEIGHT_NVFP4)
ENTRY(dot_f32_z2, DOT_F32, OCTAVO_WEIGHT_Z2)
ENTRY(dot_f32_z3, DOT_F32, OCTAVO_WEIGHT_Z3)
ENTRY(dot_f32_z4, DOT_F32, OCTAVO_WEIGHT_Z4)
ENTRY(dot_f32_z4_64, DOT_F32, OCTAVO_WEIGHT_Z4_64)
ENTRY(dot_f32_z8, DOT_F32, OCTAVO_WEIGHT_Z8)
ENTRY(dot_f32_q2_k, DOT_F32, OCTAVO_WEIGHT_Q2_K)
ENTRY(dot_f32_q3_k, DOT_F32, OCTAVO_WEIGHT_Q3_K)
ENTRY(dot_f32_q4_k, DOT_F32, OCTAVO_WEIGHT_Q4_K)
ENTRY(dot_f32_q5_k, DOT_F32, OCTAVO_WEIGHT_Q5_K)
ENTRY(dot_f32_q6_k, DOT_F32, OCTAVO_WEIGHT_Q6_K)
ENTRY(dot_f32_iq4_xs, DOT_F32, OCTAVO_WEIGHT_IQ4_XS)
ENTRY(dot_f32_tq2_0, DOT_F32, OCTAVO_WEIGHT_TQ2_0)
ENTRY(dot_f32_iq2_xxs, DOT_F32, OCTAVO_WEIGHT_IQ2_XXS)
ENTRY(dot_f32_iq2_xs, DOT_F32, OCTAVO_WEIGHT_IQ2_XS)
ENTRY(dot_f32_iq2_s, DOT_F32, OCTAVO_WEIGHT_IQ2_S)
ENTRY(dot_f32_iq3_xxs, DOT_F32, OCTAVO_WEIGHT_IQ3_XXS)
ENTRY(dot_f32_iq3_s, DOT_F32, OCTAVO_WEIGHT_IQ3_S)
ENTRY(dot_f32_iq1_s, DOT_F32, OCTAVO_WEIGHT_IQ1_S)

/* TQ1_0 is packed as TQ2_0 is, IQ1_M as IQ1_S. */
static octavo_dot_fn *const entries_f32[OCTAVO_WEIGHT_TYPES] = {
    [OCTAVO_WEIGHT_F32] = dot_f32_f32,         [OCTAVO_WEIGHT_F16] = dot_f32_f16,
    [OCTAVO_WEIGHT_BF16] = dot_f32_bf16,       [OCTAVO_WEIGHT_Q8_0] = dot_f32_q8_0,
    [OCTAVO_WEIGHT_Q4_0] = dot_f32_q4_0,       [OCTAVO_WEIGHT_Q4_1] = dot_f32_q4_1,
    [OCTAVO_WEIGHT_Q5_0] = dot_f32_q5_0,       [OCTAVO_WEIGHT_Q5_1] = dot_f32_q5_1,
    [OCTAVO_WEIGHT_Q1_0] = dot_f32_q1_0,       [OCTAVO_WEIGHT_IQ4_NL] = dot_f32_iq4_nl,
    [OCTAVO_WEIGHT_MXFP4] = dot_f32_mxfp4,     [OCTAVO_WEIGHT_NVFP4] = dot_f32_nvfp4,
    [OCTAVO_WEIGHT_Q2_K] = dot_f32_q2_k,       [OCTAVO_WEIGHT_Q3_K] = dot_f32_q3_k,
    [OCTAVO_WEIGHT_Q4_K] = dot_f32_q4_k,       [OCTAVO_WEIGHT_Q5_K] = dot_f32_q5_k,
    [OCTAVO_WEIGHT_Q6_K] = dot_f32_q6_k,       [OCTAVO_WEIGHT_IQ4_XS] = dot_f32_iq4_xs,
    [OCTAVO_WEIGHT_TQ2_0] = dot_f32_tq2_0,     [OCTAVO_WEIGHT_IQ2_XXS] = dot_f32_iq2_xxs,
    [OCTAVO_WEIGHT_IQ2_XS] = dot_f32_iq2_xs,   [OCTAVO_WEIGHT_IQ2_S] = dot_f32_iq2_s,
    [OCTAVO_WEIGHT_IQ3_XXS] = dot_f32_iq3_xxs, [OCTAVO_WEIGHT_IQ3_S] = dot_f32_iq3_s,
    [OCTAVO_WEIGHT_IQ1_S] = dot_f32_iq1_s,     [OCTAVO_WEIGHT_TQ1_0] = dot_f32_tq2_0,
    [OCTAVO_WEIGHT_F8_E4M3] = dot_f32_f8_e4m3, [OCTAVO_WEIGHT_F8_E5M2] = dot_f32_f8_e5m2,
    [OCTAVO_WEIGHT_Z2] = dot_f32_z2,           [OCTAVO_WEIGHT_Z3] = dot_f32_z3,
    [OCTAVO_WEIGHT_Z4] = dot_f32_z4,           [OCTAVO_WEIGHT_Z4_64] = dot_f32_z4_64,
    [OCTAVO_WEIGHT_Z8] = dot_f32_z8,           [OCTAVO_WEIGHT_IQ1_M] = dot_f32_iq1_s,
};
#endif

#ifdef DOT_Q8
#ifndef DOT_Q8_GRID
#define DOT_Q8_GRID DOT_Q8
#endif
ENTRY(dot_q8_q8_0, DOT_Q8, OCTAVO_WEIGHT_Q8_0)
ENTRY(dot_q8_q4_0, DOT_Q8, OCTAVO_WEIGHT_Q4_0)
ENTRY(dot_q8_q4_1, DOT_Q8, OCTAVO_WEIGHT_Q4_1)
ENTRY(dot_q8_q5_0, DOT_Q8, OCTAVO_WEIGHT_Q5_0)
ENTRY(dot_q8_q5_1, DOT_Q8, OCTAVO_WEIGHT_Q5_1)
ENTRY(dot_q8_q1_0, DOT_Q8, OCTAVO_WEIGHT_Q1_0)
ENTRY(dot_q8_iq4_nl, DOT_Q8, OCTAVO_WEIGHT_IQ4_NL)
ENTRY(dot_q8_mxfp4, DOT_Q8, OCTAVO_WEIGHT_MXFP4)
ENTRY(dot_q8_nvfp4, DOT_Q8, OCTAVO_WEIGHT_NVFP4)
ENTRY(dot_q8_z2, DOT_Q8, OCTAVO_WEIGHT_Z2)
ENTRY(dot_q8_z3, DOT_Q8, OCTAVO_WEIGHT_Z3)
ENTRY(dot_q8_z4, DOT_Q8, OCTAVO_WEIGHT_Z4)
ENTRY(dot_q8_z4_64, DOT_Q8, OCTAVO_WEIGHT_Z4_64)
ENTRY(dot_q8_z8, DOT_Q8, OCTAVO_WEIGHT_Z8)
ENTRY(dot_q8_q2_k, DOT_Q8, OCTAVO_WEIGHT_Q2_K)
ENTRY(dot_q8_q3_k, DOT_Q8, OCTAVO_WEIGHT_Q3_K)
ENTRY(dot_q8_q4_k, DOT_Q8, OCTAVO_WEIGHT_Q4_K)
ENTRY(dot_q8_q5_k, DOT_Q8, OCTAVO_WEIGHT_Q5_K)
ENTRY(dot_q8_q6_k, DOT_Q8, OCTAVO_WEIGHT_Q6_K)
ENTRY(dot_q8_iq4_xs, DOT_Q8, OCTAVO_WEIGHT_IQ4_XS)
ENTRY(dot_q8_tq2_0, DOT_Q8, OCTAVO_WEIGHT_TQ2_0)
ENTRY(dot_q8_iq2_xxs, DOT_Q8_GRID, OCTAVO_WEIGHT_IQ2_XXS)
ENTRY(dot_q8_iq2_xs, DOT_Q8_GRID, OCTAVO_WEIGHT_IQ2_XS)
ENTRY(dot_q8_iq2_s, DOT_Q8_GRID, OCTAVO_WEIGHT_IQ2_S)
ENTRY(dot_q8_iq3_xxs, DOT_Q8_GRID, OCTAVO_WEIGHT_IQ3_XXS)
ENTRY(dot_q8_iq3_s, DOT_Q8_GRID, OCTAVO_WEIGHT_IQ3_S)
ENTRY(dot_q8_iq1_s, DOT_Q8_GRID, OCTAVO_WEIGHT_IQ1_S)

static octavo_dot_fn *const entries_q8[OCTAVO_WEIGHT_TYPES] = {
    [OCTAVO_WEIGHT_Q8_0] = dot_q8_q8_0,       [OCTAVO_WEIGHT_Q4_0] = dot_q8_q4_0,
    [OCTAVO_WEIGHT_Q4_1] = dot_q8_q4_1,       [OCTAVO_WEIGHT_Q5_0] = dot_q8_q5_0,
    [OCTAVO_WEIGHT_Q5_1] = dot_q8_q5_1,       [OCTAVO_WEIGHT_Q1_0] = dot_q8_q1_0,
    [OCTAVO_WEIGHT_IQ4_NL] = dot_q8_iq4_nl,   [OCTAVO_WEIGHT_MXFP4] = dot_q8_mxfp4,
    [OCTAVO_WEIGHT_NVFP4] = dot_q8_nvfp4,     [OCTAVO_WEIGHT_Q2_K] = dot_q8_q2_k,
    [OCTAVO_WEIGHT_Q3_K] = dot_q8_q3_k,       [OCTAVO_WEIGHT_Q4_K] = dot_q8_q4_k,
    [OCTAVO_WEIGHT_Q5_K] = dot_q8_q5_k,       [OCTAVO_WEIGHT_Q6_K] = dot_q8_q6_k,
    [OCTAVO_WEIGHT_IQ4_XS] = dot_q8_iq4_xs,   [OCTAVO_WEIGHT_TQ2_0] = dot_q8_tq2_0,
    [OCTAVO_WEIGHT_IQ2_XXS] = dot_q8_iq2_xxs, [OCTAVO_WEIGHT_IQ2_XS] = dot_q8_iq2_xs,
    [OCTAVO_WEIGHT_IQ2_S] = dot_q8_iq2_s,     [OCTAVO_WEIGHT_IQ3_XXS] = dot_q8_iq3_xxs,
    [OCTAVO_WEIGHT_IQ3_S] = dot_q8_iq3_s,     [OCTAVO_WEIGHT_IQ1_S] = dot_q8_iq1_s,
    [OCTAVO_WEIGHT_Z2] = dot_q8_z2,           [OCTAVO_WEIGHT_Z3] = dot_q8_z3,
    [OCTAVO_WEIGHT_Z4] = dot_q8_z4,           [OCTAVO_WEIGHT_Z4_64] = dot_q8_z4_64,
    [OCTAVO_WEIGHT_Z8] = dot_q8_z8,           [OCTAVO_WEIGHT_TQ1_0] = dot_q8_tq2_0,
    [OCTAVO_WEIGHT_IQ1_M] = dot_q8_iq1_s,
};
#endif

#undef ENTRY
