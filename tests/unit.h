/* SPDX-License-Identifier: Apache-2.0
 *
 * cmocka and the standard headers that it wants before it.
 */
#ifndef OCTAVO_TESTS_UNIT_H
#define OCTAVO_TESTS_UNIT_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

/* Where cases take long, one of so many is enough with a sanitizer. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNIT_STRIDE 4
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef UNIT_STRIDE
#define UNIT_STRIDE 4
#endif
#ifndef UNIT_STRIDE
#define UNIT_STRIDE 1
#endif

#endif
