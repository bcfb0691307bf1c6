/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed weights: how a matrix W [n outputs, k inputs] lies in memory for the matmul kernels, one
 * layout for one row of activations and for many.
 *
 * Outputs are grouped in panels of OCTAVO_PANEL (32); the last panel is filled up with zero rows. A
 * panel is one ascending stream of records, each holding a run of inputs for all 32 outputs. Panels
 * follow each other.
 *
 * Codes are the file's (gguf Q8_0's signed byte is stored as code = byte + 128), scales and grid
 * indices too: packing loses nothing, and unpacking gives exactly the values of the format's
 * definition.
 */
#ifndef OCTAVO_KERNELS_WEIGHT_H
#define OCTAVO_KERNELS_WEIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/* The records of the types:
 *
 *   type          inputs  bytes  parts, each for all 32 outputs            value of an input
 *   F32                1    128  f32                                       w
 *   F16                1     64  f16                                       w
 *   BF16               2    128  32-bit words, input 2i in the lower half  w
 *   F8_E4M3 F8_E5M2   64   2176  f32 d, for each input bytes               w = d * f8
 *   Q8_0              32   1088  codes8, f16 d                             w = d * (code - 128)
 *   Q4_0              32    576  codes4, f16 d                             w = d * (code - 8)
 *   Q4_1              32    640  codes4, f16 d, f16 m                      w = d * code + m
 *   Q5_0              32    704  codes4, high1, f16 d                      w = d * (code - 16)
 *   Q5_1              32    768  codes4, high1, f16 d, f16 m               w = d * code + m
 *   IQ4_NL            32    576  codes4, f16 d                             w = d * iq4[code]
 *   MXFP4             32    544  codes4, u8 e                              w = 2^(e-128) * fp4[code]
 *   Z2                32    352  codes2, f16 d, s8 z                       w = d * code - d * z
 *   Z3                32    480  codes2, high1, f16 d, s8 z                w = d * code - d * z
 *   Z4                32    608  codes4, f16 d, s8 z                       w = d * code - d * z
 *   Z8                32   1120  codes8, f16 d, s8 z                       w = d * (code - 128) - d * z
 *
 * and those of a head and several blocks of 32 inputs:
 *
 *   type          inputs  bytes          head          a block               value of an input
 *   Z4_64             64   96 + 2 * 512  f16 d, s8 z   codes4                w = d * code - d * z
 *   NVFP4             64    0 + 2 * 576                codes4, scale 2       w = scale / 2 * fp4[code]
 *   Q1_0             128   64 + 4 * 128  f16 d         codes1                w = d * (2 code - 1)
 *   Q2_K             256  128 + 8 * 320  f16 d, dmin   codes2, scale n,      w = d * scale * code
 *                                                        min n                   - dmin * min
 *   Q3_K             256   64 + 8 * 448  f16 d         codes2, high1,        w = d * scale * (code - 4)
 *                                                        s8 scale 2
 *   Q4_K             256  128 + 8 * 576  f16 d, dmin   codes4, u8 scale,     w = d * scale * code
 *                                                        u8 min                  - dmin * min
 *   Q5_K             256  128 + 8 * 704  f16 d, dmin   codes4, high1,        as Q4_K
 *                                                        u8 scale, u8 min
 *   Q6_K             256   64 + 8 * 832  f16 d         codes4, high2,        w = d * scale * (code - 32)
 *                                                        s8 scale 2
 *   IQ4_XS           256   64 + 8 * 544  f16 d         codes4, s8 scale      w = d * scale * iq4[code]
 *   TQ1_0 TQ2_0      256   64 + 8 * 256  f16 d         codes2                w = d * (code - 1)
 *   IQ2_XXS          256   64 + 8 * 288  f16 d         4 indices, signs,     w = d / 8 * odd * +-grid
 *                                                        scale
 *   IQ2_XS IQ2_S     256   64 + 8 * 320  f16 d         4 indices, signs,     w = d / 8 * odd * +-grid
 *                                                        2 bits, scale n
 *   IQ3_XXS          256   64 + 8 * 416  f16 d         8 indices, signs,     w = d / 4 * odd * +-grid
 *                                                        scale
 *   IQ3_S            256   64 + 8 * 448  f16 d         8 indices, signs,     w = d * odd * +-grid
 *                                                        1 bit, scale
 *   IQ1_S IQ1_M      256   64 + 8 * 224  f16 d         4 indices, 4 bits,    w = d / 8 * odd
 *                                                        scale n                 * (8 grid +- 1)
 *
 * "scale 2" are 32 scales of inputs 0-15, then 32 of 16-31 (of NVFP4 unsigned e4m3); "scale n" both
 * in the lower and upper half of a byte. odd is 2 scale + 1. iq4, fp4 and grids: weight_tables.h.
 * f8 is the number of which the byte is the upper half as f16, of E4M3 that times 2^-8, so that d
 * is 2^8 times the scale; whoever packs E4M3 sees to it that there is no NaN (0x7f, 0xff), which
 * would be a number. Types Z are those of GPTQ and AWQ: d * (code - z), which is exact in f32.
 *
 * Their parts for a block of 32 inputs, output o = 0..31 and j = 0..3:
 *
 *   part    bytes  byte                  holds
 *   codes8   1024  (g * 32 + o) * 4 + j  g = 0..7: the code of input 4g + j
 *   codes4    512  (g * 32 + o) * 4 + j  g = 0..3: the codes of inputs 4g + j in its lower half
 *                                        and 16 + 4g + j in its upper half
 *   codes2    256  p * 128 + o * 4 + j   p = 0, 1: bits 2b and 2b + 1, b = 0..3: the code of
 *                                        input 4(4p + b) + j
 *   codes1    128  o * 4 + j             bit g, g = 0..7: the code of input 4g + j
 *   high2     256  as codes2             the two bits above those of the code
 *   high1     128  as codes1             the bit above those of the code
 *   indices   32n  i * 32 + o            i = 0..n - 1: the lowest 8 bits of the index of inputs
 *                                        32 / n * i on
 *   n bits    32   (i * n / 8) * 32 + o  bits i * n % 8 on: the upper bits of index i; of the 4 of
 *                                        IQ1 the highest is the sign of the 1
 *   signs     128  g * 16 + o / 2        g = 0..7: bits 4 (o % 2) + j: 1 where input 4g + j is
 *                                        negative
 */
