/* SPDX-License-Identifier: Apache-2.0
 *
 * A step allocates nothing: calls of the C library's allocation functions from our own objects go
 * to ones that count. What a shared library allocates inside itself is not seen; a step calls only
 * the C library's mathematics and threads.
 */
#include "../unit.h"
#include "tiny_model.h"

#include "octavo/embed.h"
#include "octavo/model.h"
#include "octavo/sampler.h"

#include <stdatomic.h>

static atomic_long n_calls;
static atomic_bool is_counting;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
int __real_posix_memalign(void **p, size_t align, size_t bytes);
void __real_free(void *p);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
int __wrap_posix_memalign(void **p, size_t align, size_t bytes);
void __wrap_free(void *p);

static void count(void) {
    if (atomic_load(&is_counting)) atomic_fetch_add(&n_calls, 1);
}

void *__wrap_malloc(size_t bytes) {
    count();
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes) {
    count();
    return __real_calloc(n, bytes);
}

void *__wrap_realloc(void *p, size_t bytes) {
    count();
    return __real_realloc(p, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes) {
    count();
    return __real_aligned_alloc(align, bytes);
}

int __wrap_posix_memalign(void **p, size_t align, size_t bytes) {
    count();
    return __real_posix_memalign(p, align, bytes);
}

void __wrap_free(void *p) {
    count();
    __real_free(p);
}

static void must(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
}

static void check_step(const char *architecture, int n_experts, int kv_dtype) {
    char path[64];
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_sequence *a = NULL, *b = NULL;
    octavo_sampler *sampler = NULL;
    octavo_sampling sampling;
    octavo_error error;
    int32_t ids[200];
    static float logits[TINY_VOCAB];
    tiny_model_write(&(tiny_options){.architecture = architecture,
                                     .n_layers = 2,
                                     .context = 512,
                                     .types = tiny_all_types,
                                     .n_types = OCTAVO_COUNT(tiny_all_types),
                                     .n_experts = n_experts},
                     path);
    octavo_model_options_init(&options);
    options.threads = 2;
    options.chunk = 128;
    options.kv_dtype = kv_dtype;
    must(octavo_model_open(path, &options, &model, &error), &error);
    must(octavo_sequence_create(model, &a, &error), &error);
    must(octavo_sequence_create(model, &b, &error), &error);
    octavo_sampling_init(&sampling);
    sampling.temperature = 1.0f;
    sampling.top_p = 0.9f;
    sampling.repeat_penalty = 1.1f;
    must(octavo_sampler_create(&sampling, TINY_VOCAB, &sampler, &error), &error);
    for (int i = 0; i < 200; i++)
        ids[i] = i % TINY_VOCAB;

    /* The counters work: this is seen. */
    atomic_store(&is_counting, true);
    void *volatile seen = malloc(1);
    free(seen);
    assert_int_equal(atomic_load(&n_calls), 2);
    atomic_store(&n_calls, 0);

    must(octavo_sequence_feed(a, ids, 200, OCTAVO_LOGITS_LAST, logits, NULL, &error), &error);
    for (int i = 0; i < 20; i++) {
        int32_t next = octavo_sampler_next(sampler, logits, ids, 200);
        octavo_step_input inputs[] = {
            {.sequence = a, .ids = &next, .n_ids = 1, .want = OCTAVO_LOGITS_LAST, .logits = logits},
            {.sequence = b, .ids = ids, .n_ids = 3},
        };
        must(octavo_model_step(model, inputs, 2, &error), &error);
    }
    octavo_sequence_truncate(b, 5);
    atomic_store(&is_counting, false);
    assert_int_equal(atomic_load(&n_calls), 0);

    octavo_sampler_destroy(&sampler);
    octavo_sequence_destroy(&a);
    octavo_sequence_destroy(&b);
    octavo_model_close(&model);
    unlink(path);
}

/* Neither do states, traces and poolings. */
static void test_embedding_allocates_nothing(void **state) {
    static const char *const paths[] = {TEST_DATA "/models/bert", TEST_DATA "/models/llama_tied"};
    static float rows[150 * 64], trace[8 * 64], vectors[2][64];
    int32_t ids[150];
    (void)state;
    for (int i = 0; i < 150; i++)
        ids[i] = i;
    for (size_t i = 0; i < 2; i++) {
        octavo_model_options options;
        octavo_model *model = NULL;
        octavo_embedder *embedder = NULL;
        octavo_embedder_options how;
        octavo_sequence *sequence = NULL;
        octavo_error error;
        octavo_model_options_init(&options);
        options.threads = 2;
        options.chunk = 64;
        octavo_embedder_options_init(&how);
        how.pooling = OCTAVO_POOLING_MEAN;
        must(octavo_model_open(paths[i], &options, &model, &error), &error);
        must(octavo_embedder_create(model, &how, &embedder, &error), &error);
        must(octavo_sequence_create(model, &sequence, &error), &error);
        assert_in_range(octavo_model_describe(model).width, 1, 64);
        const octavo_embed_text texts[] = {{.ids = ids, .n_ids = 150, .out = vectors[0]},
                                           {.ids = ids, .n_ids = 20, .out = vectors[1]}};
        const octavo_step_input input = {.sequence = sequence,
                                         .ids = ids,
                                         .n_ids = 50,
                                         .want = OCTAVO_LOGITS_ALL,
                                         .hidden = rows,
                                         .trace = trace};
        atomic_store(&n_calls, 0);
        atomic_store(&is_counting, true);
        must(octavo_embedder_run(embedder, texts, 2, &error), &error);
        must(octavo_model_step(model, &input, 1, &error), &error);
        atomic_store(&is_counting, false);
        assert_int_equal(atomic_load(&n_calls), 0);
        octavo_sequence_destroy(&sequence);
        octavo_embedder_destroy(&embedder);
        octavo_model_close(&model);
    }
}

static void test_step_allocates_nothing(void **state) {
    (void)state;
    check_step("gemma3", 0, OCTAVO_KV_DTYPE_AUTO);
    check_step("gpt-oss", 5, OCTAVO_KV_DTYPE_AUTO);
    check_step("gpt-oss", 5, OCTAVO_DTYPE_FP8_E4M3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_step_allocates_nothing),
                                       cmocka_unit_test(test_embedding_allocates_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
