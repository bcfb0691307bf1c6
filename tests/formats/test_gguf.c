/* SPDX-License-Identifier: Apache-2.0
 *
 * What a sound GGUF file gives: every kind of metadata through every getter, arrays, JSON, tensors.
 * Damaged files are in test_gguf_bad.c, files on disk in test_gguf_files.c.
 */
#include "../gguf_writer.h"
#include "../unit.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "gguf_walk.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

/* Opens what the writer has; the writer must outlive it. */
static octavo_gguf *parse(gguf_writer *writer) {
    size_t size;
    const uint8_t *bytes = gguf_writer_finish(writer, &size);
    octavo_gguf *gguf = NULL;
    octavo_error error = {0};
    if (octavo_gguf_parse(bytes, size, "test.gguf", &gguf, &error) != OCTAVO_OK) {
        fail_msg("%s", error.message);
    }
    gguf_walk(gguf, size);
    return gguf;
}

static void assert_string(octavo_gguf_string string, const char *text) {
    assert_int_equal(string.size, strlen(text));
    assert_memory_equal(string.data, text, string.size);
}

/* One entry of each type, in both versions. */
static void check_scalars(uint32_t version) {
    gguf_writer w;
    gguf_writer_init(&w, version, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    gguf_writer_integer(&w, "u8", OCTAVO_GGUF_U8, 200);
    gguf_writer_integer(&w, "i8", OCTAVO_GGUF_I8, 100);
    gguf_writer_integer(&w, "u16", OCTAVO_GGUF_U16, 60000);
    gguf_writer_integer(&w, "i16", OCTAVO_GGUF_I16, 30000);
    gguf_writer_integer(&w, "u32", OCTAVO_GGUF_U32, 4000000000);
    gguf_writer_integer(&w, "i32", OCTAVO_GGUF_I32, 2000000000);
    gguf_writer_integer(&w, "u64", OCTAVO_GGUF_U64, -1);
    gguf_writer_integer(&w, "i64", OCTAVO_GGUF_I64, 123456789);
    gguf_writer_f32(&w, "f32", 0.1f);
    gguf_writer_f64(&w, "f64", 0.25);
    gguf_writer_bool(&w, "yes", true);
    gguf_writer_bool(&w, "no", false);
    gguf_writer_string(&w, "string", "h\xc3\xa9llo");
    octavo_gguf *gguf = parse(&w);
    assert_int_equal(octavo_gguf_version(gguf), version);
    assert_int_equal(octavo_gguf_n_metadata(gguf), 13);

    static const struct {
        const char *key;
        octavo_gguf_type type;
        uint64_t value;
    } integers[] = {
        {"u8", OCTAVO_GGUF_U8, 200},          {"i8", OCTAVO_GGUF_I8, 100},
        {"u16", OCTAVO_GGUF_U16, 60000},      {"i16", OCTAVO_GGUF_I16, 30000},
        {"u32", OCTAVO_GGUF_U32, 4000000000}, {"i32", OCTAVO_GGUF_I32, 2000000000},
        {"u64", OCTAVO_GGUF_U64, UINT64_MAX}, {"i64", OCTAVO_GGUF_I64, 123456789},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(integers); i++) {
        assert_string_equal(octavo_gguf_metadata_key(gguf, i), integers[i].key);
        assert_int_equal(octavo_gguf_metadata_type(gguf, i), integers[i].type);
        uint64_t value = 0;
        uint32_t narrow = 0;
        assert_int_equal(octavo_gguf_get_u64(gguf, integers[i].key, &value, NULL), OCTAVO_OK);
        assert_true(value == integers[i].value);
        if (value > UINT32_MAX) continue;
        assert_int_equal(octavo_gguf_get_u32(gguf, integers[i].key, &narrow, NULL), OCTAVO_OK);
        assert_true(narrow == value);
    }
    float f = 0;
    bool b = false;
    octavo_gguf_string string = {0};
    assert_int_equal(octavo_gguf_get_f32(gguf, "f32", &f, NULL), OCTAVO_OK);
    assert_memory_equal(&f, &(float){0.1f}, sizeof(f));
    assert_int_equal(octavo_gguf_get_f32(gguf, "f64", &f, NULL), OCTAVO_OK);
    assert_memory_equal(&f, &(float){0.25f}, sizeof(f));
    assert_int_equal(octavo_gguf_get_bool(gguf, "yes", &b, NULL), OCTAVO_OK);
    assert_true(b);
    assert_int_equal(octavo_gguf_get_bool(gguf, "no", &b, NULL), OCTAVO_OK);
    assert_false(b);
    assert_int_equal(octavo_gguf_get_string(gguf, "string", &string, NULL), OCTAVO_OK);
    assert_string(string, "h\xc3\xa9llo");
    octavo_gguf_close(&gguf);
    assert_null(gguf);
    octavo_gguf_close(&gguf);
    gguf_writer_deinit(&w);
}

static void test_scalars_v2(void **unused) {
    (void)unused;
    check_scalars(2);
}

static void test_scalars_v3(void **unused) {
    (void)unused;
    check_scalars(3);
}

/* Values that do not fit, and types that are others than asked for. */
static void test_refusals(void **unused) {
    (void)unused;
    gguf_writer w;
    gguf_writer_init(&w, 3, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    gguf_writer_integer(&w, "minus", OCTAVO_GGUF_I16, -5);
    gguf_writer_integer(&w, "least", OCTAVO_GGUF_I64, INT64_MIN);
    gguf_writer_integer(&w, "wide", OCTAVO_GGUF_U64, (int64_t)UINT32_MAX + 1);
    gguf_writer_f64(&w, "large", 1e300);
    gguf_writer_f64(&w, "infinite", (double)INFINITY);
    gguf_writer_string(&w, "text", "7");
    gguf_writer_bool(&w, "flag", true);
    gguf_writer_i32s(&w, "list", (const int32_t[]){1, 2}, 2);
    octavo_gguf *gguf = parse(&w);
    octavo_error error = {0};
    uint32_t u32 = 11;
    uint64_t u64 = 12;
    float f = 13;
    bool b = true;
    octavo_gguf_string string = {0};
    octavo_gguf_array array = {0};

    assert_int_equal(octavo_gguf_get_u32(gguf, "minus", &u32, &error), OCTAVO_ERROR_FORMAT);
    assert_non_null(
        strstr(error.message, "\"minus\" (test.gguf): -5 is not within 0 to 4294967295"));
    assert_int_equal(error.offset, 24);
    assert_int_equal(octavo_gguf_get_u64(gguf, "least", &u64, &error), OCTAVO_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "-9223372036854775808"));
    assert_int_equal(octavo_gguf_get_u32_or(gguf, "wide", 1, &u32, &error), OCTAVO_ERROR_FORMAT);
    assert_int_equal(octavo_gguf_get_u64_or(gguf, "text", 1, &u64, &error), OCTAVO_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "is string where an integer is needed"));
    assert_int_equal(octavo_gguf_get_u32(gguf, "flag", &u32, &error), OCTAVO_ERROR_FORMAT);
    assert_int_equal(octavo_gguf_get_f32(gguf, "large", &f, &error), OCTAVO_ERROR_FORMAT);
    assert_int_equal(octavo_gguf_get_f32_or(gguf, "minus", 1, &f, &error), OCTAVO_ERROR_FORMAT);
    assert_int_equal(octavo_gguf_get_bool_or(gguf, "minus", false, &b, &error),
                     OCTAVO_ERROR_FORMAT);
    assert_int_equal(octavo_gguf_get_string_or(gguf, "list", "x", &string, &error),
                     OCTAVO_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "is an array of i32 where a string is needed"));
    assert_int_equal(octavo_gguf_get_array(gguf, "text", &array, &error), OCTAVO_ERROR_FORMAT);
    assert_int_equal(octavo_gguf_get_strings(gguf, "list", &array, &error), OCTAVO_ERROR_FORMAT);
    assert_int_equal(octavo_gguf_get_floats(gguf, "list", &array, &error), OCTAVO_ERROR_FORMAT);
    assert_int_equal(octavo_gguf_get_integers(gguf, "text", &array, &error), OCTAVO_ERROR_FORMAT);

    /* out-parameters are untouched on failure */
    assert_int_equal(u32, 11);
    assert_int_equal(u64, 12);
    assert_true(f > 12.5f && f < 13.5f);
    assert_true(b && string.data == NULL && array.data == NULL);

    assert_int_equal(octavo_gguf_get_f32(gguf, "infinite", &f, &error), OCTAVO_OK);
    assert_true(isinf(f));
    octavo_gguf_close(&gguf);
    gguf_writer_deinit(&w);
}

