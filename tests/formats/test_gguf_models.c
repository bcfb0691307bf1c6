/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens models from outside the repository: *.gguf in the folder $OCTAVO_MODELS, and in gguf and
 * tokenizers_real of the folder $OCTAVO_ORACLE. Skipped without either.
 */
#include "../unit.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "gguf_walk.h"

#include <dirent.h>
#include <sys/stat.h>

enum { SKIPPED = 77 };

static void check_model(const char *path) {
    octavo_gguf *gguf = NULL;
    octavo_error error = {0};
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    double start = octavo_clock_seconds();
    if (octavo_gguf_open(path, &gguf, &error) != OCTAVO_OK) fail_msg("%s", error.message);
    double seconds = octavo_clock_seconds() - start;
    octavo_gguf_string architecture = {0};
    assert_int_equal(octavo_gguf_get_string(gguf, "general.architecture", &architecture, &error),
                     OCTAVO_OK);
    octavo_gguf_array tokens = {0};
    assert_int_equal(octavo_gguf_get_strings(gguf, "tokenizer.ggml.tokens", &tokens, &error),
                     OCTAVO_OK);
    assert_true(tokens.count > 0);
    gguf_walk(gguf, (size_t)info.st_size);
    print_message("%s: %.*s, %zu tensors, %zu tokens, opened in %.2f ms\n", path,
                  (int)architecture.size, architecture.data, octavo_gguf_n_tensors(gguf),
                  tokens.count, seconds * 1e3);
    octavo_gguf_close(&gguf);
}

/* Number of models in the folder. */
static int check_folder(const char *folder) {
    DIR *directory = opendir(folder);
    if (directory == NULL) return 0;
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".gguf") != 0) continue;
        octavo_buffer path = {0};
        octavo_buffer_printf(&path, "%s/%s", folder, entry->d_name);
        assert_false(path.failed);
        check_model(path.data);
        octavo_buffer_deinit(&path);
        count++;
    }
    (void)closedir(directory);
    return count;
}

static void test_models(void **unused) {
    (void)unused;
    const char *models = getenv("OCTAVO_MODELS"), *oracle = getenv("OCTAVO_ORACLE");
    if (models != NULL) assert_true(check_folder(models) > 0);
    if (oracle == NULL) return;
    static const char *const below[] = {"gguf", "tokenizers_real"};
    for (size_t i = 0; i < OCTAVO_COUNT(below); i++) {
        octavo_buffer path = {0};
        octavo_buffer_printf(&path, "%s/%s", oracle, below[i]);
        assert_false(path.failed);
        assert_true(check_folder(path.data) > 0);
        octavo_buffer_deinit(&path);
    }
}

int main(void) {
    if (getenv("OCTAVO_MODELS") == NULL && getenv("OCTAVO_ORACLE") == NULL) return SKIPPED;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
