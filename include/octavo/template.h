/* SPDX-License-Identifier: Apache-2.0
 *
 * Chat templates: the subset of Jinja in which models say how a conversation becomes one prompt.
 *
 * The dialect is the one in which such templates are written and rendered elsewhere: sandboxed
 * Jinja 3 with trim_blocks and lstrip_blocks, break and continue, no escaping, a filter `tojson`
 * that writes what json.dumps writes, and the functions raise_exception, strftime_now, namespace,
 * range, dict, joiner and cycler. Values behave and print as Python's do. What is missing: template
 * inheritance, include and import, integers beyond 64 bits, and the filters pprint, random,
 * striptags and urlize.
 */
#ifndef OCTAVO_TEMPLATE_H
#define OCTAVO_TEMPLATE_H

#include "octavo/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits that no template can pass, however hostile; passing one is OCTAVO_ERROR_LIMIT. */
#define OCTAVO_TEMPLATE_MAX_TEXT (4u << 20) /* bytes of template text */
#define OCTAVO_TEMPLATE_MAX_OUTPUT                                                                 \
    (16u << 20)                                 /* bytes of rendered text, also of any one string  \
                                                 */
#define OCTAVO_TEMPLATE_MAX_MEMORY (256u << 20) /* bytes of values made during one render */
#define OCTAVO_TEMPLATE_MAX_STEPS                                                                  \
    10000000u                             /* expressions, statements, loop turns of one render     \
                                           */
#define OCTAVO_TEMPLATE_MAX_RANGE 100000u /* items of one range() */
#define OCTAVO_TEMPLATE_MAX_DEPTH 200u    /* nesting of tags and expressions in the text */

typedef struct octavo_template octavo_template;

/* A wall-clock time in the reader's own time zone. Month and day count from 1. */
typedef struct octavo_template_time {
    int year, month, day;
    int hour, minute, second;
} octavo_template_time;

typedef struct octavo_template_options {
    size_t size; /* sizeof(octavo_template_options) */
    /* What strftime_now() sees; NULL: the system's local time at the first call. */
    const octavo_template_time *now;
} octavo_template_options;

/* Parses `text` (`length` bytes of UTF-8, copied) into *out, which the caller gives to
 * octavo_template_destroy. On failure *out is untouched.
 * OCTAVO_ERROR_FORMAT: not a template; error->offset is the byte, the message names line and
 * column. OCTAVO_ERROR_UNSUPPORTED: a tag of Jinja that is not offered here. OCTAVO_ERROR_LIMIT:
 * too long or too deeply nested. OCTAVO_ERROR_MEMORY. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_template_create(const char *text, size_t length,
                                                                  octavo_template **out,
                                                                  octavo_error *error);

/* Destroys *tmpl and makes it NULL. Takes a pointer to NULL. No render may be running. */
OCTAVO_API void octavo_template_destroy(octavo_template **tmpl);

/* Renders with the variables of one JSON object (`messages`, `tools`, `add_generation_prompt`,
 * `bos_token`, ...; the order of keys is kept). `tools` and `documents` are none when absent, every
 * other absent name is undefined. `options` may be NULL. On success *text is a terminated string
 * that the caller gives to octavo_text_free, and *length its bytes without the terminator: a text
 * may hold zero bytes. `length` may be NULL. On failure both are untouched.
 * OCTAVO_ERROR_INVALID: the template itself refused by raise_exception(): see
 * octavo_template_raised. OCTAVO_ERROR_FORMAT: the variables are not a JSON object (then
 * error->offset is the byte), or template and variables do not fit, such as an attribute of
 * something undefined. OCTAVO_ERROR_LIMIT: see above. OCTAVO_ERROR_MEMORY.
 * Any thread: a template never changes, so several threads may render one at the same time. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_template_render(
    const octavo_template *tmpl, const char *variables_json, const octavo_template_options *options,
    char **text, size_t *length, octavo_error *error);

/* The text that the template gave to raise_exception(), cut where the error's message ends, or NULL
 * when `error` tells of anything else. A view into *error. Any thread. */
OCTAVO_API const char *octavo_template_raised(const octavo_error *error);

/* Frees a text that octavo_template_render returned. Takes NULL. Any thread. */
OCTAVO_API void octavo_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
