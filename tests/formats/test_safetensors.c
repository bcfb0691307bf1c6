/* SPDX-License-Identifier: Apache-2.0
 *
 * What a sound safetensors file gives: tensors of each type, orders, odd shapes, metadata.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "safetensors_walk.h"
#include "safetensors_writer.h"

/* Ends the writer's file in *safetensors; the writer must live as long. */
static octavo_safetensors *parse(safetensors_writer *writer) {
    octavo_safetensors *safetensors = NULL;
    octavo_error error = {0};
    size_t size;
    const uint8_t *bytes = safetensors_writer_finish(writer, &size);
    octavo_status status = octavo_safetensors_parse(bytes, size, "good", &safetensors, &error);
    if (status != OCTAVO_OK) fail_msg("%s", error.message);
    safetensors_walk(safetensors, size);
    return safetensors;
}

static const octavo_safetensors_tensor *get(const octavo_safetensors *safetensors,
                                            const char *name) {
    const octavo_safetensors_tensor *tensor = NULL;
    octavo_error error = {0};
    if (octavo_safetensors_get_tensor(safetensors, name, &tensor, &error) != OCTAVO_OK) {
        fail_msg("%s", error.message);
    }
    return tensor;
}

static void test_dtypes(void **unused) {
    (void)unused;
    static const struct {
        const char *name;
        octavo_safetensors_dtype dtype;
        unsigned bits;
    } dtypes[] = {
        {"F64", OCTAVO_SAFETENSORS_F64, 64},
        {"F32", OCTAVO_SAFETENSORS_F32, 32},
        {"F16", OCTAVO_SAFETENSORS_F16, 16},
        {"BF16", OCTAVO_SAFETENSORS_BF16, 16},
        {"F8_E4M3", OCTAVO_SAFETENSORS_F8_E4M3, 8},
        {"F8_E5M2", OCTAVO_SAFETENSORS_F8_E5M2, 8},
        {"F8_E4M3FNUZ", OCTAVO_SAFETENSORS_F8_E4M3FNUZ, 8},
        {"F8_E5M2FNUZ", OCTAVO_SAFETENSORS_F8_E5M2FNUZ, 8},
        {"F8_E8M0", OCTAVO_SAFETENSORS_F8_E8M0, 8},
        {"F6_E2M3", OCTAVO_SAFETENSORS_F6_E2M3, 6},
        {"F6_E3M2", OCTAVO_SAFETENSORS_F6_E3M2, 6},
        {"F4", OCTAVO_SAFETENSORS_F4, 4},
        {"C64", OCTAVO_SAFETENSORS_C64, 64},
        {"I64", OCTAVO_SAFETENSORS_I64, 64},
        {"I32", OCTAVO_SAFETENSORS_I32, 32},
        {"I16", OCTAVO_SAFETENSORS_I16, 16},
        {"I8", OCTAVO_SAFETENSORS_I8, 8},
        {"U64", OCTAVO_SAFETENSORS_U64, 64},
        {"U32", OCTAVO_SAFETENSORS_U32, 32},
        {"U16", OCTAVO_SAFETENSORS_U16, 16},
        {"U8", OCTAVO_SAFETENSORS_U8, 8},
        {"BOOL", OCTAVO_SAFETENSORS_BOOL, 8},
    };
    safetensors_writer w = {0};
    for (size_t i = 0; i < OCTAVO_COUNT(dtypes); i++) {
        assert_int_equal(octavo_safetensors_dtype_lookup(dtypes[i].name), dtypes[i].dtype);
        assert_string_equal(octavo_safetensors_dtype_name(dtypes[i].dtype), dtypes[i].name);
        assert_int_equal(octavo_safetensors_dtype_bits(dtypes[i].dtype), dtypes[i].bits);
        safetensors_writer_tensor(&w, dtypes[i].name, dtypes[i].name, "[2,4]", NULL,
                                  dtypes[i].bits);
    }
    assert_int_equal(OCTAVO_COUNT(dtypes), OCTAVO_SAFETENSORS_BOOL); /* all but UNKNOWN */
    octavo_safetensors *safetensors = parse(&w);
    assert_int_equal(octavo_safetensors_n_tensors(safetensors), OCTAVO_COUNT(dtypes));
    for (size_t i = 0; i < OCTAVO_COUNT(dtypes); i++) {
        const octavo_safetensors_tensor *tensor = get(safetensors, dtypes[i].name);
        assert_int_equal(tensor->dtype, dtypes[i].dtype);
        assert_string_equal(tensor->dtype_name, dtypes[i].name);
        assert_int_equal(tensor->bytes, dtypes[i].bits);
    }
    octavo_safetensors_close(&safetensors);
    assert_null(safetensors);
    octavo_safetensors_close(&safetensors);
    safetensors_writer_deinit(&w);

    assert_int_equal(octavo_safetensors_dtype_lookup("f32"), OCTAVO_SAFETENSORS_UNKNOWN);
    assert_int_equal(octavo_safetensors_dtype_lookup("?"), OCTAVO_SAFETENSORS_UNKNOWN);
    assert_string_equal(octavo_safetensors_dtype_name((octavo_safetensors_dtype)99), "?");
    assert_int_equal(octavo_safetensors_dtype_bits((octavo_safetensors_dtype)99), 0);
}

