/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged and hostile safetensors files: each is refused with a status and a message that names the
 * culprit, or is accepted and then keeps every promise. Files lie at the end of a page before a
 * protected one, so that reading one byte too many ends the test.
 */
#include "../unit.h"
#include "bad_file.h"
#include "base/compiler.h"
#include "safetensors_walk.h"
#include "safetensors_writer.h"

/* Parses the bytes; what is accepted is walked. */
static octavo_status parse_bytes(const uint8_t *bytes, size_t size, octavo_error *error) {
    const uint8_t *copy = bad_file_guard(bytes, size);
    octavo_safetensors *safetensors = NULL;
    *error = (octavo_error){0};
    octavo_status status =
        octavo_safetensors_parse(copy, size, "bad.safetensors", &safetensors, error);
    if (status == OCTAVO_OK) {
        safetensors_walk(safetensors, size);
    } else {
        assert_null(safetensors);
        assert_int_equal(error->status, status);
        assert_non_null(strstr(error->message, "(bad.safetensors): "));
        assert_true(error->offset >= -1 && error->offset <= (int64_t)size);
    }
    octavo_safetensors_close(&safetensors);
    return status;
}

static void check(const uint8_t *bytes, size_t size, octavo_status expected, const char *text) {
    octavo_error error;
    octavo_status status = parse_bytes(bytes, size, &error);
    bad_file_refused(status, &error, expected, text);
}

/* The writer's file is refused, with all of `text` in the message. Ends the writer. */
static void refused(safetensors_writer *writer, octavo_status expected, const char *text) {
    size_t size;
    const uint8_t *bytes = safetensors_writer_finish(writer, &size);
    check(bytes, size, expected, text);
    safetensors_writer_deinit(writer);
}

/* -- header ----------------------------------------------------------------------------------- */

/* A file of this length, header and as many zeros as data. */
static void check_header(uint64_t length, const char *header, size_t zeros, const char *text) {
    static const uint8_t data[64];
    octavo_buffer file = {0};
    safetensors_put_file(&file, length, header, data, zeros);
    assert_false(file.failed);
    check((const uint8_t *)file.data, file.size, OCTAVO_ERROR_FORMAT, text);
    octavo_buffer_deinit(&file);
}

static void check_json(const char *header, size_t zeros, const char *text) {
    check_header(strlen(header), header, zeros, text);
}

static void check_start(const char *bytes, size_t size, const char *text) {
    check((const uint8_t *)bytes, size, OCTAVO_ERROR_FORMAT, text);
}

static void test_start(void **unused) {
    (void)unused;
    check_start("", 0, "(bad.safetensors): the file is empty");
    check_start("\2\0\0\0\0\0\0", 7, "the file has 7 bytes, less than the length of a header");
    check_start("\0\0\0\0\0\0\0\0", 8, "it does not begin with \"{\"");
    check_start("version https://git-lfs.github.com/spec/v1\n", 43, "Git LFS");
    check_start("<!DOCTYPE html>", 15, "web page");
    check_start("PK\3\4\0\0\0\0\0\0", 10, "zip");
    check_start("\x80\x02\x8a\nl\xfc\x9c\x46\xf9\x20", 10, "pickle");
    check_start("GGUF\3\0\0\0\0\0\0\0", 12, "GGUF");
}

static void test_length(void **unused) {
    (void)unused;
    static const uint64_t beyond[] = {100000001, 1ull << 32, 1ull << 63, UINT64_MAX - 7,
                                      UINT64_MAX};
    for (size_t i = 0; i < OCTAVO_COUNT(beyond); i++) {
        check_header(beyond[i], "{}", 0, "bytes, the most is 100000000; it is no safetensors");
    }
    check_header(3, "{}", 0, "it would have 3 bytes, the whole file has 10; ");
    check_header(100000000, "{}", 0, "it would have 100000000 bytes, the whole file has 10; ");
    check_header(1, "{}", 0, "line 1 is no legal JSON");
    check_header(0, "{}", 0, "does not begin with \"{\"");
}

