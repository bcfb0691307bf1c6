/* SPDX-License-Identifier: Apache-2.0
 *
 * Works byte by byte, so that neither tokens nor characters that the text arrives in make a
 * difference. `held` is always shorter than the longest stop text between two calls.
 */
#include "cli/stop.h"

#include <string.h>

static size_t n_stops(const octavo_stop_filter *filter) {
    return filter->stops ? filter->stops->n : 0;
}

/* The longest stop text that ends where `held` ends, or NULL. */
static const char *match_end(const octavo_stop_filter *filter) {
    const octavo_buffer *held = &filter->held;
    const char *best = NULL;
    for (size_t i = 0; i < n_stops(filter); i++) {
        const char *stop = filter->stops->items[i];
        size_t n = strlen(stop);
        if (n > held->size || memcmp(held->data + held->size - n, stop, n) != 0) continue;
        if (!best || n > strlen(best)) best = stop;
    }
    return best;
}

/* Bytes at the end of `held` that begin a stop text. */
static size_t open_length(const octavo_stop_filter *filter) {
    const octavo_buffer *held = &filter->held;
    size_t longest = 0;
    for (size_t i = 0; i < n_stops(filter); i++) {
        const char *stop = filter->stops->items[i];
        size_t n = strlen(stop) - 1;
        for (n = n < held->size ? n : held->size; n > longest; n--) {
            if (memcmp(held->data + held->size - n, stop, n) != 0) continue;
            longest = n;
        }
    }
    return longest;
}

static void release(octavo_stop_filter *filter, size_t kept, octavo_buffer *out) {
    octavo_buffer *held = &filter->held;
    size_t n = held->size - kept;
    if (n == 0) return;
    octavo_buffer_append(out, held->data, n);
    memmove(held->data, held->data + n, kept);
    held->size = kept;
}

void octavo_stop_filter_feed(octavo_stop_filter *filter, const char *text, size_t length,
                             octavo_buffer *out) {
    for (size_t i = 0; i < length && !filter->found; i++) {
        octavo_buffer_putc(&filter->held, text[i]);
        if (filter->held.failed) return;
        filter->found = match_end(filter);
        if (!filter->found) continue;
        filter->held.size -= strlen(filter->found);
        release(filter, 0, out);
        return;
    }
    if (!filter->found) release(filter, open_length(filter), out);
}

void octavo_stop_filter_finish(octavo_stop_filter *filter, octavo_buffer *out) {
    if (!filter->found) release(filter, 0, out);
}

void octavo_stop_filter_deinit(octavo_stop_filter *filter) {
    octavo_buffer_deinit(&filter->held);
}
