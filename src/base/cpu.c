/* SPDX-License-Identifier: Apache-2.0
 *
 * Detection and choice of instruction sets. Built at the architecture's baseline.
 */
#include "base/cpu.h"

#include "base/compiler.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

enum {
    LEVEL_AVX2 = OCTAVO_CPU_AVX2,
    LEVEL_AVX512 = LEVEL_AVX2 | OCTAVO_CPU_AVX512,
    LEVEL_AVX512_VNNI = LEVEL_AVX512 | OCTAVO_CPU_AVX512_VNNI,
    LEVEL_AVX512_VBMI = LEVEL_AVX512_VNNI | OCTAVO_CPU_AVX512_VBMI,
    LEVEL_AVX512_BF16 = LEVEL_AVX512_VBMI | OCTAVO_CPU_AVX512_BF16,
    LEVEL_AMX = LEVEL_AVX512_BF16 | OCTAVO_CPU_AMX,
};

static const octavo_cpu_level levels[] = {
    {"scalar", 0},
    {"avx2", LEVEL_AVX2},
    {"avx512", LEVEL_AVX512},
    {"avx512_vnni", LEVEL_AVX512_VNNI},
    {"avx512_vbmi", LEVEL_AVX512_VBMI},
    {"avx512_bf16", LEVEL_AVX512_BF16},
    {"amx", LEVEL_AMX},
    {"neon", OCTAVO_CPU_NEON},
};

const octavo_cpu_level *octavo_cpu_levels(size_t *count) {
    *count = OCTAVO_COUNT(levels);
    return levels;
}

#if defined(__x86_64__) || defined(__i386__)

/* Bits of CPUID leaves 1, 7.0 and 7.1, and of XCR0, as Intel's and AMD's manuals number them. */
#define BIT(n)         (1u << (n))
#define LEAF1_ECX_AVX2 (BIT(12) | BIT(27) | BIT(28) | BIT(29)) /* FMA, OSXSAVE, AVX, F16C */
#define LEAF7_EBX_AVX2 BIT(5)
#define LEAF7_EBX_512  (BIT(16) | BIT(17) | BIT(30) | BIT(31)) /* F, DQ, BW, VL */
#define LEAF7_ECX_VNNI BIT(11)
#define LEAF7_ECX_VBMI BIT(1)
#define LEAF7_EDX_AMX  (BIT(22) | BIT(24) | BIT(25)) /* bf16, tile, int8 */
#define LEAF71_EAX_BF  BIT(5)
#define XCR0_AVX       (BIT(1) | BIT(2))
#define XCR0_AVX512    (XCR0_AVX | BIT(5) | BIT(6) | BIT(7))
#define XCR0_AMX       (BIT(17) | BIT(18))

static bool has(uint64_t set, uint32_t bits) {
    return (set & bits) == bits;
}

/* Linux keeps the tile registers off until a process asks for them. */
static bool amx_permitted(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}

/* Intel's cores begin a bf16 dot product every other cycle, and two multiplications of f32 in each:
 * measured on Emerald Rapids, 86 and 177 GFLOP/s a core. */
static bool bf16_is_slow(void) {
    uint32_t eax, ebx, ecx, edx;
    return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_INTEL_ebx &&
           ecx == signature_INTEL_ecx && edx == signature_INTEL_edx;
}

octavo_cpu_flags octavo_cpu_detect(void) {
    uint32_t eax, ebx, ecx, edx;
    uint32_t eax1 = 0, ebx1, ecx1, edx1;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !has(ecx, LEAF1_ECX_AVX2)) return 0;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return 0;
    if (eax >= 1) __get_cpuid_count(7, 1, &eax1, &ebx1, &ecx1, &edx1);
    uint64_t saved = octavo_x86_xgetbv0();

    octavo_cpu_flags flags = 0;
    if (!has(ebx, LEAF7_EBX_AVX2) || !has(saved, XCR0_AVX)) return flags;
    flags |= OCTAVO_CPU_AVX2;
    if (!has(ebx, LEAF7_EBX_512) || !has(saved, XCR0_AVX512)) return flags;
    flags |= OCTAVO_CPU_AVX512;
    if (!has(ecx, LEAF7_ECX_VNNI)) return flags;
    flags |= OCTAVO_CPU_AVX512_VNNI;
    if (!has(ecx, LEAF7_ECX_VBMI)) return flags;
    flags |= OCTAVO_CPU_AVX512_VBMI;
    if (!has(eax1, LEAF71_EAX_BF)) return flags;
    flags |= OCTAVO_CPU_AVX512_BF16;
    if (has(edx, LEAF7_EDX_AMX) && has(saved, XCR0_AMX) && amx_permitted()) {
        flags |= OCTAVO_CPU_AMX;
    }
    return flags;
}

