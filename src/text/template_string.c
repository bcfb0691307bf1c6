/* SPDX-License-Identifier: Apache-2.0
 *
 * Code points and character classes for the template interpreter. Text is valid UTF-8 here: it was
 * checked where it came in.
 */
#include "text/template_string.h"

#include <string.h>
#include <utf8proc.h>

bool octavo_utf8_valid(const char *data, size_t size, size_t *bad) {
    const unsigned char *bytes = (const unsigned char *)data;
    size_t at = 0;
    while (at < size) {
        if (bytes[at] < 0x80) {
            at++;
            continue;
        }
        utf8proc_int32_t codepoint;
        size_t rest = size - at;
        utf8proc_ssize_t n =
            utf8proc_iterate(bytes + at, rest < 4 ? (utf8proc_ssize_t)rest : 4, &codepoint);
        if (n <= 0) {
            *bad = at;
            return false;
        }
        at += (size_t)n;
    }
    return true;
}

size_t octavo_utf8_length(const char *data, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)data[i] & 0xc0) != 0x80;
    return n;
}

size_t octavo_utf8_next(const char *data, size_t size, size_t at) {
    at++;
    while (at < size && ((unsigned char)data[at] & 0xc0) == 0x80)
        at++;
    return at;
}

size_t octavo_utf8_previous(const char *data, size_t at) {
    at--;
    while (at > 0 && ((unsigned char)data[at] & 0xc0) == 0x80)
        at--;
    return at;
}

int32_t octavo_utf8_codepoint(const char *data, size_t size, size_t at) {
    utf8proc_int32_t codepoint = 0xfffd;
    size_t rest = size - at < 4 ? size - at : 4;
    if (utf8proc_iterate((const utf8proc_uint8_t *)data + at, (utf8proc_ssize_t)rest, &codepoint) <=
        0)
        return 0xfffd;
    return codepoint;
}

size_t octavo_utf8_encode(int32_t codepoint, char bytes[4]) {
    if (!utf8proc_codepoint_valid(codepoint)) codepoint = 0xfffd;
    utf8proc_uint8_t encoded[4] = {0};
    utf8proc_ssize_t n = utf8proc_encode_char(codepoint, encoded);
    memcpy(bytes, encoded, 4);
    return (size_t)n;
}

size_t octavo_utf8_offset(const char *data, size_t size, size_t index) {
    size_t at = 0;
    for (; index > 0 && at < size; index--)
        at = octavo_utf8_next(data, size, at);
    return at;
}

bool octavo_utf8_is_space(int32_t c) {
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool octavo_utf8_is_printable(int32_t c) {
    if (c < 0x80) return c >= 0x20 && c != 0x7f;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

bool octavo_utf8_is_letter(int32_t c) {
    utf8proc_category_t category = utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool octavo_utf8_is_name(int32_t c, bool first) {
    if (c < 0x80)
        return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (!first && c >= '0' && c <= '9');
    utf8proc_category_t category = utf8proc_category(c);
    if (octavo_utf8_is_letter(c) || category == UTF8PROC_CATEGORY_NL) return true;
    return !first && (category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                      category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_PC);
}

bool octavo_utf8_is_upper(int32_t c) {
    utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT;
}

bool octavo_utf8_is_lower(int32_t c) {
    return utf8proc_category(c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba;
}

size_t octavo_utf8_skip_space(const char *data, size_t size, size_t at) {
    while (at < size && octavo_utf8_is_space(octavo_utf8_codepoint(data, size, at)))
        at = octavo_utf8_next(data, size, at);
    return at;
}

size_t octavo_utf8_trim_end(const char *data, size_t size) {
    while (size > 0) {
        size_t before = octavo_utf8_previous(data, size);
        if (!octavo_utf8_is_space(octavo_utf8_codepoint(data, size, before))) break;
        size = before;
    }
    return size;
}
