/* SPDX-License-Identifier: Apache-2.0
 *
 * The only place where compiler extensions are spelled.
 */
#ifndef OCTAVO_BASE_COMPILER_H
#define OCTAVO_BASE_COMPILER_H

#include <assert.h>
#include <stdint.h>

#if defined(__GNUC__)
#define OCTAVO_PRINTF(text, args) __attribute__((format(printf, text, args)))
#define OCTAVO_ALWAYS_INLINE      __attribute__((always_inline)) inline
#define OCTAVO_LIKELY(x)          __builtin_expect(!!(x), 1)
#define OCTAVO_UNLIKELY(x)        __builtin_expect(!!(x), 0)
#define OCTAVO_PREFETCH(p)        __builtin_prefetch(p, 0, 2) /* into the level 2 cache */
#else
#define OCTAVO_PRINTF(text, args)
#define OCTAVO_ALWAYS_INLINE inline
#define OCTAVO_LIKELY(x)     (x)
#define OCTAVO_UNLIKELY(x)   (x)
#define OCTAVO_PREFETCH(p)   ((void)(p))
#endif

/* Pins a partial sum (a vector variable) where it stands in the code: left alone, GCC regroups long
 * sums of integer vectors and keeps all their terms, far more than there are registers. No
 * instruction. */
#if defined(__GNUC__) && defined(__x86_64__)
#define OCTAVO_PIN_VECTOR(sum) __asm__("" : "+v"(sum))
#else
#define OCTAVO_PIN_VECTOR(sum) ((void)(sum))
#endif

/* One turn of a loop that waits for another thread: tells the core that it may rest a little. */
static inline void octavo_cpu_relax(void) {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
    __asm__ volatile("pause" ::: "memory");
#elif defined(__GNUC__) && defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* "yield" is a no-op on most cores */
#endif
}

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
/* Extended control register 0: the register state that the system saves and restores. Only after
 * CPUID reported OSXSAVE. */
static inline uint64_t octavo_x86_xgetbv0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}
#endif

/* What we promised each other; gone in release builds (NDEBUG). Never for bad input. */
#define octavo_assert(condition) assert(condition)

#define OCTAVO_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