static void test_missing(void **unused) {
    (void)unused;
    gguf_writer w;
    gguf_writer_init(&w, 3, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    gguf_writer_u32(&w, "k", 1);
    octavo_gguf *gguf = parse(&w);
    octavo_error error = {0};
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    float f = 0;
    bool b = false;
    octavo_gguf_string string = {0};
    octavo_gguf_array array;

    assert_int_equal(octavo_gguf_get_u32(gguf, "llama.block_count", &u32, &error),
                     OCTAVO_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "\"llama.block_count\" (test.gguf): missing"));
    assert_int_equal(octavo_gguf_get_u64(gguf, "", &u64, NULL), OCTAVO_ERROR_NOT_FOUND);
    assert_int_equal(octavo_gguf_get_f32(gguf, "j", &f, NULL), OCTAVO_ERROR_NOT_FOUND);
    assert_int_equal(octavo_gguf_get_bool(gguf, "l", &b, NULL), OCTAVO_ERROR_NOT_FOUND);
    assert_int_equal(octavo_gguf_get_string(gguf, "kk", &string, NULL), OCTAVO_ERROR_NOT_FOUND);
    assert_int_equal(octavo_gguf_get_strings(gguf, "x", &array, NULL), OCTAVO_ERROR_NOT_FOUND);

    assert_int_equal(octavo_gguf_get_u32_or(gguf, "x", 7, &u32, &error), OCTAVO_OK);
    assert_int_equal(octavo_gguf_get_u64_or(gguf, "x", UINT64_MAX, &u64, &error), OCTAVO_OK);
    assert_int_equal(octavo_gguf_get_f32_or(gguf, "x", 1.5f, &f, &error), OCTAVO_OK);
    assert_int_equal(octavo_gguf_get_bool_or(gguf, "x", true, &b, &error), OCTAVO_OK);
    assert_int_equal(octavo_gguf_get_string_or(gguf, "x", "none", &string, &error), OCTAVO_OK);
    assert_true(u32 == 7 && u64 == UINT64_MAX && f > 1.4f && f < 1.6f && b);
    assert_string(string, "none");
    assert_int_equal(octavo_gguf_get_string_or(gguf, "x", NULL, &string, &error), OCTAVO_OK);
    assert_true(string.data == NULL && string.size == 0);
    assert_int_equal(octavo_gguf_get_u32_or(gguf, "k", 7, &u32, &error), OCTAVO_OK);
    assert_int_equal(u32, 1);
    octavo_gguf_close(&gguf);
    gguf_writer_deinit(&w);
}

