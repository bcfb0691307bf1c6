/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalisation looks at runs: characters that can neither combine with what is before them nor be
 * changed alone are copied; each run of the others, with the character before it, is decomposed,
 * put in canonical order and, in the forms C and KC, composed. The order is made here and not by
 * utf8proc's own whole-text routine, whose exchange sort is quadratic in the marks on one letter.
 */
#include "text/tokenizer_normalize.h"

#include "base/memory.h"
#include "text/tokenizer_utf8.h"

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

/* Scratch for one run. */
typedef struct run_scratch {
    utf8proc_int32_t *points; /* [capacity]: the run, decomposed */
    utf8proc_int32_t *sorted; /* [capacity]: while its marks are sorted */
    size_t capacity;
} run_scratch;

/* What lies under these is never changed by a form, nor joined to the character before. */
static const uint32_t inert_below[] = {
    [OCTAVO_NFC] = 0x300, [OCTAVO_NFD] = 0xc0, [OCTAVO_NFKC] = 0xa0, [OCTAVO_NFKD] = 0xa0};

/* The same for any character: those, and the unified ideographs. True is a promise, false is none.
 */
static bool is_inert(octavo_normal_form form, uint32_t point) {
    return point < inert_below[form] || (point >= 0x4e00 && point <= 0x9fff);
}

static int combining_class(utf8proc_int32_t point) {
    return utf8proc_get_property(point)->combining_class;
}

/* Stable sort by combining class: by insertion where few, by counting where many. */
static void sort_marks(utf8proc_int32_t *points, utf8proc_int32_t *scratch, size_t n) {
    if (n <= 24) {
        for (size_t i = 1; i < n; i++) {
            utf8proc_int32_t point = points[i];
            int class = combining_class(point);
            size_t at = i;
            for (; at > 0 && combining_class(points[at - 1]) > class; at--)
                points[at] = points[at - 1];
            points[at] = point;
        }
        return;
    }
    size_t starts[257] = {0};
    for (size_t i = 0; i < n; i++)
        starts[(combining_class(points[i]) & 0xff) + 1]++;
    for (size_t c = 0; c < 256; c++)
        starts[c + 1] += starts[c];
    for (size_t i = 0; i < n; i++)
        scratch[starts[combining_class(points[i]) & 0xff]++] = points[i];
    memcpy(points, scratch, n * sizeof(*points));
}

static void order_marks(utf8proc_int32_t *points, utf8proc_int32_t *scratch, size_t n) {
    for (size_t at = 0; at < n;) {
        if (combining_class(points[at]) == 0) {
            at++;
            continue;
        }
        size_t end = at + 1;
        while (end < n && combining_class(points[end]) != 0)
            end++;
        sort_marks(points + at, scratch, end - at);
        at = end;
    }
}

static bool run_reserve(run_scratch *scratch, size_t n) {
    if (n <= scratch->capacity) return true;
    size_t capacity = scratch->capacity * 2 > n ? scratch->capacity * 2 : n;
    size_t bytes;
    if (!octavo_size_mul(capacity, sizeof(*scratch->points), &bytes)) return false;
    utf8proc_int32_t *points = octavo_realloc(scratch->points, bytes);
    if (points == NULL) return false;
    scratch->points = points;
    utf8proc_int32_t *sorted = octavo_realloc(scratch->sorted, bytes);
    if (sorted == NULL) return false;
    scratch->sorted = sorted;
    scratch->capacity = capacity;
    return true;
}

/* Appends one run, decomposed or composed. */
static void append_run(octavo_buffer *out, octavo_normal_form form, run_scratch *scratch,
                       const char *text, size_t length) {
    bool is_compatible = form == OCTAVO_NFKC || form == OCTAVO_NFKD;
    bool composes = form == OCTAVO_NFC || form == OCTAVO_NFKC;
    utf8proc_option_t options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE;
    if (is_compatible) options |= UTF8PROC_COMPAT;
    enum { DECOMPOSED_MOST = 18 }; /* characters one may decompose to, with a wide margin */
    size_t n = 0;
    for (size_t at = 0; at < length;) {
        size_t size;
        uint32_t point = octavo_utf8_read(text + at, &size);
        at += size;
        if (!run_reserve(scratch, n + DECOMPOSED_MOST)) {
            out->failed = true;
            return;
        }
        int boundary = 0;
        utf8proc_ssize_t more = utf8proc_decompose_char(
            (utf8proc_int32_t)point, scratch->points + n, DECOMPOSED_MOST, options, &boundary);
        if (more < 0 || more > DECOMPOSED_MOST) { /* not a character to utf8proc: as it is */
            scratch->points[n] = (utf8proc_int32_t)point;
            more = 1;
        }
        n += (size_t)more;
    }
    order_marks(scratch->points, scratch->sorted, n);
    utf8proc_ssize_t left = (utf8proc_ssize_t)n;
    if (composes)
        left = utf8proc_normalize_utf32(scratch->points, left, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    for (utf8proc_ssize_t i = 0; i < left; i++) {
        utf8proc_uint8_t bytes[4];
        utf8proc_ssize_t size = utf8proc_encode_char(scratch->points[i], bytes);
        octavo_buffer_append(out, bytes, (size_t)size);
    }
}

void octavo_normalize(octavo_buffer *out, octavo_normal_form form, const char *text,
                      size_t length) {
    run_scratch scratch = {0};
    size_t copied = 0; /* text before here is in `out` */
    size_t last = 0;   /* start of the last inert character, or of the text before there is one */
    for (size_t at = 0; at < length;) {
        size_t size;
        if (is_inert(form, octavo_utf8_read(text + at, &size))) {
            last = at;
            at += size;
            continue;
        }
        size_t end = at + size;
        while (end < length && !is_inert(form, octavo_utf8_read(text + end, &size)))
            end += size;
        octavo_buffer_append(out, text + copied, last - copied);
        append_run(out, form, &scratch, text + last, end - last);
        copied = last = at = end;
    }
    octavo_buffer_append(out, text + copied, length - copied);
    octavo_free(scratch.points);
    octavo_free(scratch.sorted);
}

void octavo_normalize_nfc(octavo_buffer *out, const char *text, size_t length) {
    octavo_normalize(out, OCTAVO_NFC, text, length);
}

void octavo_normalize_spaces(octavo_buffer *out, const char *text, size_t length, bool prefix) {
    if (length == 0) return;
    if (!octavo_buffer_reserve(out, length + length / 2 + 3)) return;
    if (prefix) octavo_buffer_append(out, OCTAVO_SPACE_MARK, 3);
    const char *end = text + length;
    while (text < end) {
        const char *space = memchr(text, ' ', (size_t)(end - text));
        octavo_buffer_append(out, text, (size_t)((space != NULL ? space : end) - text));
        if (space == NULL) break;
        octavo_buffer_append(out, OCTAVO_SPACE_MARK, 3);
        text = space + 1;
    }
}
