/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged and hostile GGUF files: each is refused with a status, a message that names the culprit
 * and an offset inside the file, or is accepted and then keeps every promise. Files lie at the end
 * of a page before a protected one, so that reading one byte too many ends the test.
 */
#include "../gguf_writer.h"
#include "../unit.h"
#include "bad_file.h"
#include "base/compiler.h"
#include "gguf_walk.h"

/* Parses the bytes; what is accepted is walked. */
static octavo_status parse_bytes(const uint8_t *bytes, size_t size, octavo_error *error) {
    const uint8_t *copy = bad_file_guard(bytes, size);
    octavo_gguf *gguf = NULL;
    *error = (octavo_error){0};
    octavo_status status = octavo_gguf_parse(copy, size, "bad.gguf", &gguf, error);
    if (status == OCTAVO_OK) {
        gguf_walk(gguf, size);
    } else {
        assert_null(gguf);
        assert_int_equal(error->status, status);
        assert_non_null(strstr(error->message, "(bad.gguf): "));
        assert_true(error->offset >= -1 && error->offset <= (int64_t)size);
    }
    octavo_gguf_close(&gguf);
    return status;
}

/* The writer's file is refused, with all of `text` in the message. Ends the writer. */
static void refused(gguf_writer *writer, octavo_status expected, const char *text) {
    size_t size;
    const uint8_t *bytes = gguf_writer_finish(writer, &size);
    octavo_error error;
    octavo_status status = parse_bytes(bytes, size, &error);
    bad_file_refused(status, &error, expected, text);
    gguf_writer_deinit(writer);
}

