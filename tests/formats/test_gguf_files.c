/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF files on disk: what is no file, and models split over several.
 */
#include "../gguf_writer.h"
#include "../unit.h"
#include "bad_file.h"
#include "base/compiler.h"

#include <sys/stat.h>
#include <unistd.h>

enum { N_PARTS = 3 };

static char folder[] = "/tmp/octavo-gguf-XXXXXX";

static const char *path_of(const char *name) {
    static char path[256];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_true(length > 0 && length < (int)sizeof(path));
    return path;
}

static const char *part_path(int part) {
    char name[64];
    snprintf(name, sizeof(name), "m-%05d-of-%05d.gguf", part + 1, N_PARTS);
    return path_of(name);
}

static int setup(void **unused) {
    (void)unused;
    return mkdtemp(folder) == NULL;
}

static int teardown(void **unused) {
    (void)unused;
    for (int part = 0; part < N_PARTS; part++) {
        (void)remove(part_path(part));
    }
    (void)remove(path_of("file.gguf"));
    return rmdir(folder);
}

static void refused(const char *path, octavo_status expected, const char *text) {
    octavo_gguf *gguf = NULL;
    octavo_error error = {0};
    octavo_status status = octavo_gguf_open(path, &gguf, &error);
    assert_null(gguf);
    bad_file_refused(status, &error, expected, text);
}

