/* SPDX-License-Identifier: Apache-2.0
 *
 * Stop texts: finds the first one in a text that comes in parts, and never lets a byte of it out.
 */
#ifndef OCTAVO_CLI_STOP_H
#define OCTAVO_CLI_STOP_H

#include "base/buffer.h"
#include "cli/options.h"

typedef struct octavo_stop_filter {
    const octavo_texts *stops; /* not owned, none of them empty; NULL: no stop texts */
    octavo_buffer held;        /* may yet turn out to begin a stop text */
    const char *found;         /* the stop text that was seen, or NULL */
} octavo_stop_filter;

/* Takes the next part of the text and appends to `out` what is certain to be outside of any stop
 * text. The first stop text to be complete wins, the longest of several. After it nothing more
 * comes out. A failure of memory shows in out->failed or held.failed. */
void octavo_stop_filter_feed(octavo_stop_filter *filter, const char *text, size_t length,
                             octavo_buffer *out);
/* The end of the text: what was held is no stop text. */
void octavo_stop_filter_finish(octavo_stop_filter *filter, octavo_buffer *out);
void octavo_stop_filter_deinit(octavo_stop_filter *filter);

#endif
