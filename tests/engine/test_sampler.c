/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit.h"

#include "octavo/sampler.h"

#include <math.h>
#include <string.h>

enum { VOCAB = 5 };

static octavo_sampler *make(const octavo_sampling *sampling, int32_t vocabulary) {
    octavo_sampler *sampler = NULL;
    octavo_error error;
    if (octavo_sampler_create(sampling, vocabulary, &sampler, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    return sampler;
}

/* How often each id is drawn over the positions 1..n. */
static void draw(const octavo_sampling *sampling, const float *logits, int n, int *counts) {
    octavo_sampler *sampler = make(sampling, VOCAB);
    memset(counts, 0, VOCAB * sizeof *counts);
    static int32_t long_history[20000];
    for (int i = 1; i <= n; i++)
        counts[octavo_sampler_next(sampler, logits, long_history, (size_t)i)]++;
    octavo_sampler_destroy(&sampler);
    assert_null(sampler);
}

static const float logits[VOCAB] = {0.0f, 2.0f, 1.0f, -1.0f, -INFINITY};

static void test_greedy(void **state) {
    (void)state;
    octavo_sampling s;
    octavo_sampling_init(&s);
    octavo_sampler *sampler = make(&s, VOCAB);
    const float equal[VOCAB] = {1.0f, 3.0f, 3.0f, NAN, 2.0f},
                none[VOCAB] = {-INFINITY, -INFINITY, NAN, NAN, NAN};
    assert_int_equal(octavo_sampler_next(sampler, logits, NULL, 0), 1);
    assert_int_equal(octavo_sampler_next(sampler, equal, NULL, 0), 1);
    assert_int_equal(octavo_sampler_next(sampler, none, NULL, 0), 0);
    octavo_sampler_destroy(&sampler);
}

/* Frequencies are the softmax's; an id at -inf is never drawn. */
static void test_distribution(void **state) {
    (void)state;
    octavo_sampling s;
    int counts[VOCAB];
    const int n = 20000;
    for (int t = 1; t <= 2; t++) {
        octavo_sampling_init(&s);
        s.temperature = (float)t;
        draw(&s, logits, n, counts);
        double sum = 0.0;
        for (int i = 0; i < VOCAB; i++)
            sum += exp((double)logits[i] / t);
        for (int i = 0; i < VOCAB; i++) {
            double p = exp((double)logits[i] / t) / sum;
            assert_true(fabs(counts[i] - n * p) <= 5.0 * sqrt(n * p * (1.0 - p)));
        }
        assert_int_equal(counts[4], 0);
    }
}

static void test_filters(void **state) {
    (void)state;
    octavo_sampling s;
    int counts[VOCAB];
    octavo_sampling_init(&s);
    s.temperature = 1.0f;
    s.top_k = 2;
    draw(&s, logits, 2000, counts);
    assert_true(counts[1] > 0 && counts[2] > 0 && counts[0] == 0 && counts[3] == 0);

    octavo_sampling_init(&s);
    s.temperature = 1.0f;
    s.top_p = 0.70f; /* p = 0.61, 0.22, 0.08, 0.03 of 1, 2, 0, 3 (rest of the softmax) */
    draw(&s, logits, 2000, counts);
    assert_true(counts[1] > 0 && counts[2] > 0 && counts[0] == 0 && counts[3] == 0);

    octavo_sampling_init(&s);
    s.temperature = 1.0f;
    s.min_p = 0.2f; /* exp(-1) = 0.37 stays, exp(-2) = 0.14 goes */
    draw(&s, logits, 2000, counts);
    assert_true(counts[1] > 0 && counts[2] > 0 && counts[0] == 0 && counts[3] == 0);
}

static void test_penalty(void **state) {
    (void)state;
    octavo_sampling s;
    octavo_sampling_init(&s);
    s.repeat_penalty = 4.0f;
    s.repeat_window = 2;
    octavo_sampler *sampler = make(&s, VOCAB);
    const int32_t recent[] = {0, 3, 1}, past[] = {1, 3, 3};
    assert_int_equal(octavo_sampler_next(sampler, logits, recent, 3), 2); /* 2 / 4 falls under 1 */
    assert_int_equal(octavo_sampler_next(sampler, logits, past, 3), 1);   /* out of the window */
    octavo_sampler_destroy(&sampler);
}

/* The seed and the position decide, nothing else: not what was drawn before. */
static void test_counter(void **state) {
    (void)state;
    octavo_sampling s;
    octavo_sampling_init(&s);
    s.temperature = 1.5f;
    s.seed = 42;
    int32_t history[64] = {0}, forward[64], differs = 0;
    octavo_sampler *a = make(&s, VOCAB), *b = make(&s, VOCAB);
    s.seed = 43;
    octavo_sampler *c = make(&s, VOCAB);
    for (int i = 0; i < 64; i++)
        forward[i] = octavo_sampler_next(a, logits, history, (size_t)i);
    for (int i = 63; i >= 0; i--) {
        assert_int_equal(octavo_sampler_next(b, logits, history, (size_t)i), forward[i]);
        differs += octavo_sampler_next(c, logits, history, (size_t)i) != forward[i];
    }
    assert_true(differs > 5);
    octavo_sampler_destroy(&a);
    octavo_sampler_destroy(&b);
    octavo_sampler_destroy(&c);
}

/* top-p over a large vocabulary: the quick path (sort a few) and the whole sort agree on what is
 * kept. */
static void test_large_vocabulary(void **state) {
    (void)state;
    enum { LARGE = 3000 };
    static float flat[LARGE];
    octavo_sampling s;
    octavo_sampling_init(&s);
    s.temperature = 1.0f;
    s.top_p = 0.5f;
    for (int i = 0; i < LARGE; i++)
        flat[i] = -(float)((i * 7919) % LARGE) * 0.001f;
    double sum = 0.0, reached = 0.0;
    for (int rank = 0; rank < LARGE; rank++)
        sum += exp(-rank * 0.001);
    int kept = 0;
    while (reached < 0.5 * sum)
        reached += exp(-kept++ * 0.001);
    octavo_sampler *sampler = make(&s, LARGE);
    int largest = 0;
    static int32_t history[5000];
    for (int i = 0; i < 5000; i++) {
        int32_t id = octavo_sampler_next(sampler, flat, history, (size_t)i);
        int rank = (id * 7919) % LARGE;
        assert_true(rank < kept + 1);
        if (rank > largest) largest = rank;
    }
    assert_true(largest > kept * 9 / 10);
    octavo_sampler_destroy(&sampler);
}

static void test_logprobs(void **state) {
    (void)state;
    int32_t ids[4];
    float logprobs[4];
    double sum = 0.0;
    octavo_logprobs_top(logits, VOCAB, 4, ids, logprobs);
    const int32_t want[] = {1, 2, 0, 3};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ids[i], want[i]);
        assert_true(fabs((double)logprobs[i] - octavo_logprob_of(logits, VOCAB, ids[i])) < 1e-6);
        sum += exp((double)logprobs[i]);
    }
    assert_true(fabs(sum - 1.0) < 1e-6);
}

static void test_bad_values(void **state) {
    (void)state;
    octavo_sampling bad[7];
    octavo_sampler *sampler = NULL;
    octavo_error error;
    for (int i = 0; i < 7; i++)
        octavo_sampling_init(&bad[i]);
    bad[0].temperature = -1.0f;
    bad[1].temperature = NAN;
    bad[2].top_p = 0.0f;
    bad[3].min_p = 1.5f;
    bad[4].top_k = -1;
    bad[5].repeat_penalty = 0.0f;
    bad[6].size = 3;
    for (int i = 0; i < 7; i++) {
        assert_int_equal(octavo_sampler_create(&bad[i], VOCAB, &sampler, &error),
                         OCTAVO_ERROR_INVALID);
        assert_null(sampler);
        assert_non_null(strstr(error.message, "give"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),   cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_filters),  cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_counter),  cmocka_unit_test(test_large_vocabulary),
        cmocka_unit_test(test_logprobs), cmocka_unit_test(test_bad_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
