/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of weight types and what follows from it.
 */
#include "kernels/weight.h"

#include "base/compiler.h"

/* clang-format off */
static const octavo_weight_info infos[OCTAVO_WEIGHT_TYPES] = {
    /* name, inputs and bytes of a record, of a block of the file */
    [OCTAVO_WEIGHT_F32] = {"f32", 1, 128, 1, 4, false},
    [OCTAVO_WEIGHT_F16] = {"f16", 1, 64, 1, 2, false},
    [OCTAVO_WEIGHT_BF16] = {"bf16", 2, 128, 1, 2, false},
    [OCTAVO_WEIGHT_F8_E4M3] = {"f8_e4m3", 64, 2176, 64, 68, false},
    [OCTAVO_WEIGHT_F8_E5M2] = {"f8_e5m2", 64, 2176, 64, 68, false},
    [OCTAVO_WEIGHT_Q8_0] = {"q8_0", 32, 1088, 32, 34, true},
    [OCTAVO_WEIGHT_Q4_0] = {"q4_0", 32, 576, 32, 18, true},
    [OCTAVO_WEIGHT_Q4_1] = {"q4_1", 32, 640, 32, 20, true},
    [OCTAVO_WEIGHT_Q5_0] = {"q5_0", 32, 704, 32, 22, true},
    [OCTAVO_WEIGHT_Q5_1] = {"q5_1", 32, 768, 32, 24, true},
    [OCTAVO_WEIGHT_Q1_0] = {"q1_0", 128, 576, 128, 18, true},
    [OCTAVO_WEIGHT_IQ4_NL] = {"iq4_nl", 32, 576, 32, 18, true},
    [OCTAVO_WEIGHT_MXFP4] = {"mxfp4", 32, 544, 32, 17, true},
    [OCTAVO_WEIGHT_NVFP4] = {"nvfp4", 64, 1152, 64, 36, true},
    [OCTAVO_WEIGHT_Z2] = {"z2", 32, 352, 32, 11, true},
    [OCTAVO_WEIGHT_Z3] = {"z3", 32, 480, 32, 15, true},
    [OCTAVO_WEIGHT_Z4] = {"z4", 32, 608, 32, 19, true},
    [OCTAVO_WEIGHT_Z4_64] = {"z4_64", 64, 1120, 64, 35, true},
    [OCTAVO_WEIGHT_Z8] = {"z8", 32, 1120, 32, 35, true},
    [OCTAVO_WEIGHT_Q2_K] = {"q2_k", 256, 2688, 256, 84, true},
    [OCTAVO_WEIGHT_Q3_K] = {"q3_k", 256, 3648, 256, 110, true},
    [OCTAVO_WEIGHT_Q4_K] = {"q4_k", 256, 4736, 256, 144, true},
    [OCTAVO_WEIGHT_Q5_K] = {"q5_k", 256, 5760, 256, 176, true},
    [OCTAVO_WEIGHT_Q6_K] = {"q6_k", 256, 6720, 256, 210, true},
    [OCTAVO_WEIGHT_IQ4_XS] = {"iq4_xs", 256, 4416, 256, 136, true},
    [OCTAVO_WEIGHT_TQ1_0] = {"tq1_0", 256, 2112, 256, 54, true},
    [OCTAVO_WEIGHT_TQ2_0] = {"tq2_0", 256, 2112, 256, 66, true},
    [OCTAVO_WEIGHT_IQ2_XXS] = {"iq2_xxs", 256, 2368, 256, 66, true},
    [OCTAVO_WEIGHT_IQ2_XS] = {"iq2_xs", 256, 2624, 256, 74, true},
    [OCTAVO_WEIGHT_IQ2_S] = {"iq2_s", 256, 2624, 256, 82, true},
    [OCTAVO_WEIGHT_IQ3_XXS] = {"iq3_xxs", 256, 3392, 256, 98, true},
    [OCTAVO_WEIGHT_IQ3_S] = {"iq3_s", 256, 3648, 256, 110, true},
    [OCTAVO_WEIGHT_IQ1_S] = {"iq1_s", 256, 1856, 256, 50, true},
    [OCTAVO_WEIGHT_IQ1_M] = {"iq1_m", 256, 1856, 256, 56, true},
};
/* clang-format on */

const octavo_weight_info *octavo_weight_info_of(octavo_weight_type type) {
    octavo_assert((unsigned)type < OCTAVO_WEIGHT_TYPES);
    return &infos[type];
}

size_t octavo_weight_panel_bytes(octavo_weight_type type, int64_t k) {
    const octavo_weight_info *info = octavo_weight_info_of(type);
    octavo_assert(k >= 0 && k % info->source_inputs == 0);
    /* an odd row of BF16 ends in half a pair, the other half is zero */
    int64_t n_records = (k + info->record_inputs - 1) / info->record_inputs;
    return (size_t)n_records * (size_t)info->record_bytes;
}

size_t octavo_weight_bytes(octavo_weight_type type, int64_t n, int64_t k) {
    int64_t n_panels = (n + OCTAVO_PANEL - 1) / OCTAVO_PANEL;
    return (size_t)n_panels * octavo_weight_panel_bytes(type, k);
}
