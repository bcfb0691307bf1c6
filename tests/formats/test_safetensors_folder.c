/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of a Hugging Face checkpoint: which file is taken for the weights, what else is found,
 * and what is said of folders that are none.
 */
#include "../unit.h"
#include "bad_file.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "formats/hf_folder.h"
#include "formats/hf_folder_file.h"
#include "safetensors_writer.h"

#include <unistd.h>

static char folder[] = "/tmp/octavo-folder-XXXXXX";

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
    return rmdir(folder);
}

/* Makes, or removes again, files of these names, separated by blanks. */
static void each_file(const char *names, bool make) {
    char list[512];
    snprintf(list, sizeof(list), "%s", names);
    for (char *rest = list, *name; (name = strtok_r(rest, " ", &rest)) != NULL;) {
        if (make) {
            assert_true(safetensors_save_bytes(path_of(name), "{}", 2));
        } else {
            assert_int_equal(remove(path_of(name)), 0);
        }
    }
}

/* Of a folder with these files, this is the weights' file. */
static void chosen(const char *names, const char *weights, bool sharded) {
    octavo_hf_folder found = {0};
    octavo_error error = {0};
    each_file(names, true);
    if (octavo_hf_folder_read(folder, &found, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    assert_string_equal(found.path, folder);
    assert_string_equal(found.config, path_of("config.json"));
    assert_string_equal(found.weights, path_of(weights));
    assert_true(found.sharded == sharded);
    octavo_hf_folder_deinit(&found);
    assert_null(found.path);
    each_file(names, false);
}

static void refused(const char *names, octavo_status expected, const char *text) {
    octavo_hf_folder found = {0};
    octavo_error error = {0};
    each_file(names, true);
    octavo_status status = octavo_hf_folder_read(folder, &found, &error);
    bad_file_refused(status, &error, expected, text);
    bad_file_refused(status, &error, expected, folder);
    assert_null(found.path);
    each_file(names, false);
}

static void test_weights(void **unused) {
    (void)unused;
    chosen("config.json model.safetensors", "model.safetensors", false);
    chosen("config.json other.safetensors", "other.safetensors", false);
    chosen("config.json other.safetensors model.safetensors z.safetensors.index.json",
           "model.safetensors", false);
    chosen("config.json model.safetensors.index.json m-1.safetensors m-2.safetensors",
           "model.safetensors.index.json", true);
    chosen("config.json model.safetensors.index.json model.safetensors", "model.safetensors",
           false);
    chosen("config.json x.safetensors.index.json x-1.safetensors", "x.safetensors.index.json",
           true);
    chosen("config.json model.safetensors pytorch_model.bin m.gguf", "model.safetensors", false);
}

static void test_other_files(void **unused) {
    (void)unused;
    static const char names[] = "config.json model.safetensors tokenizer.json "
                                "tokenizer_config.json generation_config.json chat_template.jinja";
    octavo_hf_folder found = {0};
    each_file("config.json model.safetensors", true);
    assert_int_equal(octavo_hf_folder_read(folder, &found, NULL), OCTAVO_OK);
    assert_null(found.tokenizer);
    assert_null(found.tokenizer_config);
    assert_null(found.generation_config);
    assert_null(found.chat_template);
    octavo_hf_folder_deinit(&found);
    octavo_hf_folder_deinit(&found);

    each_file(names, true);
    char path[300]; /* a slash at the end is not doubled */
    snprintf(path, sizeof(path), "%s/", folder);
    assert_int_equal(octavo_hf_folder_read(path, &found, NULL), OCTAVO_OK);
    assert_string_equal(found.config, path_of("config.json"));
    assert_string_equal(found.tokenizer, path_of("tokenizer.json"));
    assert_string_equal(found.tokenizer_config, path_of("tokenizer_config.json"));
    assert_string_equal(found.generation_config, path_of("generation_config.json"));
    assert_string_equal(found.chat_template, path_of("chat_template.jinja"));
    octavo_hf_folder_deinit(&found);
    each_file(names, false);
}

static void test_refusals(void **unused) {
    (void)unused;
    refused("", OCTAVO_ERROR_NOT_FOUND, "it has no config.json; fetch it");
    refused("model.safetensors", OCTAVO_ERROR_NOT_FOUND, "it has no config.json; fetch it");
    refused("m.gguf", OCTAVO_ERROR_NOT_FOUND, "it has no config.json; give its .gguf file");
    refused("config.json", OCTAVO_ERROR_NOT_FOUND,
            "it has no model.safetensors, no model.safetensors.index.json and no other "
            "*.safetensors; fetch the weights");
    refused("config.json pytorch_model.bin", OCTAVO_ERROR_NOT_FOUND, "convert them to safetensors");
    refused("config.json m.gguf", OCTAVO_ERROR_NOT_FOUND, "give its .gguf file instead");
    refused("config.json .safetensors", OCTAVO_ERROR_NOT_FOUND, "no other *.safetensors");
    refused("config.json c.safetensors a.safetensors b.safetensors", OCTAVO_ERROR_INVALID,
            "it has 3 *.safetensors, such as a.safetensors and b.safetensors, and no index; fetch "
            "model.safetensors.index.json");
    refused("config.json c.safetensors.index.json b.safetensors.index.json", OCTAVO_ERROR_INVALID,
            "it has 2 indexes, such as b.safetensors.index.json and c.safetensors.index.json");

    octavo_hf_folder found = {0};
    octavo_error error = {0};
    assert_int_equal(octavo_hf_folder_read(path_of("absent"), &found, &error),
                     OCTAVO_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "/absent): it does not exist"));
    each_file("config.json", true);
    assert_int_equal(octavo_hf_folder_read(path_of("config.json"), &found, &error),
                     OCTAVO_ERROR_IO);
    assert_non_null(strstr(error.message, "/config.json): it is no folder"));
    each_file("config.json", false);
}

/* A name with control characters is no file of ours, and is in no message. */
static void test_control_characters(void **unused) {
    (void)unused;
    each_file("config.json a\033[2J.safetensors model\n.safetensors", true);
    octavo_hf_folder found = {0};
    octavo_error error = {0};
    assert_int_equal(octavo_hf_folder_read(folder, &found, &error), OCTAVO_ERROR_NOT_FOUND);
    assert_null(strchr(error.message, '\033'));
    each_file("config.json a\033[2J.safetensors model\n.safetensors", false);
}

/* -- paths and JSON --------------------------------------------------------------------------- */

static void check_path(char *path, const char *expected) {
    assert_string_equal(path, expected);
    octavo_free(path);
}

static void test_paths(void **unused) {
    (void)unused;
    check_path(octavo_hf_path_in("a/b", "c"), "a/b/c");
    check_path(octavo_hf_path_in("/", "c"), "/c");
    check_path(octavo_hf_path_in("", "c"), "c");
    check_path(octavo_hf_path_beside("a/b", "c"), "a/c");
    check_path(octavo_hf_path_beside("/b", "c"), "/c");
    check_path(octavo_hf_path_beside("b", "c"), "c");
    check_path(octavo_hf_path_beside("a/", "c"), "a/c");
}

static void check_json(const char *text, const char *message) {
    json_t *root = NULL;
    octavo_error error = {0};
    assert_true(safetensors_save_bytes(path_of("config.json"), text, strlen(text)));
    octavo_status status = octavo_hf_json_read(path_of("config.json"), &root, &error);
    if (message == NULL) {
        if (status != OCTAVO_OK) fail_msg("%s", error.message);
        assert_int_equal(json_integer_value(json_object_get(root, "a")), 7);
    } else {
        bad_file_refused(status, &error, OCTAVO_ERROR_FORMAT, message);
        assert_null(root);
    }
    json_decref(root);
}

static void test_json(void **unused) {
    (void)unused;
    check_json("{\"a\": 7, \"b\": [1.5, null]}\n", NULL);
    check_json("", "/config.json): the file is empty");
    check_json("[7]", "/config.json): it is no JSON object");
    check_json("{\"a\": 7,\n \"a\": 7}", "/config.json): line 2 is no legal JSON: duplicate");
    check_json("{\"a\": NaN}", "/config.json): line 1 is no legal JSON");
    each_file("config.json", false);
    json_t *root = NULL;
    octavo_error error = {0};
    assert_int_equal(octavo_hf_json_read(path_of("config.json"), &root, &error),
                     OCTAVO_ERROR_NOT_FOUND);
    assert_int_equal(octavo_hf_json_read(folder, &root, &error), OCTAVO_ERROR_IO);
    assert_null(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),  cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_paths),    cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
