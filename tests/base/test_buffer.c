/* SPDX-License-Identifier: Apache-2.0
 *
 * The growable buffer, and JSON strings of arbitrary bytes.
 */
#include "../unit.h"
#include "base/buffer.h"
#include "base/compiler.h"
#include "base/memory.h"

#include <string.h>

static void test_append(void **unused) {
    (void)unused;
    octavo_buffer buffer = {0};
    octavo_buffer_append(&buffer, NULL, 0);
    assert_string_equal(buffer.data, "");
    octavo_buffer_puts(&buffer, "leaf");
    octavo_buffer_putc(&buffer, ' ');
    octavo_buffer_append(&buffer, "\0x", 2);
    octavo_buffer_printf(&buffer, "%s %d", "folio", 4);
    assert_false(buffer.failed);
    assert_int_equal(buffer.size, 14);
    assert_memory_equal(buffer.data, "leaf \0xfolio 4\0", 15);

    octavo_buffer_clear(&buffer);
    assert_int_equal(buffer.size, 0);
    assert_string_equal(buffer.data, "");
    assert_true(buffer.capacity > 0);
    octavo_buffer_puts(&buffer, "kept");
    char *text = octavo_buffer_take(&buffer);
    assert_string_equal(text, "kept");
    octavo_free(text);
    assert_null(buffer.data);
    assert_int_equal(buffer.size + buffer.capacity, 0);

    text = octavo_buffer_take(&buffer); /* nothing appended: an empty text, not an error */
    assert_string_equal(text, "");
    octavo_free(text);
    octavo_buffer_deinit(&buffer);
}

/* Growth across many sizes, byte by byte and by texts around each capacity. */
static void test_growth(void **unused) {
    (void)unused;
    octavo_buffer buffer = {0};
    for (int i = 0; i < 5000; i++) {
        octavo_buffer_putc(&buffer, (char)('a' + i % 26));
        assert_int_equal(buffer.data[i + 1], 0);
    }
    for (int i = 0; i < 5000; i++) {
        assert_int_equal(buffer.data[i], 'a' + i % 26);
    }
    octavo_buffer_deinit(&buffer);

    for (int length = 0; length < 300; length++) {
        octavo_buffer_printf(&buffer, "%*d", length, 7);
        int expected = length > 1 ? length : 1;
        assert_int_equal(buffer.size, expected);
        assert_int_equal(buffer.data[expected - 1], '7');
        octavo_buffer_deinit(&buffer);
    }
}

static void test_failure_sticks(void **unused) {
    (void)unused;
    octavo_buffer buffer = {0};
    octavo_buffer_puts(&buffer, "before");
    volatile size_t most = SIZE_MAX;
    assert_false(octavo_buffer_reserve(&buffer, most));
    assert_true(buffer.failed);
    octavo_buffer_puts(&buffer, "after");
    octavo_buffer_printf(&buffer, "%d", 1);
    octavo_buffer_json_string(&buffer, "x", 1);
    assert_int_equal(buffer.size, 6);
    assert_string_equal(buffer.data, "before");
    assert_null(octavo_buffer_take(&buffer));
    assert_false(buffer.failed);
    octavo_buffer_puts(&buffer, "again");
    assert_string_equal(buffer.data, "again");
    octavo_buffer_deinit(&buffer);
}

static void check_json(const char *bytes, size_t size, const char *expected) {
    octavo_buffer buffer = {0};
    octavo_buffer_json_string(&buffer, bytes, size);
    assert_false(buffer.failed);
    assert_string_equal(buffer.data, expected);
    octavo_buffer_deinit(&buffer);
}

#define CHECK_JSON(bytes, expected) check_json(bytes, sizeof(bytes) - 1, expected)
#define BAD                         "\xef\xbf\xbd" /* U+FFFD */

