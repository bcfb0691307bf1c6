/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that runs out at any point of writing a folder as GGUF, or of requantising it at load, is
 * an error and nothing worse. Guards against a writer that looked at what it had no memory for.
 */
#include "../unit.h"

#include "octavo/model.h"
#include "octavo/quantize.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long n_calls;
static long fails_at; /* this call, from 1; 0: none */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
int __real_posix_memalign(void **p, size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
int __wrap_posix_memalign(void **p, size_t align, size_t bytes);

static bool fails(void) {
    return atomic_fetch_add(&n_calls, 1) + 1 == fails_at;
}

void *__wrap_malloc(size_t bytes) {
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes) {
    return fails() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *p, size_t bytes) {
    return fails() ? NULL : __real_realloc(p, bytes);
}

int __wrap_posix_memalign(void **p, size_t align, size_t bytes) {
    return fails() ? ENOMEM : __real_posix_memalign(p, align, bytes);
}

static char out[] = "/tmp/octavo-alloc-XXXXXX";

static octavo_status write_gguf(const char *path, octavo_error *error) {
    octavo_quantize_options options;
    octavo_quantize_options_init(&options);
    options.type = "Q8_0";
    options.threads = 1;
    return octavo_quantize(path, out, &options, NULL, error);
}

static octavo_status load_as_q4(const char *path, octavo_error *error) {
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_model_options_init(&options);
    options.threads = 1;
    options.weights = OCTAVO_WEIGHTS_Q4;
    octavo_status status = octavo_model_open(path, &options, &model, error);
    octavo_model_close(&model);
    return status;
}

static void check(octavo_status (*work)(const char *path, octavo_error *error), const char *name) {
    char path[300];
    octavo_error error;
    int n_failed = 0;
    snprintf(path, sizeof path, TEST_DATA "/models/%s", name);
    fails_at = 0;
    atomic_store(&n_calls, 0);
    octavo_status status = work(path, &error);
    const long n = atomic_load(&n_calls);
    assert_int_equal(status, OCTAVO_OK);
    for (long i = 1; i <= n; i++) {
        atomic_store(&n_calls, 0);
        fails_at = i;
        status = work(path, &error);
        fails_at = 0;
        if (status != OCTAVO_OK && status != OCTAVO_ERROR_MEMORY)
            fail_msg("%s, allocation %ld of %ld: status %d, \"%s\"", name, i, n, status,
                     error.message);
        n_failed += status != OCTAVO_OK;
    }
    assert_true(n_failed > n / 2); /* some can be done without, and most cannot */
}

static void test_write(void **state) {
    (void)state;
    check(write_gguf, "qwen2_moe");
    check(write_gguf, "llama_gptq4_order");
    check(write_gguf, "deepseek_v2");
}

static void test_load(void **state) {
    (void)state;
    check(load_as_q4, "qwen2_moe");
    check(load_as_q4, "llama_f8_blocks");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_write), cmocka_unit_test(test_load)};
    const int fd = mkstemp(out);
    if (fd < 0 || close(fd) != 0) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(out);
    return failed;
}