static void write_bytes(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void test_no_file(void **unused) {
    (void)unused;
    refused(path_of("absent.gguf"), OCTAVO_ERROR_NOT_FOUND, "absent.gguf");
    refused(folder, OCTAVO_ERROR_IO, folder);
    write_bytes(path_of("file.gguf"), "", 0);
    refused(path_of("file.gguf"), OCTAVO_ERROR_FORMAT, "file.gguf): the file is empty");
    write_bytes(path_of("file.gguf"), "GGUF", 4);
    refused(path_of("file.gguf"), OCTAVO_ERROR_FORMAT, "cut short");
}

static void test_one_file(void **unused) {
    (void)unused;
    float values[5000];
    for (int i = 0; i < 5000; i++) {
        values[i] = (float)i;
    }
    gguf_writer w;
    gguf_writer_init(&w, 3, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    gguf_writer_string(&w, "general.architecture", "llama");
    gguf_writer_tensor(&w, "t", OCTAVO_GGML_F32, 2, (const uint64_t[]){1000, 5}, values,
                       sizeof(values));
    assert_true(gguf_writer_save(&w, path_of("file.gguf")));
    gguf_writer_deinit(&w);
    octavo_gguf *gguf = NULL;
    assert_int_equal(octavo_gguf_open(path_of("file.gguf"), &gguf, NULL), OCTAVO_OK);
    assert_int_equal(octavo_gguf_n_parts(gguf), 1);
    assert_string_equal(octavo_gguf_part_path(gguf, 0), path_of("file.gguf"));
    const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(gguf, 0);
    octavo_gguf_will_need(gguf, tensor, 0, tensor->bytes);
    assert_memory_equal(tensor->data, values, sizeof(values));
    octavo_gguf_drop(gguf, tensor, 0, tensor->bytes);
    assert_memory_equal(tensor->data, values, sizeof(values)); /* back when touched */
    octavo_gguf_close(&gguf);
}

/* A path longer than a message still leaves room for the reason. */
static void test_long_path(void **unused) {
    (void)unused;
    char path[1024];
    int length = snprintf(path, sizeof(path), "%s", folder);
    while (length < 900) {
        length += snprintf(path + length, sizeof(path) - (size_t)length, "/.");
    }
    snprintf(path + length, sizeof(path) - (size_t)length, "/file.gguf");
    write_bytes(path_of("file.gguf"), "no model", 8);
    refused(path, OCTAVO_ERROR_FORMAT, "/file.gguf): the file does not begin with \"GGUF\"");
}

/* -- split models ----------------------------------------------------------------------------- */

/* What a test changes about the parts; zero is a sound model. */
typedef struct damage {
    int64_t total_change;      /* of split.tensors.count */
    const char *name_of_third; /* instead of "t2" */
    int64_t no_change;         /* of split.no in part 1 */
    int64_t count_change;      /* of split.count in part 1 */
} damage;

/* Part i holds tensor "t<i>" of 4 values i + 0.5, and the last one "u" too. */
static void write_parts(damage d) {
    for (int part = 0; part < N_PARTS; part++) {
        gguf_writer w;
        gguf_writer_init(&w, 3, part == 1 ? 64 : OCTAVO_GGUF_DEFAULT_ALIGNMENT);
        gguf_writer_integer(&w, "split.no", OCTAVO_GGUF_U16, part + (part == 1 ? d.no_change : 0));
        gguf_writer_integer(&w, "split.count", OCTAVO_GGUF_U16,
                            N_PARTS + (part == 1 ? d.count_change : 0));
        gguf_writer_integer(&w, "split.tensors.count", OCTAVO_GGUF_I32,
                            N_PARTS + 1 + d.total_change);
        if (part == 0) gguf_writer_string(&w, "general.name", "in parts");
        char name[16];
        float value = (float)part + 0.5f;
        float values[4] = {value, value, value, value};
        snprintf(name, sizeof(name), "t%d", part);
        gguf_writer_tensor(&w, part == 2 && d.name_of_third != NULL ? d.name_of_third : name,
                           OCTAVO_GGML_F32, 1, (const uint64_t[]){4}, values, sizeof(values));
        if (part == N_PARTS - 1) {
            gguf_writer_tensor(&w, "u", OCTAVO_GGML_F32, 1, (const uint64_t[]){4}, NULL, 16);
        }
        assert_true(gguf_writer_save(&w, part_path(part)));
        gguf_writer_deinit(&w);
    }
}

static void test_split(void **unused) {
    (void)unused;
    write_parts((damage){0});
    octavo_gguf *gguf = NULL;
    octavo_error error = {0};
    if (octavo_gguf_open(part_path(0), &gguf, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    assert_int_equal(octavo_gguf_n_parts(gguf), N_PARTS);
    assert_string_equal(octavo_gguf_part_path(gguf, 2), part_path(2));
    assert_int_equal(octavo_gguf_n_tensors(gguf), N_PARTS + 1);
    octavo_gguf_string name = {0};
    assert_int_equal(octavo_gguf_get_string(gguf, "general.name", &name, NULL), OCTAVO_OK);
    for (int part = 0; part < N_PARTS; part++) {
        const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(gguf, (size_t)part);
        char text[16];
        float value = (float)part + 0.5f;
        snprintf(text, sizeof(text), "t%d", part);
        assert_string_equal(tensor->name, text);
        assert_int_equal(octavo_gguf_tensor_find(gguf, text), part);
        assert_int_equal(tensor->part, part);
        assert_memory_equal(tensor->data, &value, sizeof(value));
        octavo_gguf_drop(gguf, tensor, 0, tensor->bytes);
    }
    assert_int_equal(octavo_gguf_tensor_at(gguf, N_PARTS)->part, N_PARTS - 1);
    octavo_gguf_close(&gguf);
}

static void test_split_wrong_files(void **unused) {
    (void)unused;
    write_parts((damage){0});
    refused(part_path(1), OCTAVO_ERROR_INVALID,
            "m-00002-of-00003.gguf): this is part 2 of 3; give the first part, whose name ends in "
            "-00001-of-00003.gguf");
    assert_int_equal(remove(part_path(2)), 0);
    refused(part_path(0), OCTAVO_ERROR_NOT_FOUND, "m-00003-of-00003.gguf): part 3 of 3 is missing");
    write_bytes(part_path(2), "GGUF", 4);
    refused(part_path(0), OCTAVO_ERROR_FORMAT, "m-00003-of-00003.gguf): needs");

    write_parts((damage){0}); /* a first part that was renamed */
    char from[256];
    snprintf(from, sizeof(from), "%s", part_path(0));
    assert_int_equal(rename(from, path_of("file.gguf")), 0);
    refused(path_of("file.gguf"), OCTAVO_ERROR_INVALID, "must have a name that ends in");
}

static void test_split_inconsistent(void **unused) {
    (void)unused;
    write_parts((damage){.total_change = 1});
    refused(part_path(0), OCTAVO_ERROR_FORMAT, "hold 4 tensors, its metadata says 5");
    write_parts((damage){.name_of_third = "t0"});
    refused(part_path(0), OCTAVO_ERROR_FORMAT, "m-00003-of-00003.gguf): appears more than once");
    write_parts((damage){.no_change = 1});
    refused(part_path(0), OCTAVO_ERROR_FORMAT, "this is part 3 of 3, not part 2 of 3");
    write_parts((damage){.count_change = 1});
    refused(part_path(0), OCTAVO_ERROR_FORMAT, "this is part 2 of 4, not part 2 of 3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_file),           cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_long_path),         cmocka_unit_test(test_split),
        cmocka_unit_test(test_split_wrong_files), cmocka_unit_test(test_split_inconsistent),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