/* Extents stay as in the file, outermost first; data is where its offsets say. */
static void test_tensors(void **unused) {
    (void)unused;
    const float a[6] = {1, 2, 3, 4, 5, 6};
    const uint16_t b[4] = {7, 8, 9, 10};
    safetensors_writer w = {0};
    safetensors_writer_tensor(&w, "a", "F32", "[2,3]", a, sizeof(a));
    safetensors_writer_tensor(&w, "b", "BF16", "[4,1,1,1,1,1,1,1]", b, sizeof(b));
    safetensors_writer_tensor(&w, "scalar", "F32", "[]", a, 4);
    safetensors_writer_tensor(&w, "none", "F16", "[5,0,9]", NULL, 0);
    octavo_safetensors *safetensors = parse(&w);
    assert_int_equal(octavo_safetensors_n_tensors(safetensors), 4);
    assert_int_equal(octavo_safetensors_n_parts(safetensors), 1);
    assert_string_equal(octavo_safetensors_path(safetensors), "good");
    assert_string_equal(octavo_safetensors_part_path(safetensors, 0), "good");

    const octavo_safetensors_tensor *tensor = get(safetensors, "a");
    assert_string_equal(tensor->name, "a");
    assert_int_equal(tensor->n_dims, 2);
    assert_int_equal(tensor->extent[0], 2);
    assert_int_equal(tensor->extent[1], 3);
    assert_int_equal(tensor->n_values, 6);
    assert_memory_equal(tensor->data, a, sizeof(a));
    assert_true(tensor->aligned);
    tensor = get(safetensors, "b");
    assert_int_equal(tensor->n_dims, 8);
    assert_memory_equal(tensor->data, b, sizeof(b));
    tensor = get(safetensors, "scalar");
    assert_int_equal(tensor->n_dims, 0);
    assert_int_equal(tensor->n_values, 1);
    assert_memory_equal(tensor->data, a, 4);
    tensor = get(safetensors, "none");
    assert_int_equal(tensor->n_values, 0);
    assert_int_equal(tensor->bytes, 0);

    octavo_error error = {0};
    assert_int_equal(octavo_safetensors_get_tensor(safetensors, "absent", &tensor, &error),
                     OCTAVO_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "tensor \"absent\" (good): missing"));
    assert_int_equal(octavo_safetensors_tensor_find(safetensors, ""), -1);
    octavo_safetensors_close(&safetensors);
    safetensors_writer_deinit(&w);
}

/* Entries may stand in any order in the header; walking is by offset. */
static void test_order(void **unused) {
    (void)unused;
    safetensors_writer w = {0};
    safetensors_writer_description(&w, "third", "U8", "[3]", 3, 6);
    safetensors_writer_description(&w, "zero", "U8", "[0]", 1, 1);
    safetensors_writer_description(&w, "first", "U8", "[1]", 0, 1);
    safetensors_writer_description(&w, "second", "U8", "[2]", 1, 3);
    safetensors_writer_data(&w, "abbccc", 6);
    octavo_safetensors *safetensors = parse(&w);
    static const char *const order[] = {"first", "zero", "second", "third"};
    for (size_t i = 0; i < OCTAVO_COUNT(order); i++) {
        assert_string_equal(octavo_safetensors_tensor_at(safetensors, i)->name, order[i]);
    }
    assert_memory_equal(get(safetensors, "second")->data, "bb", 2);
    assert_memory_equal(get(safetensors, "third")->data, "ccc", 3);
    octavo_safetensors_close(&safetensors);
    safetensors_writer_deinit(&w);
}

/* Many names, so that the search meets every path. */
static void test_many(void **unused) {
    (void)unused;
    enum { COUNT = 1000 };
    safetensors_writer w = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        char name[32];
        uint32_t value = i * 2654435761u;
        snprintf(name, sizeof(name), "model.layers.%u.w", value);
        safetensors_writer_tensor(&w, name, "U32", "[1]", &value, sizeof(value));
    }
    octavo_safetensors *safetensors = parse(&w);
    assert_int_equal(octavo_safetensors_n_tensors(safetensors), COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        char name[32];
        uint32_t value = i * 2654435761u;
        snprintf(name, sizeof(name), "model.layers.%u.w", value);
        assert_memory_equal(get(safetensors, name)->data, &value, sizeof(value));
    }
    octavo_safetensors_close(&safetensors);
    safetensors_writer_deinit(&w);
}

