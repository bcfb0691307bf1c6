/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes, the caller-owned error and the library's version.
 *
 * Every function that can fail returns an octavo_status. Detail for people goes to an
 * optional octavo_error that the caller owns: pass NULL when the code alone is enough.
 * Out-parameters are untouched on failure.
 */
#ifndef OCTAVO_STATUS_H
#define OCTAVO_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks what the shared library exports; everything else is hidden. */
#if defined(__GNUC__)
#define OCTAVO_API        __attribute__((visibility("default")))
#define OCTAVO_MUST_CHECK __attribute__((warn_unused_result))
#else
#define OCTAVO_API
#define OCTAVO_MUST_CHECK
#endif

/* Version of this header. The build reads these three to name the shared library. */
#define OCTAVO_VERSION_MAJOR 0
#define OCTAVO_VERSION_MINOR 1
#define OCTAVO_VERSION_PATCH 0

/* Zero is success, negative is failure. Codes are only ever added. */
typedef enum octavo_status {
    OCTAVO_OK = 0,
    OCTAVO_ERROR_INVALID = -1,     /* an argument breaks the function's contract */
    OCTAVO_ERROR_MEMORY = -2,      /* the system gave no memory */
    OCTAVO_ERROR_IO = -3,          /* a file or device could not be read or written */
    OCTAVO_ERROR_FORMAT = -4,      /* a file or text is malformed */
    OCTAVO_ERROR_UNSUPPORTED = -5, /* well-formed, but not something this build can do */
    OCTAVO_ERROR_NOT_FOUND = -6,   /* a named thing does not exist */
    OCTAVO_ERROR_LIMIT = -7,       /* a stated limit would be passed (context, pages, queue) */
    OCTAVO_ERROR_CANCELLED = -8,   /* the caller asked to stop */
} octavo_status;

/* What went wrong, for a person: "WHAT (WHERE): WHY; HINT".
 * `offset` is the byte in the input at which a parser gave up, or -1. */
typedef struct octavo_error {
    octavo_status status;
    int64_t offset;
    char message[500]; /* always terminated; empty after success */
} octavo_error;

/* The name of a code, such as "format". Never NULL. The text lives forever. Any thread. */
OCTAVO_API const char *octavo_status_name(octavo_status status);

/* The library's version as "MAJOR.MINOR.PATCH". The text lives forever. Any thread. */
OCTAVO_API const char *octavo_version(void);

#ifdef __cplusplus
}
#endif
#endif