static void test_json(void **unused) {
    (void)unused;
    check_json(" {}", 0, "does not begin with \"{\"");
    check_json("[]", 0, "does not begin with \"{\"");
    check_json("{", 0, "safetensors header (bad.safetensors): line 1 is no legal JSON: ");
    check_json("{}{}", 0, "no legal JSON");
    check_json("{\"a\":\n1,}", 0, "line 2 is no legal JSON");
    check_json("{\"a\":{\"dtype\":\"\xff\"}}", 0, "no legal JSON");
    check_json("{\"a\\u0000b\":1}", 0, "no legal JSON");
    check_json("{\"esc\033[2J", 0, "no legal JSON");
    /* duplicate keys, on each level */
    static const char entry[] = "{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}";
    char text[256];
    snprintf(text, sizeof(text), "{\"a\":%s,\"a\":%s}", entry, entry);
    check_json(text, 1, "duplicate object key");
    check_json("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
               "duplicate object key");
    check_json("{\"__metadata__\":{\"k\":\"a\",\"k\":\"b\"}}", 0, "duplicate object key");
}

/* Deep nesting ends in an error, not in the stack's end. */
static void test_depth(void **unused) {
    (void)unused;
    enum { DEPTH = 50000 };
    octavo_buffer header = {0};
    octavo_buffer_puts(&header, "{\"a\":");
    for (int i = 0; i < DEPTH; i++) {
        octavo_buffer_putc(&header, '[');
    }
    assert_false(header.failed);
    check_json(header.data, 0, "no legal JSON: maximum parsing depth reached");
    octavo_buffer_deinit(&header);
}

/* What the parser quotes of a file is without control characters. */
static void test_message_is_clean(void **unused) {
    (void)unused;
    octavo_buffer file = {0};
    octavo_error error;
    safetensors_put_file(&file, 5, "{\033[2J", NULL, 0);
    assert_int_equal(parse_bytes((const uint8_t *)file.data, file.size, &error),
                     OCTAVO_ERROR_FORMAT);
    for (const char *c = error.message; *c != 0; c++) {
        assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
    }
    octavo_buffer_deinit(&file);
}

static void test_metadata(void **unused) {
    (void)unused;
    check_json("{\"__metadata__\":[]}", 0, "\"__metadata__\" is no object");
    check_json("{\"__metadata__\":\"\"}", 0, "\"__metadata__\" is no object");
    check_json("{\"__metadata__\":{\"a\":1}}", 0, "a value of \"__metadata__\" is no text");
    check_json("{\"__metadata__\":{\"a\":null}}", 0, "a value of \"__metadata__\" is no text");
}

/* -- entries ---------------------------------------------------------------------------------- */

/* A file with the entry "w" and 16 bytes of data is refused for that entry. */
static void check_entry(const char *json, octavo_status expected, const char *text) {
    char whole[256];
    safetensors_writer w = {0};
    safetensors_writer_entry(&w, "w", json);
    safetensors_writer_data(&w, NULL, 16);
    snprintf(whole, sizeof(whole), "tensor \"w\" (bad.safetensors): %s", text);
    refused(&w, expected, whole);
}

static void check_damaged(const char *json, const char *text) {
    check_entry(json, OCTAVO_ERROR_FORMAT, text);
}

static void test_entry(void **unused) {
    (void)unused;
    check_damaged("[]", "its entry is no object");
    check_damaged("null", "its entry is no object");
    check_damaged("{}", "its \"dtype\" is missing or no name");
    check_damaged("{\"dtype\":7}", "its \"dtype\" is missing or no name");
    check_damaged("{\"dtype\":\"\"}", "its \"dtype\" is missing or no name");
    check_damaged("{\"dtype\":\"a\\u001bb\"}", "its \"dtype\" is missing or no name");
    check_damaged("{\"dtype\":\"U8\"}", "its \"shape\" is missing or no array");
    check_damaged("{\"dtype\":\"U8\",\"shape\":16}", "its \"shape\" is missing or no array");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[16]}", "its \"data_offsets\" are missing");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":16}",
                  "its \"data_offsets\" are missing");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0]}",
                  "its \"data_offsets\" are missing or no pair");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16,16]}",
                  "its \"data_offsets\" are missing or no pair");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[-16,0]}",
                  "its \"data_offsets\" are missing or no pair of counts");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16.0]}",
                  "its \"data_offsets\" are missing or no pair of counts");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[\"0\",\"16\"]}",
                  "its \"data_offsets\" are missing or no pair of counts");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[16,0]}",
                  "its data would begin at 16 and end before, at 0");
}

