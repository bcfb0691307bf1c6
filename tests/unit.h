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

#endif