static void test_number_arrays(void **unused) {
    (void)unused;
    static const struct {
        const char *key;
        octavo_gguf_type type;
        size_t bytes;
        int64_t least, most;
    } kinds[] = {
        {"u8", OCTAVO_GGUF_U8, 1, 0, UINT8_MAX},
        {"i8", OCTAVO_GGUF_I8, 1, INT8_MIN, INT8_MAX},
        {"u16", OCTAVO_GGUF_U16, 2, 0, UINT16_MAX},
        {"i16", OCTAVO_GGUF_I16, 2, INT16_MIN, INT16_MAX},
        {"u32", OCTAVO_GGUF_U32, 4, 0, UINT32_MAX},
        {"i32", OCTAVO_GGUF_I32, 4, INT32_MIN, INT32_MAX},
        {"u64", OCTAVO_GGUF_U64, 8, 0, INT64_MAX},
        {"i64", OCTAVO_GGUF_I64, 8, INT64_MIN, INT64_MAX},
        {"bool", OCTAVO_GGUF_BOOL, 1, 0, 1},
    };
    gguf_writer w;
    gguf_writer_init(&w, 3, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    for (size_t i = 0; i < OCTAVO_COUNT(kinds); i++) {
        octavo_buffer *buffer = gguf_writer_array(&w, kinds[i].key, kinds[i].type, 2);
        gguf_put(buffer, (uint64_t)kinds[i].least, kinds[i].bytes);
        gguf_put(buffer, (uint64_t)kinds[i].most, kinds[i].bytes);
    }
    gguf_put_u64(gguf_writer_array(&w, "huge", OCTAVO_GGUF_U64, 1), UINT64_MAX);
    gguf_writer_f32s(&w, "f32", (const float[]){0.1f, -2.0f}, 2);
    gguf_put_f64(gguf_writer_array(&w, "f64", OCTAVO_GGUF_F64, 1), 0.1);
    gguf_writer_array(&w, "empty", OCTAVO_GGUF_STRING, 0);
    octavo_gguf *gguf = parse(&w);
    octavo_gguf_array array = {0};
    for (size_t i = 0; i < OCTAVO_COUNT(kinds); i++) {
        assert_int_equal(octavo_gguf_get_integers(gguf, kinds[i].key, &array, NULL), OCTAVO_OK);
        assert_int_equal(array.type, kinds[i].type);
        assert_int_equal(array.count, 2);
        assert_true(octavo_gguf_array_i64(&array, 0) == kinds[i].least);
        assert_true(octavo_gguf_array_i64(&array, 1) == kinds[i].most);
        int64_t least = kinds[i].least < INT32_MIN ? INT32_MIN : kinds[i].least;
        int64_t most = kinds[i].most > INT32_MAX ? INT32_MAX : kinds[i].most;
        assert_true(octavo_gguf_array_i32(&array, 0) == least);
        assert_true(octavo_gguf_array_i32(&array, 1) == most);
    }
    assert_int_equal(octavo_gguf_get_integers(gguf, "huge", &array, NULL), OCTAVO_OK);
    assert_true(octavo_gguf_array_i64(&array, 0) == INT64_MAX);
    assert_true(octavo_gguf_array_i32(&array, 0) == INT32_MAX);
    assert_int_equal(octavo_gguf_get_floats(gguf, "f32", &array, NULL), OCTAVO_OK);
    assert_memory_equal(&(float){octavo_gguf_array_f32(&array, 0)}, &(float){0.1f}, 4);
    assert_memory_equal(&(float){octavo_gguf_array_f32(&array, 1)}, &(float){-2.0f}, 4);
    assert_int_equal(octavo_gguf_get_floats(gguf, "f64", &array, NULL), OCTAVO_OK);
    assert_memory_equal(&(float){octavo_gguf_array_f32(&array, 0)}, &(float){0.1f}, 4);
    assert_int_equal(octavo_gguf_get_strings(gguf, "empty", &array, NULL), OCTAVO_OK);
    assert_int_equal(array.count, 0);
    octavo_gguf_close(&gguf);
    gguf_writer_deinit(&w);
}

/* Array j of the nested ones holds j + 1 texts "j.0", "j.1", ... */
static void test_nested_arrays(void **unused) {
    (void)unused;
    gguf_writer w;
    gguf_writer_init(&w, 3, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    octavo_buffer *buffer = gguf_writer_array(&w, "nested", OCTAVO_GGUF_ARRAY, 3);
    char text[16];
    for (size_t j = 0; j < 3; j++) {
        gguf_put_array(buffer, OCTAVO_GGUF_STRING, j + 1);
        for (size_t i = 0; i <= j; i++) {
            snprintf(text, sizeof(text), "%zu.%zu", j, i);
            gguf_put_string(buffer, text);
        }
    }
    gguf_writer_u32(&w, "after", 5);
    octavo_gguf *gguf = parse(&w);
    octavo_gguf_array outer = {0};
    assert_int_equal(octavo_gguf_get_array(gguf, "nested", &outer, NULL), OCTAVO_OK);
    assert_int_equal(outer.type, OCTAVO_GGUF_ARRAY);
    assert_int_equal(outer.count, 3);
    for (size_t j = 0; j < 3; j++) {
        octavo_gguf_array inner = octavo_gguf_array_array(&outer, j);
        assert_int_equal(inner.type, OCTAVO_GGUF_STRING);
        assert_int_equal(inner.count, j + 1);
        for (size_t i = 0; i <= j; i++) {
            snprintf(text, sizeof(text), "%zu.%zu", j, i);
            assert_string(octavo_gguf_array_string(&inner, i), text);
        }
    }
    uint32_t after = 0;
    assert_int_equal(octavo_gguf_get_u32(gguf, "after", &after, NULL), OCTAVO_OK);
    assert_int_equal(after, 5);
    octavo_gguf_close(&gguf);
    gguf_writer_deinit(&w);
}

static void check_json(const octavo_gguf *gguf, const char *key, size_t max_items,
                       const char *expected) {
    octavo_buffer json = {0};
    ptrdiff_t index = octavo_gguf_metadata_find(gguf, key);
    assert_true(index >= 0);
    octavo_gguf_metadata_json(gguf, (size_t)index, max_items, &json);
    assert_string_equal(json.data, expected);
    octavo_buffer_deinit(&json);
}

static void test_json(void **unused) {
    (void)unused;
    static const char *const words[] = {"a\"b", "\xff", "c"};
    gguf_writer w;
    gguf_writer_init(&w, 3, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    gguf_writer_integer(&w, "u64", OCTAVO_GGUF_U64, -1);
    gguf_writer_integer(&w, "i64", OCTAVO_GGUF_I64, INT64_MIN);
    gguf_writer_integer(&w, "i8", OCTAVO_GGUF_I8, -7);
    gguf_writer_bool(&w, "bool", true);
    gguf_writer_f32(&w, "f32", 1e-5f);
    gguf_writer_f64(&w, "f64", 1.0 / 3);
    gguf_writer_f32(&w, "nan", NAN);
    gguf_writer_f64(&w, "inf", -(double)INFINITY);
    gguf_writer_strings(&w, "words", words, 3);
    octavo_buffer *buffer = gguf_writer_array(&w, "nested", OCTAVO_GGUF_ARRAY, 3);
    for (uint64_t j = 0; j < 3; j++) {
        gguf_put_array(buffer, OCTAVO_GGUF_U8, 4 - j);
        gguf_put(buffer, 0x04030201, (size_t)(4 - j));
    }
    octavo_gguf *gguf = parse(&w);
    check_json(gguf, "u64", 0, "18446744073709551615");
    check_json(gguf, "i64", 0, "-9223372036854775808");
    check_json(gguf, "i8", 0, "-7");
    check_json(gguf, "bool", 0, "true");
    check_json(gguf, "f32", 0, "1e-05");
    check_json(gguf, "f64", 0, "0.3333333333333333");
    check_json(gguf, "nan", 0, "\"nan\"");
    check_json(gguf, "inf", 0, "\"-inf\"");
    check_json(gguf, "words", 3, "[\"a\\\"b\", \"\xef\xbf\xbd\", \"c\"]");
    check_json(gguf, "words", 1, "{\"type\": \"string\", \"count\": 3, \"first\": [\"a\\\"b\"]}");
    check_json(gguf, "nested", 3,
               "[{\"type\": \"u8\", \"count\": 4, \"first\": [1, 2, 3]}, [1, 2, 3], [1, 2]]");
    check_json(gguf, "nested", 0, "{\"type\": \"array\", \"count\": 3, \"first\": []}");
    octavo_gguf_close(&gguf);
    gguf_writer_deinit(&w);
}

/* A tensor of each type with 256 values a row and two rows, filled with its own number. */
static void test_tensors(void **unused) {
    (void)unused;
    static uint8_t fill[4096];
    size_t count = 0;
    const octavo_ggml_type_info *types = octavo_ggml_types(&count);
    gguf_writer w;
    gguf_writer_init(&w, 3, 128);
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        assert_true(octavo_ggml_row_bytes(&types[i], 256, &bytes));
        memset(fill, (int)i, sizeof(fill));
        gguf_writer_tensor(&w, types[i].name, types[i].type, 2, (const uint64_t[]){256, 2}, fill,
                           (size_t)bytes * 2);
    }
    octavo_gguf *gguf = parse(&w);
    assert_int_equal(octavo_gguf_n_tensors(gguf), count);
    for (size_t i = 0; i < count; i++) {
        const octavo_gguf_tensor *tensor = NULL;
        assert_int_equal(octavo_gguf_get_tensor(gguf, types[i].name, &tensor, NULL), OCTAVO_OK);
        assert_ptr_equal(tensor, octavo_gguf_tensor_at(gguf, i));
        assert_string_equal(tensor->name, types[i].name);
        assert_int_equal(tensor->type, types[i].type);
        assert_int_equal(tensor->n_dims, 2);
        assert_int_equal(tensor->extent[0], 256);
        assert_int_equal(tensor->extent[1], 2);
        assert_int_equal(tensor->extent[2], 1);
        assert_int_equal(tensor->extent[3], 1);
        assert_int_equal(tensor->bytes, 512 / types[i].block_values * types[i].block_bytes);
        assert_int_equal(tensor->offset % 128, 0);
        memset(fill, (int)i, sizeof(fill));
        assert_memory_equal(tensor->data, fill, tensor->bytes);
    }
    const octavo_gguf_tensor *none = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_gguf_get_tensor(gguf, "token_embd.weight", &none, &error),
                     OCTAVO_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "tensor \"token_embd.weight\" (test.gguf): missing"));
    assert_null(none);
    octavo_gguf_close(&gguf);
    gguf_writer_deinit(&w);
}

