/* SPDX-License-Identifier: Apache-2.0
 *
 * Safetensors models on disk: what is no file, one file, and those sharded with an index.
 */
#include "../unit.h"
#include "bad_file.h"
#include "base/compiler.h"
#include "safetensors_walk.h"
#include "safetensors_writer.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/octavo-safetensors-XXXXXX";

static const char INDEX[] = "model.safetensors.index.json";
static const char *const names[] = {"a.safetensors", "b.safetensors", "c.safetensors",
                                    "model.safetensors.index.json"};

static const char *path_of(const char *name) {
    static char path[256];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_true(length > 0 && length < (int)sizeof(path));
    return path;
}

static int setup(void **unused) {
    (void)unused;
    return mkdtemp(folder) == NULL;
}

static int teardown(void **unused) {
    (void)unused;
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++) {
        (void)remove(path_of(names[i]));
    }
    return rmdir(folder);
}

static void write_text(const char *name, const char *text) {
    assert_true(safetensors_save_bytes(path_of(name), text, strlen(text)));
}

static void refused(const char *name, octavo_status expected, const char *text) {
    octavo_safetensors *safetensors = NULL;
    octavo_error error = {0};
    octavo_status status = octavo_safetensors_open(path_of(name), &safetensors, &error);
    assert_null(safetensors);
    bad_file_refused(status, &error, expected, text);
}

static octavo_safetensors *open_sound(const char *name) {
    octavo_safetensors *safetensors = NULL;
    octavo_error error = {0};
    if (octavo_safetensors_open(path_of(name), &safetensors, &error) != OCTAVO_OK) {
        fail_msg("%s", error.message);
    }
    return safetensors;
}

/* -- one file --------------------------------------------------------------------------------- */

static void test_no_file(void **unused) {
    (void)unused;
    refused("absent.safetensors", OCTAVO_ERROR_NOT_FOUND, "absent.safetensors");
    refused("absent.json", OCTAVO_ERROR_NOT_FOUND, "absent.json");
    refused(".", OCTAVO_ERROR_IO, "folder");
    write_text("a.safetensors", "");
    refused("a.safetensors", OCTAVO_ERROR_FORMAT, "a.safetensors): the file is empty");
}

static void test_one_file(void **unused) {
    (void)unused;
    static float values[5000];
    for (int i = 0; i < 5000; i++) {
        values[i] = (float)i;
    }
    safetensors_writer w = {0};
    safetensors_writer_metadata(&w, "format", "pt");
    safetensors_writer_tensor(&w, "t", "F32", "[5,1000]", values, sizeof(values));
    assert_true(safetensors_writer_save(&w, path_of("a.safetensors")));
    octavo_safetensors *safetensors = open_sound("a.safetensors");
    assert_string_equal(octavo_safetensors_path(safetensors), path_of("a.safetensors"));
    safetensors_walk(safetensors, w.file.size);
    const octavo_safetensors_tensor *tensor = octavo_safetensors_tensor_at(safetensors, 0);
    octavo_safetensors_will_need(safetensors, tensor, 0, tensor->bytes);
    assert_memory_equal(tensor->data, values, sizeof(values));
    octavo_safetensors_drop(safetensors, tensor, 0, tensor->bytes);
    assert_memory_equal(tensor->data, values, sizeof(values)); /* back when touched */
    octavo_safetensors_close(&safetensors);
    safetensors_writer_deinit(&w);
}

/* A path longer than a message still leaves room for the reason. */
static void test_long_path(void **unused) {
    (void)unused;
    char name[1024];
    int length = 0;
    while (length < 900) {
        length += snprintf(name + length, sizeof(name) - (size_t)length, "./");
    }
    snprintf(name + length, sizeof(name) - (size_t)length, "a.safetensors");
    write_text("a.safetensors", "no model");
    char path[1200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    octavo_safetensors *safetensors = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_safetensors_open(path, &safetensors, &error), OCTAVO_ERROR_FORMAT);
    assert_non_null(strstr(error.message, "/a.safetensors): it would have "));
    assert_non_null(strstr(error.message, "fetch it again"));
}

/* -- sharded ---------------------------------------------------------------------------------- */

/* Each file NAME holds the tensors NAME.0, NAME.1 (4 bytes of the file's letter each), and "both",
 * which begins with the letter too. */