static gguf_writer begin(void) {
    gguf_writer w;
    gguf_writer_init(&w, 3, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    return w;
}

/* -- header ----------------------------------------------------------------------------------- */

static void check_start(const void *bytes, size_t size, const char *text) {
    octavo_error error;
    assert_int_equal(parse_bytes(bytes, size, &error), OCTAVO_ERROR_FORMAT);
    if (strstr(error.message, text) == NULL) fail_msg("message \"%s\"", error.message);
}

static void test_magic(void **unused) {
    (void)unused;
    check_start("", 0, "empty");
    check_start("GGU", 3, "does not begin with \"GGUF\"");
    check_start("FUGG....", 8, "does not begin with \"GGUF\"");
    check_start("version https://git-lfs.github.com/spec/v1\n", 43, "Git LFS");
    check_start("<!DOCTYPE html>", 15, "web page");
    check_start("PK\3\4", 4, "zip");
    check_start("GGUF", 4, "cut short");
    check_start("GGUF\3\0\0\0", 8, "cut short");
}

static void test_versions(void **unused) {
    (void)unused;
    static const struct {
        uint32_t version;
        const char *text;
    } versions[] = {
        {0, "version 0 is not supported"}, {1, "version 1 is not supported"},
        {4, "version 4 is not supported"}, {0x02000000, "big-endian"},
        {0x03000000, "big-endian"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(versions); i++) {
        gguf_writer w = begin();
        w.version = versions[i].version;
        refused(&w, OCTAVO_ERROR_UNSUPPORTED, versions[i].text);
    }
}

/* Counts far beyond the file, of which products overflow too. */
static void test_huge_counts(void **unused) {
    (void)unused;
    static const uint64_t counts[] = {2, 1000, 1ull << 32, 1ull << 59, 1ull << 63, UINT64_MAX};
    for (size_t i = 0; i < OCTAVO_COUNT(counts); i++) {
        gguf_writer w = begin();
        gguf_writer_u32(&w, "k", 1);
        w.n_tensors = counts[i];
        refused(&w, OCTAVO_ERROR_FORMAT, "tensors do not fit");
        w = begin();
        gguf_writer_u32(&w, "k", 1);
        w.n_metadata = counts[i];
        refused(&w, OCTAVO_ERROR_FORMAT, "metadata entries do not fit");
        w = begin();
        gguf_writer_array(&w, "k", OCTAVO_GGUF_F64, counts[i]);
        refused(&w, OCTAVO_ERROR_FORMAT, "\"k\" (bad.gguf): an array of");
        w = begin();
        gguf_writer_array(&w, "k", OCTAVO_GGUF_STRING, counts[i]);
        refused(&w, OCTAVO_ERROR_FORMAT, "\"k\" (bad.gguf): an array of");
        w = begin();
        gguf_writer_array(&w, "k", OCTAVO_GGUF_ARRAY, counts[i]);
        refused(&w, OCTAVO_ERROR_FORMAT, "\"k\" (bad.gguf): an array of");
        w = begin();
        gguf_put_u64(gguf_writer_key(&w, "k", OCTAVO_GGUF_STRING), counts[i]);
        refused(&w, OCTAVO_ERROR_FORMAT, "\"k\" (bad.gguf): needs");
        w = begin();
        w.n_metadata = 1;
        gguf_put_u64(&w.metadata, counts[i]);
        gguf_put_u64(&w.metadata, 0);
        refused(&w, OCTAVO_ERROR_FORMAT, counts[i] == 2 ? "control character" : "number 0");
    }
}

/* -- metadata --------------------------------------------------------------------------------- */

static void test_keys(void **unused) {
    (void)unused;
    gguf_writer w = begin();
    gguf_writer_u32(&w, "", 1);
    refused(&w, OCTAVO_ERROR_FORMAT, "metadata key number 0 (bad.gguf): the name has 0 bytes");
    w = begin();
    gguf_writer_u32(&w, "fine", 1);
    gguf_writer_u32(&w, "esc\033[2J", 1);
    refused(&w, OCTAVO_ERROR_FORMAT,
            "metadata key number 1 (bad.gguf): the name holds the control");
    w = begin();
    gguf_writer_u32(&w, "a", 1);
    gguf_writer_u32(&w, "twice", 1);
    gguf_writer_u32(&w, "b", 1);
    gguf_writer_string(&w, "twice", "x");
    refused(&w, OCTAVO_ERROR_FORMAT, "metadata key \"twice\" (bad.gguf): appears more than once");

    char *key = malloc(OCTAVO_GGUF_MAX_KEY + 2);
    assert_non_null(key);
    memset(key, 'k', OCTAVO_GGUF_MAX_KEY + 1);
    key[OCTAVO_GGUF_MAX_KEY + 1] = 0;
    w = begin();
    gguf_writer_u32(&w, key, 1);
    refused(&w, OCTAVO_ERROR_FORMAT, "the name has 65536 bytes");
    /* the longest legal key is cut in the message, the reason is not */
    key[OCTAVO_GGUF_MAX_KEY] = 0;
    w = begin();
    gguf_writer_key(&w, key, (octavo_gguf_type)77);
    refused(&w, OCTAVO_ERROR_FORMAT, "kkk\" (bad.gguf): value type 77 does not exist");
    free(key);
}

static void test_values(void **unused) {
    (void)unused;
    gguf_writer w = begin();
    gguf_writer_key(&w, "k", (octavo_gguf_type)13);
    gguf_put_u64(&w.metadata, 0);
    refused(&w, OCTAVO_ERROR_FORMAT, "\"k\" (bad.gguf): value type 13 does not exist");
    w = begin();
    gguf_writer_array(&w, "k", (octavo_gguf_type)13, 0);
    refused(&w, OCTAVO_ERROR_FORMAT, "value type 13 does not exist");
    w = begin();
    gguf_writer_integer(&w, "k", OCTAVO_GGUF_BOOL, 2);
    refused(&w, OCTAVO_ERROR_FORMAT, "the bool has the value 2");
    w = begin();
    gguf_put(gguf_writer_array(&w, "k", OCTAVO_GGUF_BOOL, 3), 0xff0001, 3);
    refused(&w, OCTAVO_ERROR_FORMAT, "the bool has the value 255");
}

/* `depth` arrays of one element around a number. */
static gguf_writer nested(int depth) {
    gguf_writer w = begin();
    octavo_buffer *buffer = gguf_writer_key(&w, "deep", OCTAVO_GGUF_ARRAY);
    for (int i = 1; i < depth; i++) {
        gguf_put_array(buffer, OCTAVO_GGUF_ARRAY, 1);
    }
    gguf_put_array(buffer, OCTAVO_GGUF_U8, 1);
    gguf_put(buffer, 7, 1);
    return w;
}

static void test_depth(void **unused) {
    (void)unused;
    gguf_writer w = nested(OCTAVO_GGUF_MAX_DEPTH);
    size_t size;
    octavo_error error;
    const uint8_t *bytes = gguf_writer_finish(&w, &size);
    assert_int_equal(parse_bytes(bytes, size, &error), OCTAVO_OK);
    gguf_writer_deinit(&w);
    w = nested(OCTAVO_GGUF_MAX_DEPTH + 1);
    refused(&w, OCTAVO_ERROR_FORMAT, "metadata key \"deep\" (bad.gguf): arrays are nested");
    w = nested(5000); /* would overflow a stack */
    refused(&w, OCTAVO_ERROR_FORMAT, "metadata key \"deep\" (bad.gguf): arrays are nested");
}

static void test_alignment(void **unused) {
    (void)unused;
    static const uint32_t bad[] = {0, 1, 4, 24, 33, 1u << 21, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < OCTAVO_COUNT(bad); i++) {
        gguf_writer w = begin();
        gguf_writer_u32(&w, "general.alignment", bad[i]);
        refused(&w, OCTAVO_ERROR_FORMAT, "\"general.alignment\" (bad.gguf): ");
    }
    gguf_writer w = begin();
    gguf_writer_string(&w, "general.alignment", "32");
    refused(&w, OCTAVO_ERROR_FORMAT, "is string where an integer is needed");
    static const uint32_t good[] = {8, 16, 64, 4096};
    for (size_t i = 0; i < OCTAVO_COUNT(good); i++) {
        gguf_writer_init(&w, 3, good[i]);
        gguf_writer_tensor(&w, "a", OCTAVO_GGML_I8, 1, (const uint64_t[]){3}, NULL, 3);
        gguf_writer_tensor(&w, "b", OCTAVO_GGML_I8, 1, (const uint64_t[]){3}, NULL, 3);
        size_t size;
        octavo_error error;
        const uint8_t *bytes = gguf_writer_finish(&w, &size);
        assert_int_equal(parse_bytes(bytes, size, &error), OCTAVO_OK);
        gguf_writer_deinit(&w);
    }
}

/* -- tensors ---------------------------------------------------------------------------------- */

/* A file of one sound tensor "first" (96 bytes of data) and the description given. */
typedef struct description {
    const char *name;
    uint32_t type;
    uint32_t n_dims;
    uint64_t extent[5];
    uint64_t offset;
    octavo_status status;
    const char *text;
} description;

static void test_descriptions(void **unused) {
    (void)unused;
    static const description bad[] = {
        {"", 0, 1, {8}, 96, OCTAVO_ERROR_FORMAT, "tensor number 1 (bad.gguf): the name has 0"},
        {"a\nb", 0, 1, {8}, 96, OCTAVO_ERROR_FORMAT, "number 1 (bad.gguf): the name holds"},
        {"first",
         0,
         1,
         {8},
         96,
         OCTAVO_ERROR_FORMAT,
         "tensor \"first\" (bad.gguf): appears more than once"},
        {"t", 0, 0, {0}, 96, OCTAVO_ERROR_FORMAT, "tensor \"t\" (bad.gguf): it has 0 axes"},
        {"t", 0, 5, {1, 1, 1, 1, 8}, 96, OCTAVO_ERROR_FORMAT, "it has 5 axes"},
        {"t", 0, 1, {0}, 96, OCTAVO_ERROR_FORMAT, "axis 0 has the extent 0"},
        {"t", 0, 3, {8, 1, 0}, 96, OCTAVO_ERROR_FORMAT, "axis 2 has the extent 0"},
        {"t",
         0,
         1,
         {1ull << 63},
         96,
         OCTAVO_ERROR_FORMAT,
         "axis 0 has the extent 9223372036854775"},
        {"t", 0, 1, {INT64_MAX}, 96, OCTAVO_ERROR_FORMAT, "more than memory can ever hold"},
        {"t", 24, 1, {INT64_MAX}, 96, OCTAVO_ERROR_FORMAT, "the file is cut short"},
        {"t", 24, 1, {INT64_MAX}, 1ull << 63, OCTAVO_ERROR_FORMAT, "impossible offset"},
        {"t", 0, 2, {1ull << 32, 1ull << 32}, 96, OCTAVO_ERROR_FORMAT, "more than memory can ever"},
        {"t", 0, 4, {1ull << 62, 4, 4, 4}, 96, OCTAVO_ERROR_FORMAT, "more than memory can ever"},
        {"t",
         0,
         4,
         {1ull << 16, 1ull << 16, 1ull << 16, 1ull << 16},
         96,
         OCTAVO_ERROR_FORMAT,
         "more than memory can ever hold"},
        {"t",
         2,
         1,
         {8},
         96,
         OCTAVO_ERROR_FORMAT,
         "rows of 8 values do not fill whole blocks of Q4_0"},
        {"t", 12, 2, {128, 2}, 96, OCTAVO_ERROR_FORMAT, "do not fill whole blocks of Q4_K"},
        {"t",
         4,
         1,
         {32},
         96,
         OCTAVO_ERROR_UNSUPPORTED,
         "tensor \"t\" (bad.gguf): the tensor type 4 is not known"},
        {"t", 1000, 1, {32}, 96, OCTAVO_ERROR_UNSUPPORTED, "the tensor type 1000 is not known"},
        {"t", 0, 1, {8}, 100, OCTAVO_ERROR_FORMAT, "offset 100, which is no multiple"},
        {"t", 0, 1, {8}, 128, OCTAVO_ERROR_FORMAT, "data ends at byte"},
        {"t", 0, 1, {9}, 96, OCTAVO_ERROR_FORMAT, "data ends at byte"},
        {"t", 0, 1, {8}, 1ull << 40, OCTAVO_ERROR_FORMAT, "data ends at byte"},
        {"t", 0, 1, {8}, UINT64_MAX - 31, OCTAVO_ERROR_FORMAT, "impossible offset"},
        {"t",
         0,
         1,
         {8},
         0,
         OCTAVO_ERROR_FORMAT,
         "tensor \"t\" (bad.gguf): its data at byte 128 overlaps that of \"first\""},
        {"t", 0, 1, {8}, 64, OCTAVO_ERROR_FORMAT, "overlaps"},
        {"t", 0, 1, {32}, 0, OCTAVO_ERROR_FORMAT, "overlaps"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(bad); i++) {
        gguf_writer w = begin();
        gguf_writer_tensor(&w, "first", OCTAVO_GGML_F32, 2, (const uint64_t[]){12, 2}, NULL, 96);
        gguf_put_zeros(&w.data, 32);
        gguf_writer_description(&w, bad[i].name, bad[i].type, bad[i].n_dims, bad[i].extent,
                                bad[i].offset);
        refused(&w, bad[i].status, bad[i].text);
    }
    gguf_writer w = begin(); /* and the same with a sound one is sound */
    gguf_writer_tensor(&w, "first", OCTAVO_GGML_F32, 2, (const uint64_t[]){12, 2}, NULL, 96);
    gguf_put_zeros(&w.data, 32);
    gguf_writer_description(&w, "t", 0, 1, (const uint64_t[]){8}, 96);
    size_t size;
    octavo_error error;
    const uint8_t *bytes = gguf_writer_finish(&w, &size);
    assert_int_equal(parse_bytes(bytes, size, &error), OCTAVO_OK);
    gguf_writer_deinit(&w);
}

/* One part of a split model cannot be read from memory. */
static void test_split_in_memory(void **unused) {
    (void)unused;
    gguf_writer w = begin();
    gguf_writer_integer(&w, "split.no", OCTAVO_GGUF_U16, 0);
    gguf_writer_integer(&w, "split.count", OCTAVO_GGUF_U16, 2);
    refused(&w, OCTAVO_ERROR_UNSUPPORTED, "split model (bad.gguf)");
    static const int64_t counts[] = {0, -1, 70000};
    for (size_t i = 0; i < OCTAVO_COUNT(counts); i++) {
        w = begin();
        gguf_writer_integer(&w, "split.count", OCTAVO_GGUF_I32, counts[i]);
        refused(&w, OCTAVO_ERROR_FORMAT, "split.count");
    }
    w = begin();
    gguf_writer_u32(&w, "split.no", 3);
    gguf_writer_u32(&w, "split.count", 3);
    refused(&w, OCTAVO_ERROR_FORMAT, "part 3 of 3 cannot be");
}

/* -- all of a small file ---------------------------------------------------------------------- */

/* Every construct once, in few bytes. */
static gguf_writer specimen(void) {
    static const char *const words[] = {"a", "", "bc"};
    gguf_writer w;
    gguf_writer_init(&w, 3, 16);
    gguf_writer_string(&w, "s", "text");
    gguf_writer_bool(&w, "b", true);
    gguf_writer_f32(&w, "f", 0.5f);
    gguf_writer_integer(&w, "split.count", OCTAVO_GGUF_U16, 1);
    gguf_writer_strings(&w, "words", words, OCTAVO_COUNT(words));
    gguf_put(gguf_writer_array(&w, "flags", OCTAVO_GGUF_BOOL, 2), 1, 2);
    octavo_buffer *buffer = gguf_writer_array(&w, "n", OCTAVO_GGUF_ARRAY, 2);
    gguf_put_array(buffer, OCTAVO_GGUF_I16, 1);
    gguf_put(buffer, 9, 2);
    gguf_put_array(buffer, OCTAVO_GGUF_STRING, 1);
    gguf_put_string(buffer, "x");
    gguf_writer_tensor(&w, "t", OCTAVO_GGML_F32, 1, (const uint64_t[]){3}, NULL, 12);
    gguf_writer_tensor(&w, "u", OCTAVO_GGML_Q8_0, 2, (const uint64_t[]){32, 2}, NULL, 68);
    return w;
}

static void test_every_truncation(void **unused) {
    (void)unused;
    gguf_writer w = specimen();
    size_t size;
    octavo_error error;
    const uint8_t *bytes = gguf_writer_finish(&w, &size);
    assert_int_equal(parse_bytes(bytes, size, &error), OCTAVO_OK);
    for (size_t cut = 0; cut < size; cut++) {
        assert_int_equal(parse_bytes(bytes, cut, &error), OCTAVO_ERROR_FORMAT);
    }
    gguf_writer_deinit(&w);
}

/* Every byte of the header with each of its bits flipped, and as 0, 127, 128 and 255. */
static void test_every_flip(void **unused) {
    (void)unused;
    gguf_writer w = specimen();
    size_t size, accepted = 0, refusals = 0;
    const uint8_t *bytes = gguf_writer_finish(&w, &size);
    uint8_t *damaged = malloc(size);
    assert_non_null(damaged);
    memcpy(damaged, bytes, size);
    for (size_t i = 0; i < size - w.data.size; i++) {
        for (int change = 0; change < 12; change++) {
            static const uint8_t fixed[] = {0, 0x7f, 0x80, 0xff};
            damaged[i] = change < 8 ? (uint8_t)(bytes[i] ^ 1u << change) : fixed[change - 8];
            octavo_error error;
            octavo_status status = parse_bytes(damaged, size, &error);
            assert_true(status == OCTAVO_OK || status == OCTAVO_ERROR_FORMAT ||
                        status == OCTAVO_ERROR_UNSUPPORTED);
            accepted += status == OCTAVO_OK;
            refusals += status != OCTAVO_OK;
        }
        damaged[i] = bytes[i];
    }
    assert_true(accepted > 100); /* letters of names and values may change */
    assert_true(refusals > 1000);
    free(damaged);
    gguf_writer_deinit(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_magic),           cmocka_unit_test(test_versions),
        cmocka_unit_test(test_huge_counts),     cmocka_unit_test(test_keys),
        cmocka_unit_test(test_values),          cmocka_unit_test(test_depth),
        cmocka_unit_test(test_alignment),       cmocka_unit_test(test_descriptions),
        cmocka_unit_test(test_split_in_memory), cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_every_flip),
    };
    return cmocka_run_group_tests(tests, bad_file_setup, bad_file_teardown);
}