/* clang-format on */

#define OCTAVO_PANEL 32 /* outputs in a panel */
#define OCTAVO_BLOCK 32 /* inputs in a quantised activation block */

typedef enum octavo_weight_type {
    OCTAVO_WEIGHT_F32,
    OCTAVO_WEIGHT_F16,
    OCTAVO_WEIGHT_BF16,
    OCTAVO_WEIGHT_F8_E4M3,
    OCTAVO_WEIGHT_F8_E5M2,
    OCTAVO_WEIGHT_Q8_0, /* from here on: codes of integers */
    OCTAVO_WEIGHT_Q4_0,
    OCTAVO_WEIGHT_Q4_1,
    OCTAVO_WEIGHT_Q5_0,
    OCTAVO_WEIGHT_Q5_1,
    OCTAVO_WEIGHT_Q1_0,
    OCTAVO_WEIGHT_IQ4_NL,
    OCTAVO_WEIGHT_MXFP4,
    OCTAVO_WEIGHT_NVFP4,
    OCTAVO_WEIGHT_Z2,
    OCTAVO_WEIGHT_Z3,
    OCTAVO_WEIGHT_Z4,
    OCTAVO_WEIGHT_Z4_64,
    OCTAVO_WEIGHT_Z8,
    OCTAVO_WEIGHT_Q2_K,
    OCTAVO_WEIGHT_Q3_K,
    OCTAVO_WEIGHT_Q4_K,
    OCTAVO_WEIGHT_Q5_K,
    OCTAVO_WEIGHT_Q6_K,
    OCTAVO_WEIGHT_IQ4_XS,
    OCTAVO_WEIGHT_TQ1_0,
    OCTAVO_WEIGHT_TQ2_0,
    OCTAVO_WEIGHT_IQ2_XXS, /* from here on: grids */
    OCTAVO_WEIGHT_IQ2_XS,
    OCTAVO_WEIGHT_IQ2_S,
    OCTAVO_WEIGHT_IQ3_XXS,
    OCTAVO_WEIGHT_IQ3_S,
    OCTAVO_WEIGHT_IQ1_S,
    OCTAVO_WEIGHT_IQ1_M,
    OCTAVO_WEIGHT_TYPES,
    /* no types of weights: what kernels stage grids as */
    OCTAVO_WEIGHT_STAGED = OCTAVO_WEIGHT_TYPES,
    OCTAVO_WEIGHT_STAGED_2,
    OCTAVO_WEIGHT_TYPES_AND_STAGED,
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
 * row_bytes apart; panel: panel_bytes, 64-aligned. Blocks are those of gguf; what no block of a
 * file is, is put together by who loads it: F8      f32 d, 64 bytes Z2, Z3  f16 d, s8 z, and the
 * output's own bytes of the record's codes2 (and high1) Z4      f16 d, s8 z, for each 32 inputs 16
 * bytes of the codes of inputs i and 16 + i Z8      f16 d, s8 z, 32 bytes */
void octavo_weight_pack(octavo_weight_type type, uint8_t *panel, const uint8_t *source,
                        size_t row_bytes, int n_rows, int64_t k);

/* Dequantises inputs [k0, k1) of one panel: out [k1 - k0][32] f32. k0 and k1 on blocks of 32 for
 * quantised types (any input for F32, F16 and F8, even for BF16). */
void octavo_weight_unpack(octavo_weight_type type, float *out, const uint8_t *panel, int64_t k0,
                          int64_t k1);

/* Dequantises one output row of a panel: out [k] f32; row 0..31. For embedding look-up. */
void octavo_weight_unpack_row(octavo_weight_type type, float *out, const uint8_t *panel, int row,
                              int64_t k);

#endif
