/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of characters, from utf8proc's tables.
 */
#include "text/tokenizer_characters.h"

#include "base/compiler.h"

#include <stddef.h>
#include <utf8proc.h>

static utf8proc_category_t category(uint32_t point) {
    return utf8proc_category((utf8proc_int32_t)point);
}

bool octavo_is_space(uint32_t point) {
    if (point < 0x80) return point == ' ' || (point >= '\t' && point <= '\r');
    if (point == 0x85) return true;
    utf8proc_category_t c = category(point);
    return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP;
}

bool octavo_is_word(uint32_t point) {
    if ((point >= 0x24b6 && point <= 0x24e9) || (point >= 0x1f130 && point <= 0x1f189)) return true;
    if (point == 0x200c || point == 0x200d) return true;
    switch (category(point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return false;
    }
}

bool octavo_is_number(uint32_t point) {
    if (point < 0x80) return point >= '0' && point <= '9';
    utf8proc_category_t c = category(point);
    return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool octavo_is_punctuation(uint32_t point) {
    if (point < 0x80)
        return (point >= '!' && point <= '/') || (point >= ':' && point <= '@') ||
               (point >= '[' && point <= '`') || (point >= '{' && point <= '~');
    utf8proc_category_t c = category(point);
    return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool octavo_is_nonspacing(uint32_t point) {
    return category(point) == UTF8PROC_CATEGORY_MN;
}

bool octavo_is_mark(uint32_t point) {
    utf8proc_category_t c = category(point);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

bool octavo_is_control(uint32_t point) {
    if (point == '\t' || point == '\n' || point == '\r') return false;
    utf8proc_category_t c = category(point);
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO;
}

bool octavo_is_ideograph(uint32_t point) {
    static const struct {
        uint32_t first, last;
    } blocks[] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
                  {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < OCTAVO_COUNT(blocks); i++)
        if (point >= blocks[i].first && point <= blocks[i].last) return true;
    return false;
}

int octavo_lower_case(uint32_t point, uint32_t more[2]) {
    if (point == 0x130) { /* the one character whose lower case is two */
        more[0] = 'i';
        more[1] = 0x307;
        return 2;
    }
    more[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)point);
    return 1;
}
