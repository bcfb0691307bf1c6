/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64, as vocabularies spell bytes in.
 */
#ifndef OCTAVO_BASE_BASE64_H
#define OCTAVO_BASE_BASE64_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

/* Appends the bytes that a text stands for. False where it has a character of no digit; out->failed
 * without memory. */
bool octavo_base64_decode(const char *text, size_t length, octavo_buffer *out);

#endif
