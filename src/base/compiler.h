/* SPDX-License-Identifier: Apache-2.0
 *
 * The only place where compiler extensions are spelled.
 */
#ifndef OCTAVO_BASE_COMPILER_H
#define OCTAVO_BASE_COMPILER_H

#include <assert.h>

#if defined(__GNUC__)
#define OCTAVO_PRINTF(format, args) __attribute__((format(printf, format, args)))
#define OCTAVO_ALWAYS_INLINE        __attribute__((always_inline)) inline
#define OCTAVO_LIKELY(x)            __builtin_expect(!!(x), 1)
#define OCTAVO_UNLIKELY(x)          __builtin_expect(!!(x), 0)
#define OCTAVO_PREFETCH(p)          __builtin_prefetch(p)
#else
#define OCTAVO_PRINTF(format, args)
#define OCTAVO_ALWAYS_INLINE inline
#define OCTAVO_LIKELY(x)     (x)
#define OCTAVO_UNLIKELY(x)   (x)
#define OCTAVO_PREFETCH(p)   ((void)(p))
#endif

/* What we promised each other; gone in release builds (NDEBUG). Never for bad input. */
#define octavo_assert(condition) assert(condition)

#define OCTAVO_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
