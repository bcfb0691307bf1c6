/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the checkpoints of the folder models in $OCTAVO_ORACLE, and compares what their headers say
 * with what their config.json says. Skipped without it.
 */
#include "../unit.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "formats/hf_folder.h"
#include "formats/hf_folder_file.h"
#include "safetensors_walk.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>

enum { SKIPPED = 77 };

/* The size of the embeddings follows from the configuration: [vocab_size, hidden_size]. */
static void check_embeddings(const octavo_safetensors *safetensors, const char *config) {
    json_t *root = NULL;
    octavo_error error = {0};
    if (octavo_hf_json_read(config, &root, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    const json_t *text = json_object_get(root, "text_config");
    if (text == NULL) text = root;
    json_int_t vocabulary = json_integer_value(json_object_get(text, "vocab_size"));
    json_int_t hidden = json_integer_value(json_object_get(text, "hidden_size"));
    assert_true(vocabulary > 0 && hidden > 0);
    size_t n_found = 0;
    for (size_t i = 0; i < octavo_safetensors_n_tensors(safetensors); i++) {
        const octavo_safetensors_tensor *tensor = octavo_safetensors_tensor_at(safetensors, i);
        if (strstr(tensor->name, "embed_tokens.weight") == NULL &&
            strstr(tensor->name, "embed_in.weight") == NULL &&
            strstr(tensor->name, "word_embeddings.weight") == NULL) {
            continue;
        }
        n_found++;
        assert_int_equal(tensor->n_dims, 2);
        assert_int_equal(tensor->extent[0], vocabulary);
        assert_int_equal(tensor->extent[1], hidden);
    }
    assert_int_equal(n_found, 1);
    json_decref(root);
}

/* Seeded weights are small: a wrong offset or type would show as large or not finite. */
static void check_values(const octavo_safetensors *safetensors) {
    for (size_t i = 0; i < octavo_safetensors_n_tensors(safetensors); i++) {
        const octavo_safetensors_tensor *tensor = octavo_safetensors_tensor_at(safetensors, i);
        if (tensor->dtype != OCTAVO_SAFETENSORS_F32 && tensor->dtype != OCTAVO_SAFETENSORS_BF16) {
            continue;
        }
        for (uint64_t k = 0; k < tensor->n_values; k++) {
            const octavo_safetensors_scale as_scale = {.tensor = tensor};
            float value = octavo_safetensors_scale_value(&as_scale, k);
            if (!isfinite(value) || fabsf(value) > 100.0f) {
                fail_msg("%s[%d] is %g", tensor->name, (int)k, (double)value);
            }
        }
    }
}

static void check_model(const char *path) {
    octavo_hf_folder folder = {0};
    octavo_safetensors *safetensors = NULL;
    octavo_error error = {0};
    struct stat info;
    if (octavo_hf_folder_read(path, &folder, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    assert_int_equal(stat(folder.weights, &info), 0);
    double start = octavo_clock_seconds();
    if (octavo_safetensors_open(folder.weights, &safetensors, &error) != OCTAVO_OK) {
        fail_msg("%s", error.message);
    }
    double seconds = octavo_clock_seconds() - start;
    safetensors_walk(safetensors, (size_t)info.st_size);
    assert_string_equal(octavo_safetensors_metadata(safetensors, 0, "format"), "pt");
    check_embeddings(safetensors, folder.config);
    check_values(safetensors);
    print_message("%s: %zu tensors, opened in %.2f ms\n", path,
                  octavo_safetensors_n_tensors(safetensors), seconds * 1e3);
    octavo_safetensors_close(&safetensors);
    octavo_hf_folder_deinit(&folder);
}

static void test_models(void **unused) {
    (void)unused;
    char *models = octavo_hf_path_in(getenv("OCTAVO_ORACLE"), "models");
    assert_non_null(models);
    DIR *directory = opendir(models);
    assert_non_null(directory);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        octavo_buffer config = {0};
        octavo_buffer_printf(&config, "%s/%s/config.json", models, entry->d_name);
        assert_false(config.failed);
        struct stat info;
        if (stat(config.data, &info) == 0) {
            *strrchr(config.data, '/') = 0;
            check_model(config.data);
            count++;
        }
        octavo_buffer_deinit(&config);
    }
    (void)closedir(directory);
    octavo_free(models);
    assert_true(count > 0);
}

int main(void) {
    if (getenv("OCTAVO_ORACLE") == NULL) return SKIPPED;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
