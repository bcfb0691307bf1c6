/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed weights: how a matrix W [n outputs, k inputs] lies in memory for the matmul kernels, one
 * layout for one row of activations and for many.
 *
 * Outputs are grouped in panels of OCTAVO_PANEL (32); the last panel is filled up with zero rows. A
 * panel is one ascending stream of records, each holding a run of inputs for all 32 outputs. Panels
 * follow each other.
 *
 * The codes are the file's (gguf Q8_0's signed byte is stored as code = byte + 128), the scales
 * too: packing loses nothing, and unpacking gives exactly the values of the format's definition.
 */
#ifndef OCTAVO_KERNELS_WEIGHT_H
#define OCTAVO_KERNELS_WEIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/* The records of the types:
 *
 *   type   inputs  bytes  parts, each for all 32 outputs               value of an input
 *   F32         1    128  f32                                          w
 *   F16         1     64  f16                                          w
 *   BF16        2    128  32-bit words, input 2i in the lower half     w
 *   Q8_0       32   1088  codes8, f16 d                                w = d * (code - 128)
 *   Q4_0       32    576  codes4, f16 d                                w = d * (code - 8)
 *   Q4_1       32    640  codes4, f16 d, f16 m                         w = d * code + m
 *   Q5_0       32    704  codes4, high1, f16 d                         w = d * (code - 16)
 *   Q4_K      256   4736  f16 d, f16 dmin, then 8 blocks of            w = d * scale * code
 *                           codes4, u8 scale, u8 min                       - dmin * min
 *   Q6_K      256   6720  f16 d, then 8 blocks of                      w = d * scale * (code - 32)
 *                           codes4, high2, s8 scale of inputs 0-15,
 *                           s8 scale of inputs 16-31
 *
 * Their parts for a block of 32 inputs, output o = 0..31 and j = 0..3:
 *
 *   part    bytes  byte                  holds
 *   codes8   1024  (g * 32 + o) * 4 + j  g = 0..7: the code of input 4g + j
 *   codes4    512  (g * 32 + o) * 4 + j  g = 0..3: the codes of inputs 4g + j in its lower half
 *                                        and 16 + 4g + j in its upper half
 *   high1     128  o * 4 + j             bit g, g = 0..7: bit 4 of the code of input 4g + j
 *   high2     256  p * 128 + o * 4 + j   p = 0, 1: bits 2b and 2b + 1, b = 0..3: bits 4 and 5 of
 *                                        the code of input 4(4p + b) + j
 */
/* clang-format on */

#define OCTAVO_PANEL 32 /* outputs in a panel */
#define OCTAVO_BLOCK 32 /* inputs in a quantised activation block */

typedef enum octavo_weight_type {
    OCTAVO_WEIGHT_F32,
    OCTAVO_WEIGHT_F16,
    OCTAVO_WEIGHT_BF16,
    OCTAVO_WEIGHT_Q8_0,
    OCTAVO_WEIGHT_Q4_0,
    OCTAVO_WEIGHT_Q4_1,
    OCTAVO_WEIGHT_Q5_0,
    OCTAVO_WEIGHT_Q4_K,
    OCTAVO_WEIGHT_Q6_K,
    OCTAVO_WEIGHT_TYPES,
} octavo_weight_type;

typedef struct octavo_weight_info {
    const char *name;  /* "f32", "q4_k" */
    int record_inputs; /* inputs in a record: what a slice may not cut */
    int record_bytes;  /* bytes of a record */
    int source_inputs; /* values in a block of the file's row */
    int source_bytes;  /* bytes of a block of the file's row */
    bool is_quantised; /* multiplied with quantised activations in fast precision */
} octavo_weight_info;

/* The row of a type. Lives forever. */
const octavo_weight_info *octavo_weight_info_of(octavo_weight_type type);

/* Bytes of one panel of k inputs, and of a whole matrix; k a multiple of source_inputs. */
size_t octavo_weight_panel_bytes(octavo_weight_type type, int64_t k);
size_t octavo_weight_bytes(octavo_weight_type type, int64_t n, int64_t k);

/* Packs n_rows (1..32) rows of k inputs, rows [n_rows, 32) as zeros. source: rows of file blocks,
 * row_bytes apart (gguf layouts); panel: panel_bytes, 64-aligned. */
void octavo_weight_pack(octavo_weight_type type, uint8_t *panel, const uint8_t *source,
                        size_t row_bytes, int n_rows, int64_t k);

/* Dequantises inputs [k0, k1) of one panel: out [k1 - k0][32] f32. k0 and k1 on blocks of 32 for
 * quantised types (any input for F32 and F16, even for BF16). */
void octavo_weight_unpack(octavo_weight_type type, float *out, const uint8_t *panel, int64_t k0,
                          int64_t k1);

/* Dequantises one output row of a panel: out [k] f32; row 0..31. For embedding look-up. */
void octavo_weight_unpack_row(octavo_weight_type type, float *out, const uint8_t *panel, int row,
                              int64_t k);

#endif
