/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processor can do, as usable bundles: a flag is set only if every instruction of the
 * bundle works here and now, the operating system's register state included (XGETBV).
 */
#ifndef OCTAVO_BASE_CPU_H
#define OCTAVO_BASE_CPU_H

#include "octavo/status.h"

#include <stddef.h>
#include <stdint.h>

typedef uint32_t octavo_cpu_flags;

enum {
    OCTAVO_CPU_AVX2 = 1 << 0,        /* AVX2, FMA, F16C */
    OCTAVO_CPU_AVX512 = 1 << 1,      /* the above and AVX-512 F, BW, DQ, VL */
    OCTAVO_CPU_AVX512_VNNI = 1 << 2, /* the above and AVX-512 VNNI */
    OCTAVO_CPU_AVX512_VBMI = 1 << 3, /* the above and AVX-512 VBMI */
    OCTAVO_CPU_AVX512_BF16 = 1 << 4, /* the above and AVX-512 BF16 */
    OCTAVO_CPU_AMX = 1 << 5,  /* the above and AMX tile, int8, bf16, with the kernel's permission */
    OCTAVO_CPU_NEON = 1 << 6, /* AArch64 Advanced SIMD */
};

/* One named level and all it implies. The table is in ascending order for each architecture. */
typedef struct octavo_cpu_level {
    const char *name; /* "scalar", "avx2", "avx512", "avx512_vnni", "avx512_vbmi", "avx512_bf16",
                         "amx", "neon" */
    octavo_cpu_flags flags;
} octavo_cpu_level;

/* All levels, those of other architectures included. Lives forever. */
const octavo_cpu_level *octavo_cpu_levels(size_t *count);

/* Flags that this machine has. Any thread; computed anew at each call. On Linux this asks
 * the kernel's permission for AMX, which then holds for the whole process. */
octavo_cpu_flags octavo_cpu_detect(void);

/* Flags to use: `isa` narrowed by the environment variable OCTAVO_CPU, where they name levels.
 * Where neither does (NULL, empty or "best") all that makes this machine fast: without AVX-512 BF16
 * on Intel's processors, which have it at half the pace of f32. A name that does not exist
 * (OCTAVO_ERROR_INVALID) or that this machine lacks (OCTAVO_ERROR_UNSUPPORTED) is refused; the
 * message lists what is possible. */
OCTAVO_MUST_CHECK octavo_status octavo_cpu_select(const char *isa, octavo_cpu_flags *flags,
                                                  octavo_error *error);

/* Name of the highest level in `flags`. Lives forever. */
const char *octavo_cpu_name(octavo_cpu_flags flags);

/* Bytes of one core's level 1 data cache and of its level 2 cache; fair guesses where the system
 * does not tell. For planning, not for inner loops: the answer may be looked up anew. */
size_t octavo_cpu_l1_bytes(void);
size_t octavo_cpu_l2_bytes(void);

/* Physical cores that this process may use, at least 1. Affinity and the control groups' quotas are
 * respected, two hardware threads of a core count once. Reads the machine's topology: not for inner
 * loops. */
int octavo_cpu_cores(void);
/* NUMA nodes that those cores belong to, at least 1. */
int octavo_cpu_numa_nodes(void);

#endif