static void test_metadata(void **unused) {
    (void)unused;
    safetensors_writer w = {0};
    safetensors_writer_metadata(&w, "format", "pt");
    safetensors_writer_metadata(&w, "note", "two\nlines, \"quoted\", \xc3\xa9");
    safetensors_writer_metadata(&w, "", "");
    octavo_safetensors *safetensors = parse(&w);
    assert_int_equal(octavo_safetensors_n_tensors(safetensors), 0);
    assert_int_equal(octavo_safetensors_n_metadata(safetensors, 0), 3);
    assert_string_equal(octavo_safetensors_metadata_at(safetensors, 0, 1)->key, "note");
    assert_string_equal(octavo_safetensors_metadata(safetensors, 0, "format"), "pt");
    assert_string_equal(octavo_safetensors_metadata(safetensors, 0, "note"),
                        "two\nlines, \"quoted\", \xc3\xa9");
    assert_string_equal(octavo_safetensors_metadata(safetensors, 0, ""), "");
    assert_null(octavo_safetensors_metadata(safetensors, 0, "forma"));
    octavo_safetensors_close(&safetensors);
    safetensors_writer_deinit(&w);

    w = (safetensors_writer){0}; /* null is none */
    safetensors_writer_entry(&w, "__metadata__", "null");
    safetensors = parse(&w);
    assert_int_equal(octavo_safetensors_n_metadata(safetensors, 0), 0);
    octavo_safetensors_close(&safetensors);
    safetensors_writer_deinit(&w);

    w = (safetensors_writer){0}; /* a file of nothing */
    safetensors = parse(&w);
    assert_int_equal(octavo_safetensors_n_metadata(safetensors, 0), 0);
    assert_int_equal(octavo_safetensors_n_tensors(safetensors), 0);
    octavo_safetensors_close(&safetensors);
    safetensors_writer_deinit(&w);
}

/* Old writers aligned nothing. */
static void test_unaligned(void **unused) {
    (void)unused;
    for (size_t padding = 0; padding < 8; padding++) {
        const float value = 3.5f;
        safetensors_writer w = {.unaligned = true, .padding = padding};
        safetensors_writer_tensor(&w, "odd", "U8", "[1]", "x", 1);
        safetensors_writer_tensor(&w, "w", "F32", "[1]", &value, sizeof(value));
        octavo_safetensors *safetensors = parse(&w);
        const octavo_safetensors_tensor *tensor = get(safetensors, "w");
        assert_true(get(safetensors, "odd")->aligned);
        assert_true(tensor->aligned == (tensor->offset % 4 == 0));
        assert_memory_equal(tensor->data, &value, sizeof(value));
        octavo_safetensors_close(&safetensors);
        safetensors_writer_deinit(&w);
    }
}

/* A type of a newer format does not keep the rest of a file from being read. */
static void test_unknown_dtype(void **unused) {
    (void)unused;
    safetensors_writer w = {0};
    safetensors_writer_tensor(&w, "new", "F3_E1M1", "[8]", NULL, 3);
    safetensors_writer_tensor(&w, "old", "U8", "[2]", "ab", 2);
    octavo_safetensors *safetensors = parse(&w);
    const octavo_safetensors_tensor *tensor = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_safetensors_get_tensor(safetensors, "new", &tensor, &error),
                     OCTAVO_ERROR_UNSUPPORTED);
    assert_null(tensor);
    assert_string_equal(error.message,
                        "tensor \"new\" (good): its dtype \"F3_E1M1\" is not known; convert the "
                        "model to another such as BF16");
    ptrdiff_t index = octavo_safetensors_tensor_find(safetensors, "new");
    assert_int_equal(index, 0);
    tensor = octavo_safetensors_tensor_at(safetensors, 0);
    assert_int_equal(tensor->dtype, OCTAVO_SAFETENSORS_UNKNOWN);
    assert_string_equal(tensor->dtype_name, "F3_E1M1");
    assert_int_equal(tensor->bytes, 3);
    assert_memory_equal(get(safetensors, "old")->data, "ab", 2);
    octavo_safetensors_close(&safetensors);
    safetensors_writer_deinit(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_order),         cmocka_unit_test(test_many),
        cmocka_unit_test(test_metadata),      cmocka_unit_test(test_unaligned),
        cmocka_unit_test(test_unknown_dtype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
