/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of damaged files share: bytes before a protected page, so that reading one too many
 * ends the test, and what a refusal has to say.
 */
#ifndef OCTAVO_TESTS_FORMATS_BAD_FILE_H
#define OCTAVO_TESTS_FORMATS_BAD_FILE_H

#include "octavo/status.h"

#include <stddef.h>
#include <stdint.h>

/* Fixtures of a group that guards bytes. */
int bad_file_setup(void **unused);
int bad_file_teardown(void **unused);

/* A copy of the bytes that ends at the protected page, until the next call. */
const uint8_t *bad_file_guard(const void *bytes, size_t size);

/* Fails the test unless the status is this one and `text` is in the message. */
void bad_file_refused(octavo_status status, const octavo_error *error, octavo_status expected,
                      const char *text);

#endif
