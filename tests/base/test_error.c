/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors, statuses, version, log lines.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

static void test_fail(void **unused) {
    (void)unused;
    octavo_error error = {0};
    octavo_status status =
        octavo_fail(&error, OCTAVO_ERROR_LIMIT, "pages (%d): too few; add some", 7);
    assert_int_equal(status, OCTAVO_ERROR_LIMIT);
    assert_int_equal(error.status, OCTAVO_ERROR_LIMIT);
    assert_int_equal(error.offset, -1);
    assert_string_equal(error.message, "pages (7): too few; add some");

    assert_int_equal(octavo_fail_at(&error, OCTAVO_ERROR_FORMAT, 12, "bad"), OCTAVO_ERROR_FORMAT);
    assert_int_equal(error.offset, 12);
    assert_string_equal(error.message, "bad");

    assert_int_equal(octavo_fail(NULL, OCTAVO_ERROR_IO, "%s", "nobody"), OCTAVO_ERROR_IO);
    assert_int_equal(octavo_fail_at(NULL, OCTAVO_ERROR_IO, 3, "nobody"), OCTAVO_ERROR_IO);

    assert_int_equal(octavo_fail_memory(&error, "cache", UINT64_MAX), OCTAVO_ERROR_MEMORY);
    assert_string_equal(
        error.message,
        "out of memory (cache): 18446744073709551615 bytes more are not to be had; ask for less or "
        "free some");
    assert_int_equal(error.offset, -1);
}

/* An error may be wrapped in place: its own message is an argument. */
static void test_wrap(void **unused) {
    (void)unused;
    octavo_error error = {0};
    (void)octavo_fail(&error, OCTAVO_ERROR_IO, "disk gone");
    (void)octavo_fail(&error, error.status, "cannot load model (x): %s", error.message);
    assert_string_equal(error.message, "cannot load model (x): disk gone");
}