static void test_shape(void **unused) {
    (void)unused;
    check_damaged("{\"dtype\":\"U8\",\"shape\":[2,-8],\"data_offsets\":[0,16]}",
                  "axis 1 of its \"shape\" is no count");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[16.0],\"data_offsets\":[0,16]}",
                  "axis 0 of its \"shape\" is no count");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[null],\"data_offsets\":[0,16]}",
                  "axis 0 of its \"shape\" is no count");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[17],\"data_offsets\":[0,16]}",
                  "17 values of U8 have 17 bytes, its \"data_offsets\" leave 16");
    check_damaged("{\"dtype\":\"BF16\",\"shape\":[3,4],\"data_offsets\":[0,16]}",
                  "12 values of BF16 have 24 bytes, its \"data_offsets\" leave 16");
    check_damaged("{\"dtype\":\"F4\",\"shape\":[31],\"data_offsets\":[0,16]}",
                  "31 values of F4 do not fill whole bytes");
    check_damaged("{\"dtype\":\"F6_E2M3\",\"shape\":[5],\"data_offsets\":[0,4]}",
                  "5 values of F6_E2M3 do not fill whole bytes");
    check_entry("{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,16],\"data_offsets\":[0,16]}",
                OCTAVO_ERROR_UNSUPPORTED, "it has 9 axes, at most 8 are supported");
}

/* Products that wrap around to what fits: 2^32 * 2^32, 2^62 * 4 + ..., and bits of bytes. */
static void test_overflow(void **unused) {
    (void)unused;
    static const char more[] = "more than memory can ever hold";
    check_damaged("{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}",
                  "the product of its \"shape\" is more than memory can ever hold");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,0]}",
                  "the product of its \"shape\" is more than memory can ever hold");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[9223372036854775807,3],\"data_offsets\":[0,0]}",
                  "the product of its \"shape\" is more than memory can ever hold");
    char json[160];
    static const char *const dtypes[] = {"U8", "F16", "F32", "F64"};
    for (size_t i = 0; i < OCTAVO_COUNT(dtypes); i++) {
        /* 2^61 values: their bits wrap to 0 */
        snprintf(json, sizeof(json),
                 "{\"dtype\":\"%s\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}",
                 dtypes[i]);
        check_damaged(json, "2305843009213693952 values of ");
        octavo_error error;
        octavo_buffer file = {0};
        char header[200];
        snprintf(header, sizeof(header), "{\"w\":%s}", json);
        safetensors_put_file(&file, strlen(header), header, NULL, 0);
        assert_int_equal(parse_bytes((const uint8_t *)file.data, file.size, &error),
                         OCTAVO_ERROR_FORMAT);
        assert_non_null(strstr(error.message, more));
        octavo_buffer_deinit(&file);
    }
    /* beyond 63 bits the JSON parser ends it */
    check_json("{\"w\":{\"dtype\":\"U8\",\"shape\":[18446744073709551615],\"data_offsets\":[0,0]}}",
               0, "no legal JSON: too big integer");
    check_json("{\"w\":{\"dtype\":\"U8\",\"shape\":[0],"
               "\"data_offsets\":[18446744073709551615,18446744073709551615]}}",
               0, "no legal JSON: too big integer");
    check_damaged("{\"dtype\":\"U8\",\"shape\":[0],"
                  "\"data_offsets\":[9223372036854775807,9223372036854775807]}",
                  "data ends at byte 9223372036854775911, file has 120");
}

static void test_names(void **unused) {
    (void)unused;
    static const char entry[] = "{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}";
    static char name[OCTAVO_SAFETENSORS_MAX_NAME + 2];
    safetensors_writer w = {0};
    safetensors_writer_entry(&w, "", entry);
    refused(&w, OCTAVO_ERROR_FORMAT, "(bad.safetensors): the name of a tensor is empty");
    safetensors_writer_entry(&w, "esc\033[2J", entry);
    refused(&w, OCTAVO_ERROR_FORMAT, "the name of a tensor holds a control character");
    memset(name, 'n', sizeof(name) - 1);
    w = (safetensors_writer){0};
    safetensors_writer_entry(&w, name, entry);
    refused(&w, OCTAVO_ERROR_FORMAT, "the name of a tensor is longer than 1023 bytes");
    /* the longest legal name is cut in the message, the reason is not */
    name[OCTAVO_SAFETENSORS_MAX_NAME] = 0;
    w = (safetensors_writer){0};
    safetensors_writer_entry(&w, name, entry);
    refused(&w, OCTAVO_ERROR_FORMAT, "nnn\" (bad.safetensors): data ends at byte");
}

/* -- the data --------------------------------------------------------------------------------- */

