/* SPDX-License-Identifier: Apache-2.0
 *
 * What the levels of attention share beside their templates: the types' names, and asking for
 * memory ahead.
 */
#ifndef OCTAVO_KERNELS_ATTENTION_TYPES_H
#define OCTAVO_KERNELS_ATTENTION_TYPES_H

#include "base/compiler.h"
#include "kernels/attention.h"

/* octavo_dtype's order. */
enum { F32, F16, BF16, FP8_E4M3, FP8_E5M2, INT8 };

/* Elements of a 32-bit word. */
static OCTAVO_ALWAYS_INLINE int packing(const int type) {
    return type == F16 || type == BF16 ? 2 : type >= FP8_E4M3 && type <= INT8 ? 4 : 1;
}

/* How many times too small an e4m3 is as the f16 of the same digits. */
#define E4M3_AS_F16 0x1p8f

static OCTAVO_ALWAYS_INLINE void ahead_step(octavo_ahead *ahead) {
    enum { LINE = 64, LINES = 2, TURNS = OCTAVO_AHEAD_STEP / (LINE * LINES) };
    if (!ahead || ahead->steps <= 0) return;
    ahead->steps--;
    for (int i = 0; i < TURNS && ahead->slots_left > 0; i++) {
        OCTAVO_PREFETCH(ahead->at);
        OCTAVO_PREFETCH(ahead->at + LINE);
        ahead->at += LINES * LINE;
        ahead->left -= LINES * LINE;
        if (ahead->left <= 0) octavo_ahead_next(ahead);
    }
}

#endif
