/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes that stand for values of a table, and grids: an index stands for 8 or 4 values at once.
 *
 * A grid's entry holds its values' places in a short list, in 16 bits, first value lowest:
 *   IQ2_XXS IQ2_XS IQ2_S   8 places of 2 bits    8, 25, 43
 *   IQ1                    8 places of 2 bits    -8, 0, 8 (in eighths), +1 or -1 by a bit
 *   IQ3_XXS                4 places of 4 bits    4, 12, 20 ... 52, 62
 *   IQ3_S                  4 places of 4 bits    1, 3, 5 ... 15
 * With signs, and with 64 added to make it unsigned, a value is a code of 7 bits.
 */
#ifndef OCTAVO_KERNELS_WEIGHT_TABLES_H
#define OCTAVO_KERNELS_WEIGHT_TABLES_H

#include "kernels/weight_layout.h"

extern const uint8_t octavo_table_iq4[16]; /* value + 128 */
extern const uint8_t octavo_table_fp4[16]; /* value + 12 */

/* value + 64 of a grid's place c, by c; for places of 2 bits also by c << 2. */
extern const uint8_t octavo_places_iq2[16];
extern const uint8_t octavo_places_iq3_xxs[16];
extern const uint8_t octavo_places_iq3_s[16];
extern const uint8_t octavo_places_iq1[16]; /* value + 65 */

/* One entry more than there are: kernels read 32 bits at an entry. */
extern const uint16_t octavo_grid_iq2_xxs[256 + 1];
extern const uint16_t octavo_grid_iq2_xs[512 + 1];
extern const uint16_t octavo_grid_iq2_s[1024 + 1];
extern const uint16_t octavo_grid_iq3_xxs[256 + 1];
extern const uint16_t octavo_grid_iq3_s[512 + 1];
extern const uint16_t octavo_grid_iq1[2048 + 1];

/* The grid of a type. */
static inline const uint16_t *octavo_grid_of(octavo_weight_type type) {
    switch (type) {
    case OCTAVO_WEIGHT_IQ2_XXS:
        return octavo_grid_iq2_xxs;
    case OCTAVO_WEIGHT_IQ2_XS:
        return octavo_grid_iq2_xs;
    case OCTAVO_WEIGHT_IQ2_S:
        return octavo_grid_iq2_s;
    case OCTAVO_WEIGHT_IQ3_XXS:
        return octavo_grid_iq3_xxs;
    case OCTAVO_WEIGHT_IQ3_S:
        return octavo_grid_iq3_s;
    default:
        return octavo_grid_iq1;
    }
}

#endif
