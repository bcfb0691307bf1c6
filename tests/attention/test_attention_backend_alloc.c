/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention object's calls allocate nothing, failed ones included, once its context has seen a
 * call of that size.
 */
#include "../unit.h"
#include "backend_world.h"

#include <stdatomic.h>

static atomic_long n_calls; /* any thread of a context may allocate */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);

void *__wrap_malloc(size_t bytes) {
    n_calls++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    n_calls++;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *p, size_t bytes) {
    n_calls++;
    return __real_realloc(p, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes) {
    n_calls++;
    return __real_aligned_alloc(align, bytes);
}

static backend_world w0; /* too large for a stack */

static void calls_allocate_nothing(void **state) {
    (void)state;
    backend_make(&w0);
    octavo_attention_backend *backend = backend_create(&w0);
    backend_bind(backend, w0.layer.name, &w0.kv_cache, w0.layout);
    assert_true(n_calls > 0); /* the counter counts */
    backend_forward(backend, &w0);
    const long before = n_calls;
    for (int i = 0; i < 10; i++) {
        backend_forward(backend, &w0);
        w0.layer.name = "another";
        octavo_error error;
        assert_int_equal(
            octavo_attention_backend_forward(backend, &w0.layer, &w0.given, &w0.metadata, &error),
            OCTAVO_ERROR_NOT_FOUND);
        w0.layer.name = "model.layers.3.attn";
    }
    assert_int_equal(n_calls, before);
    octavo_attention_backend_destroy(&backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, backend_context_make, backend_context_free);
}