static void write_shards(void) {
    for (size_t i = 0; i < 3; i++) {
        char text[8], tensor[8];
        const char letter = names[i][0];
        memset(text, letter, sizeof(text));
        safetensors_writer w = {0};
        safetensors_writer_metadata(&w, "letter", (const char[]){letter, 0});
        for (int n = 0; n < 2; n++) {
            snprintf(tensor, sizeof(tensor), "%c.%d", letter, n);
            safetensors_writer_tensor(&w, tensor, "U8", "[2,2]", text, 4);
        }
        safetensors_writer_tensor(&w, "both", "U8", "[1]", text, 1);
        assert_true(safetensors_writer_save(&w, path_of(names[i])));
        safetensors_writer_deinit(&w);
    }
}

static const octavo_safetensors_tensor *get(const octavo_safetensors *safetensors,
                                            const char *name) {
    ptrdiff_t index = octavo_safetensors_tensor_find(safetensors, name);
    assert_true(index >= 0);
    return octavo_safetensors_tensor_at(safetensors, (size_t)index);
}

static void test_shards(void **unused) {
    (void)unused;
    write_shards();
    /* total_size is wrong, b.1 not named, "both" in each file and the index chooses */
    write_text(INDEX, "{\"metadata\":{\"total_size\":1},\"weight_map\":{"
                      "\"c.1\":\"c.safetensors\",\"a.0\":\"a.safetensors\","
                      "\"b.0\":\"b.safetensors\",\"both\":\"b.safetensors\","
                      "\"a.1\":\"a.safetensors\",\"c.0\":\"c.safetensors\"}}");
    octavo_safetensors *safetensors = open_sound(INDEX);
    assert_string_equal(octavo_safetensors_path(safetensors), path_of(INDEX));
    assert_int_equal(octavo_safetensors_n_parts(safetensors), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(octavo_safetensors_part_path(safetensors, i), path_of(names[i]));
        assert_string_equal(octavo_safetensors_metadata(safetensors, i, "letter"),
                            ((const char[]){names[i][0], 0}));
    }
    static const char *const order[] = {"a.0", "a.1", "b.0", "both", "c.0", "c.1"};
    assert_int_equal(octavo_safetensors_n_tensors(safetensors), OCTAVO_COUNT(order));
    for (size_t i = 0; i < OCTAVO_COUNT(order); i++) {
        const octavo_safetensors_tensor *tensor = octavo_safetensors_tensor_at(safetensors, i);
        const char letter = order[i][0];
        assert_string_equal(tensor->name, order[i]);
        assert_ptr_equal(get(safetensors, order[i]), tensor);
        assert_int_equal(tensor->part, letter - 'a');
        for (size_t byte = 0; byte < tensor->bytes; byte++) {
            assert_int_equal(tensor->data[byte], letter);
        }
        octavo_safetensors_will_need(safetensors, tensor, 0, tensor->bytes);
        octavo_safetensors_drop(safetensors, tensor, 0, tensor->bytes);
    }
    assert_int_equal(octavo_safetensors_tensor_find(safetensors, "b.1"), -1);
    const octavo_safetensors_tensor *tensor = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_safetensors_get_tensor(safetensors, "b.1", &tensor, &error),
                     OCTAVO_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "model.safetensors.index.json): missing"));
    octavo_safetensors_close(&safetensors);
}

/* A file that the index does not name is not opened. */
static void test_some_files(void **unused) {
    (void)unused;
    write_shards();
    write_text("a.safetensors", "damaged");
    write_text(INDEX, "{\"weight_map\":{\"c.1\":\"c.safetensors\"}}");
    octavo_safetensors *safetensors = open_sound(INDEX);
    assert_int_equal(octavo_safetensors_n_parts(safetensors), 1);
    assert_int_equal(octavo_safetensors_n_tensors(safetensors), 1);
    assert_int_equal(get(safetensors, "c.1")->part, 0);
    octavo_safetensors_close(&safetensors);
}