static void test_json_string(void **unused) {
    (void)unused;
    CHECK_JSON("", "\"\"");
    CHECK_JSON("page", "\"page\"");
    CHECK_JSON("\"\\/", "\"\\\"\\\\/\"");
    CHECK_JSON("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"");
    CHECK_JSON("a\0\x01\x1f\x7f"
               "b",
               "\"a\\u0000\\u0001\\u001f\x7f"
               "b\"");
    CHECK_JSON("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x93\x96",
               "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x93\x96\"");
    CHECK_JSON("\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80",
               "\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80\"");

    CHECK_JSON("\x80", "\"" BAD "\"");
    CHECK_JSON("a\xff\xfe"
               "b",
               "\"a" BAD BAD "b\"");
    CHECK_JSON("\xc0\xaf", "\"" BAD BAD "\"");         /* overlong */
    CHECK_JSON("\xe0\x80\xaf", "\"" BAD BAD BAD "\""); /* overlong */
    CHECK_JSON("\xf0\x8f\xbf\xbf", "\"" BAD BAD BAD BAD "\"");
    CHECK_JSON("\xed\xa0\x80", "\"" BAD BAD BAD "\"");         /* surrogate */
    CHECK_JSON("\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""); /* past U+10FFFF */
    CHECK_JSON("\xe2\x82", "\"" BAD "\"");                     /* cut at the end */
    CHECK_JSON("\xf0\x9f\x93\"", "\"" BAD "\\\"\"");           /* cut by a quote */
    CHECK_JSON("\xe2\x82\xe2\x82\xac", "\"" BAD "\xe2\x82\xac\"");
}

/* Decodes one strict UTF-8 character by value, not by ranges; 0 length if it is none. */
static size_t strict_character(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;
    if (length == 0 || s[0] >= 0xf8) return 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t value = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        value = value << 6 | (s[i] & 0x3fu);
    }
    bool surrogate = value >= 0xd800 && value <= 0xdfff;
    return value >= least[length] && value <= 0x10ffff && !surrogate ? length : 0;
}

/* Strict reading of a JSON string (RFC 8259, section 7). */
static bool is_json_string(const unsigned char *s, size_t size) {
    if (size < 2 || s[0] != '"' || s[size - 1] != '"') return false;
    for (size_t i = 1; i < size - 1;) {
        if (s[i] == '"' || s[i] < 0x20) return false;
        if (s[i] == '\\') {
            size_t escape = s[i + 1] == 'u' ? 6 : 2;
            if (strchr("\"\\/bfnrtu", s[i + 1]) == NULL || s[i + 1] == '\0') return false;
            if (escape == 6 && strspn((const char *)s + i + 2, "0123456789abcdef") < 4)
                return false;
            i += escape;
            if (i > size - 1) return false;
            continue;
        }
        size_t length = strict_character(s + i);
        if (length == 0) return false;
        i += length;
    }
    return true;
}

/* All texts of two bytes after a lead, and random bytes with many leads: always valid JSON. */
static void test_json_string_any_bytes(void **unused) {
    (void)unused;
    octavo_buffer buffer = {0};
    static const unsigned char leads[] = {'a',  0xc2, 0xe0, 0xe2, 0xed,
                                          0xf0, 0xf1, 0xf4, 0xff, '\\'};
    for (size_t l = 0; l < OCTAVO_COUNT(leads); l++) {
        for (unsigned pair = 0; pair < 0x10000; pair++) {
            unsigned char text[] = {leads[l], (unsigned char)(pair >> 8), (unsigned char)pair};
            octavo_buffer_clear(&buffer);
            octavo_buffer_json_string(&buffer, (const char *)text, sizeof(text));
            assert_true(is_json_string((const unsigned char *)buffer.data, buffer.size));
        }
    }
    uint32_t random = 12345;
    for (int run = 0; run < 5000; run++) {
        unsigned char text[64];
        for (size_t i = 0; i < sizeof(text); i++) {
            random = random * 1664525u + 1013904223u;
            text[i] = (unsigned char)(random >> 24 | (random & 0x100 ? 0x80 : 0));
        }
        octavo_buffer_clear(&buffer);
        octavo_buffer_json_string(&buffer, (const char *)text, (size_t)run % sizeof(text));
        assert_true(is_json_string((const unsigned char *)buffer.data, buffer.size));
    }
    octavo_buffer_deinit(&buffer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_failure_sticks),
        cmocka_unit_test(test_json_string),
        cmocka_unit_test(test_json_string_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
