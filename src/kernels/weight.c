/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of weight types and what follows from it.
 */
#include "kernels/weight.h"

#include "base/compiler.h"
#include "kernels/weight_layout.h"

#include <assert.h>

static_assert(OCTAVO_Q8_0_RECORD == 1088 && OCTAVO_Q4_0_RECORD == 576 &&
                  OCTAVO_Q4_1_RECORD == 640 && OCTAVO_Q5_0_RECORD == 704 &&
                  OCTAVO_Q4_K_RECORD == 4736 && OCTAVO_Q6_K_RECORD == 6720,
              "records are as weight.h describes them");

static const octavo_weight_info infos[OCTAVO_WEIGHT_TYPES] = {
    [OCTAVO_WEIGHT_F32] = {"f32", 1, 128, 1, 4, false},
    [OCTAVO_WEIGHT_F16] = {"f16", 1, 64, 1, 2, false},
    [OCTAVO_WEIGHT_BF16] = {"bf16", 2, 128, 1, 2, false},
    [OCTAVO_WEIGHT_Q8_0] = {"q8_0", 32, OCTAVO_Q8_0_RECORD, 32, 34, true},
    [OCTAVO_WEIGHT_Q4_0] = {"q4_0", 32, OCTAVO_Q4_0_RECORD, 32, 18, true},
    [OCTAVO_WEIGHT_Q4_1] = {"q4_1", 32, OCTAVO_Q4_1_RECORD, 32, 20, true},
    [OCTAVO_WEIGHT_Q5_0] = {"q5_0", 32, OCTAVO_Q5_0_RECORD, 32, 22, true},
    [OCTAVO_WEIGHT_Q4_K] = {"q4_k", 256, OCTAVO_Q4_K_RECORD, 256, 144, true},
    [OCTAVO_WEIGHT_Q6_K] = {"q6_k", 256, OCTAVO_Q6_K_RECORD, 256, 210, true},
};

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