static void test_wrong_shards(void **unused) {
    (void)unused;
    write_shards();
    write_text(INDEX, "{\"weight_map\":{\"a.0\":\"a.safetensors\",\"a.7\":\"a.safetensors\"}}");
    refused(INDEX, OCTAVO_ERROR_FORMAT, "tensor \"a.7\" (");
    refused(INDEX, OCTAVO_ERROR_FORMAT,
            "index.json): the index places it in a.safetensors, which does not hold it");
    /* it is in another file */
    write_text(INDEX, "{\"weight_map\":{\"b.0\":\"a.safetensors\",\"b.1\":\"b.safetensors\"}}");
    refused(INDEX, OCTAVO_ERROR_FORMAT, "the index places it in a.safetensors");
    write_text(INDEX, "{\"weight_map\":{\"a.0\":\"b.safetensors\",\"b.0\":\"b.safetensors\"}}");
    refused(INDEX, OCTAVO_ERROR_FORMAT, "tensor \"a.0\" (");

    write_text(INDEX, "{\"weight_map\":{\"a.0\":\"a.safetensors\",\"z\":\"z.safetensors\"}}");
    refused(INDEX, OCTAVO_ERROR_NOT_FOUND,
            "index.json): its file z.safetensors (2 of 2) is missing; fetch it into the folder");
    write_text("b.safetensors", "damaged!!");
    write_text(INDEX, "{\"weight_map\":{\"a.0\":\"a.safetensors\",\"b.0\":\"b.safetensors\"}}");
    refused(INDEX, OCTAVO_ERROR_FORMAT, "/b.safetensors): it would have ");
}

static void test_wrong_index(void **unused) {
    (void)unused;
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"", "model index ("},
        {"", "index.json): the file is empty"},
        {"{", "index.json): line 1 is no legal JSON"},
        {"[]", "index.json): it is no JSON object"},
        {"{}", "its \"weight_map\" is missing, empty or no object"},
        {"{\"weight_map\":[]}", "its \"weight_map\" is missing, empty or no object"},
        {"{\"weight_map\":{}}", "its \"weight_map\" is missing, empty or no object"},
        {"{\"weight_map\":{\"t\":\"a.safetensors\",\"t\":\"b.safetensors\"}}",
         "duplicate object key"},
        {"{\"weight_map\":{\"t\":7}}", "the file name for tensor \"t\" is no text"},
        {"{\"weight_map\":{\"t\":\"\"}}", "the file name for tensor \"t\" is empty"},
        {"{\"weight_map\":{\"t\":\"a\\u001b.safetensors\"}}", "\"t\" holds a control character"},
        {"{\"weight_map\":{\"\":\"a.safetensors\"}}", "the name of a tensor is empty"},
        {"{\"weight_map\":{\"a\\nb\":\"a.safetensors\"}}", "a tensor holds a control character"},
    };
    write_shards();
    for (size_t i = 0; i < OCTAVO_COUNT(wrong); i++) {
        write_text(INDEX, wrong[i].text);
        refused(INDEX, OCTAVO_ERROR_FORMAT, wrong[i].message);
    }
}

/* No index reaches beyond its folder, not even to files that are there. */
static void test_traversal(void **unused) {
    (void)unused;
    write_shards();
    static const char *const files[] = {
        "../a.safetensors",    "./a.safetensors",     "/etc/passwd",           "sub/a.safetensors",
        "..\\\\a.safetensors", "C:\\\\a.safetensors", "../x/../a.safetensors",
    };
    char text[256];
    for (size_t i = 0; i < OCTAVO_COUNT(files); i++) {
        snprintf(text, sizeof(text), "{\"weight_map\":{\"a.0\":\"%s\"}}", files[i]);
        write_text(INDEX, text);
        refused(INDEX, OCTAVO_ERROR_FORMAT,
                "for tensor \"a.0\" may lead out of the folder of the index");
    }
    snprintf(text, sizeof(text), "{\"weight_map\":{\"a.0\":\"%s%s\"}}", folder, "/a.safetensors");
    write_text(INDEX, text);
    refused(INDEX, OCTAVO_ERROR_FORMAT, "may lead out of the folder");
    static const char *const others[] = {"..", ".", "config.json", "a.bin", ".safetensors"};
    for (size_t i = 0; i < OCTAVO_COUNT(others); i++) {
        snprintf(text, sizeof(text), "{\"weight_map\":{\"a.0\":\"%s\"}}", others[i]);
        write_text(INDEX, text);
        refused(INDEX, OCTAVO_ERROR_FORMAT, "for tensor \"a.0\" does not end in .safetensors");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_file),     cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_long_path),   cmocka_unit_test(test_shards),
        cmocka_unit_test(test_some_files),  cmocka_unit_test(test_wrong_shards),
        cmocka_unit_test(test_wrong_index), cmocka_unit_test(test_traversal),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