/* Vocabularies alone are files too: no tensors, no padding. And a file may be quite empty. */
static void test_no_tensors(void **unused) {
    (void)unused;
    gguf_writer w;
    gguf_writer_init(&w, 2, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    octavo_gguf *gguf = parse(&w);
    assert_int_equal(octavo_gguf_n_metadata(gguf), 0);
    assert_int_equal(octavo_gguf_n_tensors(gguf), 0);
    octavo_gguf_close(&gguf);
    gguf_writer_string(&w, "tokenizer.ggml.model", "gpt2");
    gguf = parse(&w);
    assert_int_equal(octavo_gguf_n_metadata(gguf), 1);
    assert_int_equal(octavo_gguf_n_tensors(gguf), 0);
    octavo_gguf_close(&gguf);
    gguf_writer_deinit(&w);
}

/* A vocabulary of Gemma's size must open, and be read by index, in linear time. */
static void test_large_vocabulary(void **unused) {
    (void)unused;
    enum { COUNT = 262144 };
    gguf_writer w;
    gguf_writer_init(&w, 3, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    octavo_buffer *buffer = gguf_writer_array(&w, "tokens", OCTAVO_GGUF_STRING, COUNT);
    char text[16];
    for (int i = 0; i < COUNT; i++) {
        snprintf(text, sizeof(text), "t%d", i);
        gguf_put_string(buffer, text);
    }
    size_t size;
    const uint8_t *bytes = gguf_writer_finish(&w, &size);
    double start = octavo_clock_seconds();
    octavo_gguf *gguf = NULL;
    assert_int_equal(octavo_gguf_parse(bytes, size, "v", &gguf, NULL), OCTAVO_OK);
    octavo_gguf_array array = {0};
    assert_int_equal(octavo_gguf_get_strings(gguf, "tokens", &array, NULL), OCTAVO_OK);
    assert_int_equal(array.count, COUNT);
    for (int i = COUNT - 1; i >= 0; i -= 1001) {
        snprintf(text, sizeof(text), "t%d", i);
        assert_string(octavo_gguf_array_string(&array, (size_t)i), text);
    }
    size_t sum = gguf_walk_array(&array, 1);
    assert_true(sum > COUNT);
    assert_true(octavo_clock_seconds() - start < 2.0); /* a quadratic walk takes minutes */
    octavo_gguf_close(&gguf);
    gguf_writer_deinit(&w);
}

/* The tensors' pages are protected against reading while the file is parsed. */
static void test_data_is_not_touched(void **unused) {
    (void)unused;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    gguf_writer w;
    gguf_writer_init(&w, 3, (uint32_t)page); /* data begins on a page of its own */
    gguf_writer_tensor(&w, "a", OCTAVO_GGML_Q4_K, 2, (const uint64_t[]){256, 100}, NULL, 14400);
    gguf_writer_tensor(&w, "b", OCTAVO_GGML_F32, 1, (const uint64_t[]){1000}, NULL, 4000);
    size_t size;
    const uint8_t *bytes = gguf_writer_finish(&w, &size);
    uint8_t *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    memcpy(pages, bytes, size);
    assert_int_equal(mprotect(pages + page, size - page, PROT_NONE), 0);
    octavo_gguf *gguf = NULL;
    assert_int_equal(octavo_gguf_parse(pages, size, "p", &gguf, NULL), OCTAVO_OK);
    assert_ptr_equal(octavo_gguf_tensor_at(gguf, 0)->data, pages + page);
    octavo_gguf_close(&gguf);
    assert_int_equal(munmap(pages, size), 0);
    gguf_writer_deinit(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars_v2),
        cmocka_unit_test(test_scalars_v3),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_number_arrays),
        cmocka_unit_test(test_nested_arrays),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_no_tensors),
        cmocka_unit_test(test_large_vocabulary),
        cmocka_unit_test(test_data_is_not_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