/* Texts of characters of 1 to 4 bytes, at every alignment to the end of the message. */
static void test_cut_at_whole_characters(void **unused) {
    (void)unused;
    static const char *const characters[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x93\x96"};
    enum { ROOM = sizeof(((octavo_error *)0)->message) - 1 };
    for (size_t c = 0; c < OCTAVO_COUNT(characters); c++) {
        size_t width = strlen(characters[c]);
        for (size_t lead = 0; lead < 8; lead++) {
            char text[2 * ROOM + 16] = "........";
            size_t length = lead;
            while (length < ROOM + 12) {
                memcpy(text + length, characters[c], width);
                length += width;
            }
            text[length] = '\0';
            octavo_error error;
            memset(&error, 0x55, sizeof(error));
            (void)octavo_fail(&error, OCTAVO_ERROR_FORMAT, "%s", text);
            size_t expected = lead + (ROOM - lead) / width * width;
            assert_int_equal(strlen(error.message), expected);
            assert_memory_equal(error.message, text, expected);
        }
    }
    /* A text that just fits is not cut; half a character at its end is no UTF-8. */
    char exact[ROOM + 1];
    memset(exact, 'x', ROOM);
    exact[ROOM - 1] = '\xc3';
    exact[ROOM] = '\0';
    octavo_error error;
    (void)octavo_fail(&error, OCTAVO_ERROR_FORMAT, "%s", exact);
    exact[ROOM - 1] = '?';
    assert_string_equal(error.message, exact);
}

/* What a message quotes may be cut anywhere, or be no UTF-8 at all. */
static void test_quotes_of_odd_bytes(void **unused) {
    (void)unused;
    static const struct {
        const char *quoted, *expected;
    } rows[] = {
        {"\xc3\xa9\xe2\x82\xac", "\xc3\xa9\xe2\x82\xac"},
        {"a\xe2\x82", "a?"},     /* cut */
        {"\xff\x80z", "??z"},    /* nothing */
        {"\xc0\x80", "??"},      /* too long a spelling */
        {"\xed\xa0\x80", "???"}, /* half of a pair */
        {"\xf4\x90\x80\x80", "????"},
        {"\xf0\x9f\x98x\xf0\x9f\x98\x80", "?x\xf0\x9f\x98\x80"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(rows); i++) {
        octavo_error error;
        char expected[64];
        (void)octavo_fail(&error, OCTAVO_ERROR_FORMAT, "<%s>", rows[i].quoted);
        (void)snprintf(expected, sizeof(expected), "<%s>", rows[i].expected);
        assert_string_equal(error.message, expected);
    }
    octavo_error error;
    (void)octavo_fail(&error, OCTAVO_ERROR_FORMAT, "\"%.4s\" is odd", "ab\xc3\xa9\xc3\xa9");
    assert_string_equal(error.message, "\"ab\xc3\xa9\" is odd");
    (void)octavo_fail(&error, OCTAVO_ERROR_FORMAT, "\"%.3s\" is odd", "ab\xc3\xa9");
    assert_string_equal(error.message, "\"ab?\" is odd");
}

static void test_names(void **unused) {
    (void)unused;
    assert_string_equal(octavo_status_name(OCTAVO_OK), "ok");
    assert_string_equal(octavo_status_name((octavo_status)-1000), "unknown");
    for (int a = OCTAVO_ERROR_CANCELLED; a <= OCTAVO_OK; a++) {
        assert_string_not_equal(octavo_status_name((octavo_status)a), "unknown");
        for (int b = OCTAVO_ERROR_CANCELLED; b < a; b++) {
            assert_string_not_equal(octavo_status_name((octavo_status)a),
                                    octavo_status_name((octavo_status)b));
        }
    }
    char version[64];
    (void)snprintf(version, sizeof(version), "%d.%d.%d", OCTAVO_VERSION_MAJOR, OCTAVO_VERSION_MINOR,
                   OCTAVO_VERSION_PATCH);
    assert_string_equal(octavo_version(), version);
}

typedef struct sink {
    int lines;
    octavo_log_level level;
    char last[4096];
} sink;

static void sink_write(void *cookie, octavo_log_level level, const char *line) {
    sink *s = cookie;
    s->lines++;
    s->level = level;
    (void)snprintf(s->last, sizeof(s->last), "%s", line);
}

static void test_log(void **unused) {
    (void)unused;
    static sink s;
    octavo_log log = {.level = OCTAVO_LOG_INFO, .write = sink_write, .cookie = &s};
    octavo_log_write(&log, OCTAVO_LOG_DEBUG, "too detailed");
    assert_int_equal(s.lines, 0);
    octavo_log_write(&log, OCTAVO_LOG_INFO, "model %s, %d layers", "tiny", 4);
    assert_int_equal(s.lines, 1);
    assert_int_equal(s.level, OCTAVO_LOG_INFO);
    assert_string_equal(s.last, "model tiny, 4 layers");
    octavo_log_write(&log, OCTAVO_LOG_ERROR, "two\nlines\r\n");
    assert_string_equal(s.last, "two lines");
    octavo_log_write(&log, OCTAVO_LOG_WARN, "%s", "");
    assert_string_equal(s.last, "");

    char text[3000];
    memset(text, 'y', sizeof(text));
    for (size_t length = 500; length < 525; length++) {
        octavo_log_write(&log, OCTAVO_LOG_WARN, "%.*s", (int)length, text);
        assert_int_equal(strlen(s.last), length);
    }
    octavo_log_write(&log, OCTAVO_LOG_WARN, "%.*s!", (int)sizeof(text), text);
    assert_int_equal(strlen(s.last), sizeof(text) + 1);
    assert_int_equal(s.last[sizeof(text)], '!');

    int before = s.lines;
    octavo_log_write(NULL, OCTAVO_LOG_ERROR, "nobody listens");
    log.write = NULL;
    octavo_log_write(&log, OCTAVO_LOG_ERROR, "nobody listens");
    assert_int_equal(s.lines, before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_cut_at_whole_characters),
        cmocka_unit_test(test_quotes_of_odd_bytes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
