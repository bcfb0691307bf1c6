/* SPDX-License-Identifier: Apache-2.0
 *
 * The table is a trie in a double array (a 32-bit unit a node) from texts to places in a run of
 * zero-terminated replacements. Nothing in it is trusted: a place outside ends a search.
 */
#include "text/tokenizer_charsmap.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/memory.h"
#include "text/tokenizer_utf8.h"

#include <string.h>
#include <utf8proc.h>

enum { CLUSTER_MOST = 5 }; /* bytes of a grapheme cluster that is looked up as a whole */

struct octavo_charsmap {
    octavo_buffer bytes; /* as decoded: size of the units, the units, the replacements */
    const unsigned char *units;
    size_t n_units;
    const char *replacements;
    size_t n_replacements;
    bool is_longest; /* the longest text counts, and clusters do not */
};

static uint32_t read_u32(const unsigned char *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static octavo_status fail(const char *why, octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "normalizer (precompiled_charsmap): %s; the file is damaged", why);
}

static octavo_status read_table(octavo_charsmap *c, octavo_text text, bool is_base64,
                                octavo_error *error) {
    if (!is_base64)
        octavo_buffer_append(&c->bytes, text.data, text.length);
    else if (!octavo_base64_decode(text.data, text.length, &c->bytes))
        return fail("it is no base64", error);
    if (c->bytes.failed) return octavo_fail_memory(error, "normalizer", text.length);
    if (c->bytes.size < 4) return fail("it is cut short", error);
    const unsigned char *p = (const unsigned char *)c->bytes.data;
    size_t size = read_u32(p);
    if (size > c->bytes.size - 4 || size % 4 != 0 || size == 0)
        return fail("the size of its trie is impossible", error);
    c->units = p + 4;
    c->n_units = size / 4;
    c->replacements = c->bytes.data + 4 + size;
    c->n_replacements = c->bytes.size - 4 - size;
    if (octavo_utf8_valid_prefix(c->replacements, c->n_replacements) != c->n_replacements)
        return fail("its replacements are not UTF-8", error);
    return OCTAVO_OK;
}

static octavo_status create(octavo_text text, bool is_base64, octavo_charsmap **charsmap,
                            octavo_error *error) {
    octavo_charsmap *c = octavo_alloc_zero(1, sizeof(*c));
    if (c == NULL) return octavo_fail_memory(error, "normalizer", sizeof(*c));
    c->is_longest = !is_base64;
    octavo_status status = read_table(c, text, is_base64, error);
    if (status == OCTAVO_OK) {
        *charsmap = c;
        c = NULL;
    }
    octavo_charsmap_destroy(&c);
    return status;
}

octavo_status octavo_charsmap_create(octavo_text base64, octavo_charsmap **charsmap,
                                     octavo_error *error) {
    return create(base64, true, charsmap, error);
}

octavo_status octavo_charsmap_create_raw(octavo_text table, octavo_charsmap **charsmap,
                                         octavo_error *error) {
    return create(table, false, charsmap, error);
}

void octavo_charsmap_destroy(octavo_charsmap **charsmap) {
    if (charsmap == NULL || *charsmap == NULL) return;
    octavo_buffer_deinit(&(*charsmap)->bytes);
    octavo_free(*charsmap);
    *charsmap = NULL;
}

static size_t unit_offset(uint32_t unit) {
    return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* The replacement of the shortest text in the table that `text` starts with, or of the longest, and
 * its length; or NULL. */
static const char *find(const octavo_charsmap *c, const char *text, size_t length,
                        size_t *matched) {
    const char *found = NULL;
    size_t at = unit_offset(read_u32(c->units));
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        at ^= byte;
        if (byte == 0 || at >= c->n_units) break;
        uint32_t unit = read_u32(c->units + 4 * at);
        if ((unit & (1u << 31 | 0xff)) != byte) break;
        at ^= unit_offset(unit);
        if (at >= c->n_units) break;
        if ((unit >> 8 & 1) == 0) continue;
        size_t place = read_u32(c->units + 4 * at) & 0x7fffffff;
        bool is_start = place < c->n_replacements && (c->replacements[place] & 0xc0) != 0x80;
        found = is_start ? c->replacements + place : NULL;
        *matched = i + 1;
        if (!c->is_longest) break;
    }
    return found;
}

/* Appends the replacement of a text and says how much of it that stands for. False when it has
 * none. */
static bool replace(const octavo_charsmap *c, const char *text, size_t length, octavo_buffer *out,
                    size_t *matched) {
    const char *found = find(c, text, length, matched);
    if (found == NULL) return false;
    size_t most = c->n_replacements - (size_t)(found - c->replacements);
    const char *end = memchr(found, '\0', most);
    octavo_buffer_append(out, found, end != NULL ? (size_t)(end - found) : most);
    return true;
}

static void apply_longest(const octavo_charsmap *c, const char *text, size_t length,
                          octavo_buffer *out) {
    for (size_t at = 0, size; at < length; at += size) {
        bool ends_character = false;
        size_t mark = out->size;
        if (replace(c, text + at, length - at, out, &size))
            ends_character = at + size == length || (text[at + size] & 0xc0) != 0x80;
        if (ends_character) continue;
        if (!out->failed) out->size = mark; /* a table that ends inside a character */
        size = octavo_utf8_size(text[at]);
        octavo_buffer_append(out, text + at, size);
    }
}

void octavo_charsmap_apply(const octavo_charsmap *charsmap, const char *text, size_t length,
                           octavo_buffer *out) {
    if (charsmap->is_longest) {
        apply_longest(charsmap, text, length, out);
        return;
    }
    for (size_t begin = 0, end; begin < length; begin = end) {
        size_t size, matched;
        utf8proc_int32_t state = 0;
        uint32_t left = octavo_utf8_read(text + begin, &size);
        for (end = begin + size; end < length; end += size) {
            uint32_t right = octavo_utf8_read(text + end, &size);
            if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)left, (utf8proc_int32_t)right,
                                                 &state))
                break;
            left = right;
        }
        if (end - begin <= CLUSTER_MOST &&
            replace(charsmap, text + begin, end - begin, out, &matched))
            continue;
        for (size_t at = begin; at < end; at += size) {
            size = octavo_utf8_size(text[at]);
            if (!replace(charsmap, text + at, size, out, &matched))
                octavo_buffer_append(out, text + at, size);
        }
    }
}
