/* SPDX-License-Identifier: Apache-2.0
 *
 * The table is a trie in a double array (a 32-bit unit a node) from texts to places in a run of
 * zero-terminated replacements. Nothing in it is trusted: a place outside ends a search.
 */
#include "text/tokenizer_charsmap.h"

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
};

static int digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool decode_base64(octavo_text text, octavo_buffer *out) {
    uint32_t held = 0;
    int n_bits = 0;
    while (text.length > 0 && text.data[text.length - 1] == '=')
        text.length--;
    for (size_t i = 0; i < text.length; i++) {
        int value = digit(text.data[i]);
        if (value < 0) return false;
        held = (held << 6 | (uint32_t)value) & 0xffffff;
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        octavo_buffer_putc(out, (char)(held >> n_bits & 0xff));
    }
    return true;
}

static uint32_t read_u32(const unsigned char *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static octavo_status fail(const char *why, octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "normalizer (precompiled_charsmap): %s; the file is damaged", why);
}

static octavo_status read_table(octavo_charsmap *c, octavo_text base64, octavo_error *error) {
    if (!decode_base64(base64, &c->bytes)) return fail("it is no base64", error);
    if (c->bytes.failed) return octavo_fail_memory(error, "normalizer", base64.length);
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

octavo_status octavo_charsmap_create(octavo_text base64, octavo_charsmap **charsmap,
                                     octavo_error *error) {
    octavo_charsmap *c = octavo_alloc_zero(1, sizeof(*c));
    if (c == NULL) return octavo_fail_memory(error, "normalizer", sizeof(*c));
    octavo_status status = read_table(c, base64, error);
    if (status == OCTAVO_OK) {
        *charsmap = c;
        c = NULL;
    }
    octavo_charsmap_destroy(&c);
    return status;
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

/* The replacement of the shortest text in the table that `text` starts with, or NULL. */
static const char *find(const octavo_charsmap *c, const char *text, size_t length) {
    size_t at = unit_offset(read_u32(c->units));
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        at ^= byte;
        if (byte == 0 || at >= c->n_units) return NULL;
        uint32_t unit = read_u32(c->units + 4 * at);
        if ((unit & (1u << 31 | 0xff)) != byte) return NULL;
        at ^= unit_offset(unit);
        if (at >= c->n_units) return NULL;
        if ((unit >> 8 & 1) == 0) continue;
        size_t place = read_u32(c->units + 4 * at) & 0x7fffffff;
        bool is_start = place < c->n_replacements && (c->replacements[place] & 0xc0) != 0x80;
        return is_start ? c->replacements + place : NULL;
    }
    return NULL;
}

/* Appends the replacement of a text. False when it has none. */
static bool replace(const octavo_charsmap *c, const char *text, size_t length, octavo_buffer *out) {
    const char *found = find(c, text, length);
    if (found == NULL) return false;
    size_t most = c->n_replacements - (size_t)(found - c->replacements);
    const char *end = memchr(found, '\0', most);
    octavo_buffer_append(out, found, end != NULL ? (size_t)(end - found) : most);
    return true;
}

void octavo_charsmap_apply(const octavo_charsmap *charsmap, const char *text, size_t length,
                           octavo_buffer *out) {
    for (size_t begin = 0, end; begin < length; begin = end) {
        size_t size;
        utf8proc_int32_t state = 0;
        uint32_t left = octavo_utf8_read(text + begin, &size);
        for (end = begin + size; end < length; end += size) {
            uint32_t right = octavo_utf8_read(text + end, &size);
            if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)left, (utf8proc_int32_t)right,
                                                 &state))
                break;
            left = right;
        }
        if (end - begin <= CLUSTER_MOST && replace(charsmap, text + begin, end - begin, out))
            continue;
        for (size_t at = begin; at < end; at += size) {
            size = octavo_utf8_size(text[at]);
            if (!replace(charsmap, text + at, size, out))
                octavo_buffer_append(out, text + at, size);
        }
    }
}