static void test_cover(void **unused) {
    (void)unused;
    safetensors_writer w = {0};
    safetensors_writer_description(&w, "a", "U8", "[4]", 0, 4);
    safetensors_writer_description(&w, "b", "U8", "[4]", 3, 7);
    safetensors_writer_data(&w, NULL, 7);
    refused(&w, OCTAVO_ERROR_FORMAT, "tensor \"b\" (bad.safetensors): its data at byte ");
    w = (safetensors_writer){0};
    safetensors_writer_description(&w, "a", "U8", "[4]", 0, 4);
    safetensors_writer_description(&w, "b", "U8", "[4]", 0, 4);
    safetensors_writer_data(&w, NULL, 4);
    refused(&w, OCTAVO_ERROR_FORMAT, "overlaps that of \"a\"");
    w = (safetensors_writer){0};
    safetensors_writer_description(&w, "a", "U8", "[4]", 0, 4);
    safetensors_writer_description(&w, "inside", "U8", "[0]", 2, 2);
    safetensors_writer_data(&w, NULL, 4);
    refused(&w, OCTAVO_ERROR_FORMAT, "tensor \"inside\" (bad.safetensors): its data at byte ");
    w = (safetensors_writer){0};
    safetensors_writer_description(&w, "a", "U8", "[4]", 0, 4);
    safetensors_writer_description(&w, "b", "U8", "[4]", 6, 10);
    safetensors_writer_data(&w, NULL, 10);
    refused(&w, OCTAVO_ERROR_FORMAT,
            "tensor \"b\" (bad.safetensors): the 2 bytes before its data at byte ");
    w = (safetensors_writer){0};
    safetensors_writer_description(&w, "a", "U8", "[4]", 1, 5);
    safetensors_writer_data(&w, NULL, 5);
    refused(&w, OCTAVO_ERROR_FORMAT,
            "tensor \"a\" (bad.safetensors): the 1 bytes before its data at byte ");
    w = (safetensors_writer){0};
    safetensors_writer_tensor(&w, "a", "U8", "[4]", NULL, 4);
    safetensors_writer_data(&w, NULL, 1);
    refused(&w, OCTAVO_ERROR_FORMAT, "the file has 69 bytes, its tensors end at byte 68; ");
    w = (safetensors_writer){0};
    safetensors_writer_description(&w, "a", "U8", "[4]", 0, 4);
    safetensors_writer_data(&w, NULL, 3);
    refused(&w, OCTAVO_ERROR_FORMAT,
            "tensor \"a\" (bad.safetensors): data ends at byte 68, file has 67; the file is cut "
            "short");
    w = (safetensors_writer){0};
    safetensors_writer_data(&w, NULL, 1);
    refused(&w, OCTAVO_ERROR_FORMAT, "its tensors end at byte 16");
}

/* -- every cut, every byte -------------------------------------------------------------------- */

static void write_sound(safetensors_writer *w) {
    safetensors_writer_metadata(w, "format", "pt");
    safetensors_writer_tensor(w, "a.weight", "F8_E4M3", "[2,4]", NULL, 8);
    safetensors_writer_tensor(w, "a.weight_scale", "F32", "[2,1]", NULL, 8);
    safetensors_writer_tensor(w, "b", "BF16", "[3]", NULL, 6);
}

static void test_every_cut(void **unused) {
    (void)unused;
    safetensors_writer w = {0};
    write_sound(&w);
    size_t size;
    octavo_error error;
    const uint8_t *bytes = safetensors_writer_finish(&w, &size);
    assert_int_equal(parse_bytes(bytes, size, &error), OCTAVO_OK);
    for (size_t cut = 0; cut < size; cut++) {
        assert_int_equal(parse_bytes(bytes, cut, &error), OCTAVO_ERROR_FORMAT);
    }
    safetensors_writer_deinit(&w);
}

static void test_every_byte(void **unused) {
    (void)unused;
    safetensors_writer w = {0};
    write_sound(&w);
    size_t size, accepted = 0;
    octavo_error error;
    const uint8_t *bytes = safetensors_writer_finish(&w, &size);
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    static const uint8_t values[] = {0, '"', ',', '0', '9', '[', '}', 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < size; at++) {
        for (size_t i = 0; i < OCTAVO_COUNT(values); i++) {
            memcpy(copy, bytes, size);
            copy[at] = values[i];
            if (parse_bytes(copy, size, &error) == OCTAVO_OK) accepted++;
        }
    }
    assert_true(accepted > 0 && accepted < size * OCTAVO_COUNT(values) / 2);
    free(copy);
    safetensors_writer_deinit(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_message_is_clean),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_entry),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_cover),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_every_byte),
    };
    return cmocka_run_group_tests(tests, bad_file_setup, bad_file_teardown);
}
