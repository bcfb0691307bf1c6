/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops that show what one core of the machine can do: the roofline that benchmarks are held
 * against. They measure nothing themselves; the caller has the clock.
 */
#ifndef OCTAVO_KERNELS_MACHINE_H
#define OCTAVO_KERNELS_MACHINE_H

#include "base/cpu.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of the scratch of a peak loop: finite numbers (zeros will do), 64-aligned, written to. */
#define OCTAVO_MACHINE_SCRATCH 4096

/* Runs the loop `iterations` times out of the first-level cache and returns how many operations
 * that was (a multiply-add is two), or 0 when the level has no instruction for it. */
typedef double octavo_machine_peak_fn(int64_t iterations, void *scratch);

typedef struct octavo_machine_kernels {
    /* Sum (mod 2^64) of the buffer's 64-bit words: reads each byte once, ascending. buffer
     * 64-aligned, bytes a multiple of 64. The same at every level. */
    uint64_t (*read)(const void *buffer, size_t bytes);
    octavo_machine_peak_fn *f32;  /* multiply-adds of f32, fused where there is such a thing */
    octavo_machine_peak_fn *bf16; /* dots of bf16 pairs added to f32 */
    octavo_machine_peak_fn *int8; /* dots of unsigned with signed bytes added to int32 */
} octavo_machine_kernels;

/* Nothing is null afterwards. */
void octavo_machine_kernels_init(octavo_machine_kernels *kernels, octavo_cpu_flags flags);

/* Raise entries to the level (called by the init). */
void octavo_machine_kernels_avx2(octavo_machine_kernels *kernels);
void octavo_machine_kernels_avx512(octavo_machine_kernels *kernels);
void octavo_machine_kernels_avx512_vnni(octavo_machine_kernels *kernels);
void octavo_machine_kernels_avx512_bf16(octavo_machine_kernels *kernels);

#endif