#elif defined(__aarch64__)

octavo_cpu_flags octavo_cpu_detect(void) {
    return OCTAVO_CPU_NEON; /* part of the AArch64 baseline */
}

#else

octavo_cpu_flags octavo_cpu_detect(void) {
    return 0;
}

#endif

#if !defined(__x86_64__) && !defined(__i386__)
static bool bf16_is_slow(void) {
    return false;
}
#endif

/* "scalar, avx2": the levels within `flags`. */
static const char *list_levels(octavo_cpu_flags flags, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < OCTAVO_COUNT(levels) && used < size; i++) {
        if ((levels[i].flags & ~flags) != 0) continue;
        int n = snprintf(text + used, size - used, "%s%s", used != 0 ? ", " : "", levels[i].name);
        if (n < 0) break;
        used += (size_t)n;
    }
    return text;
}

static bool names_level(const char *isa) {
    return isa != NULL && strcmp(isa, "best") != 0;
}

/* How many bytes of a name a message shows: whole characters. */
static int shown_bytes(const char *name) {
    enum { MOST = 40 };
    size_t n = strnlen(name, MOST);
    while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
        n--;
    return (int)n;
}

/* Replaces *flags by the part that `name` allows. `source` says where the name was given. */
static octavo_status narrow(const char *name, const char *source, octavo_cpu_flags machine,
                            octavo_cpu_flags *flags, octavo_error *error) {
    char possible[160];
    list_levels(machine, possible, sizeof(possible));
    for (size_t i = 0; i < OCTAVO_COUNT(levels); i++) {
        if (strcmp(name, levels[i].name) != 0) continue;
        if ((levels[i].flags & ~machine) != 0) {
            return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                               "instruction set %s (%s): this machine does not have it; "
                               "use best or one of %s",
                               name, source, possible);
        }
        *flags &= levels[i].flags;
        return OCTAVO_OK;
    }
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       "instruction set \"%.*s\" (%s): no such level; use best or one of %s",
                       shown_bytes(name), name, source, possible);
}

octavo_status octavo_cpu_select(const char *isa, octavo_cpu_flags *flags, octavo_error *error) {
    const octavo_cpu_flags machine = octavo_cpu_detect();
    const char *variable = getenv("OCTAVO_CPU");
    if (variable != NULL && variable[0] == '\0') variable = NULL;
    octavo_cpu_flags chosen = machine;
    octavo_status status = OCTAVO_OK;
    if (names_level(isa)) status = narrow(isa, "option isa", machine, &chosen, error);
    if (status == OCTAVO_OK && names_level(variable))
        status = narrow(variable, "environment variable OCTAVO_CPU", machine, &chosen, error);
    if (status != OCTAVO_OK) return status;
    /* nothing has been written for AMX yet, so what it implies is slow as well */
    if (!names_level(isa) && !names_level(variable) && bf16_is_slow())
        chosen &= ~(octavo_cpu_flags)(OCTAVO_CPU_AVX512_BF16 | OCTAVO_CPU_AMX);
    *flags = chosen;
    return OCTAVO_OK;
}

const char *octavo_cpu_name(octavo_cpu_flags flags) {
    const char *name = levels[0].name;
    for (size_t i = 1; i < OCTAVO_COUNT(levels); i++) {
        if ((levels[i].flags & ~flags) == 0) name = levels[i].name;
    }
    return name;
}
