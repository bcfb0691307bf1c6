/* SPDX-License-Identifier: Apache-2.0
 *
 * Encoder-decoder attention: every query sees all keys of another sequence, which have rows of
 * their own when they are new and none afterwards.
 */
#include "../unit.h"
#include "rpa_case.h"
#include "rpa_context.h"
#include "rpa_stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEQS = 3, HQ = 4, HKV = 2, D = 24, PAGE = 8, ROW = 5, KEYS = 38, QUERIES = 7 };

/* Sequence 1 has queries and no keys at all; sequence 2 fewer queries than keys. */
static int32_t key_starts[SEQS + 1] = {0, 5, 5, KEYS};
static int32_t kv_lens[SEQS] = {5, 0, 33};
static int32_t query_starts[SEQS + 1] = {0, 2, 5, 6}; /* and a row of nobody */
static int32_t kinds[3] = {0, 0, SEQS};
static int32_t tables[SEQS * ROW] = {3, -1, -9, 99, 7, -1, -1, -1, -1, -1, 4, 0, 6, 2, 1};

typedef struct world {
    float queries[QUERIES * HQ * D];
    float keys[KEYS * HKV * D], values[KEYS * HKV * D];
    float sink[HQ];
    float output[QUERIES * HQ * D];
    _Alignas(64) float cache[8 * PAGE * 2 * HKV * 128];
    octavo_attention_args args;
} world;

static octavo_array indices(int32_t *data, int64_t n) {
    return octavo_array_dense(data, OCTAVO_DTYPE_I32, 1, &n);
}

static void fill(float *x, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rpa_random(&seed) / 8388608.0f - 1.0f;
}

static world *make_world(octavo_kv_layout layout, bool has_sink) {
    world *w = aligned_alloc(64, (sizeof *w + 63) / 64 * 64);
    assert_non_null(w);
    *w = (world){0};
    fill(w->queries, sizeof w->queries / sizeof(float), 1);
    fill(w->keys, sizeof w->keys / sizeof(float), 2);
    fill(w->values, sizeof w->values / sizeof(float), 3);
    fill(w->sink, HQ, 4);
    w->sink[1] = -INFINITY; /* as good as none */
    memset(w->cache, 0xff, sizeof w->cache);
    octavo_attention_args *args = &w->args;
    octavo_attention_args_init(args);
    const octavo_dtype f32 = OCTAVO_DTYPE_F32;
    args->queries = octavo_array_dense(w->queries, f32, 3, (int64_t[]){QUERIES, HQ, D});
    args->output = octavo_array_dense(w->output, f32, 3, (int64_t[]){QUERIES, HQ, D});
    args->keys = octavo_array_dense(w->keys, f32, 3, (int64_t[]){KEYS, HKV, D});
    args->values = octavo_array_dense(w->values, f32, 3, (int64_t[]){KEYS, HKV, D});
    args->layout = layout;
    args->kv_cache = octavo_array_dense(w->cache, f32, 5, (int64_t[]){8, PAGE, 2 * HKV, 1, 128});
    if (layout == OCTAVO_KV_COLUMNS) {
        args->page_size = PAGE;
        int64_t page = octavo_attention_page_elements(f32, PAGE, HKV, D, D, false);
        assert_true(page > 0 && (size_t)page * 8 * sizeof(float) <= sizeof w->cache);
        args->kv_cache = octavo_array_dense(w->cache, f32, 2, (int64_t[]){8, page});
    }
    args->kv_lens = indices(kv_lens, SEQS);
    args->block_tables = indices(tables, (int64_t)SEQS * ROW);
    args->query_start_loc = indices(query_starts, SEQS + 1);
    args->key_start_loc = indices(key_starts, SEQS + 1);
    args->distribution = indices(kinds, 3);
    args->type = OCTAVO_ATTENTION_ENCODER_DECODER;
    args->softmax_scale = 0.5;
    if (has_sink) args->attention_sink = octavo_array_dense(w->sink, f32, 1, (int64_t[]){HQ});
    return w;
}

static void run(octavo_attention_context *context, world *w) {
    octavo_error error;
    memset(w->output, 0xff, sizeof w->output);
    if (octavo_ragged_paged_attention(context, &w->args, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
}

static double dot(const float *a, const float *b) {
    double sum = 0.0;
    for (int i = 0; i < D; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void check_rows(const world *w, int seq, bool has_sink) {
    for (int t = query_starts[seq]; t < query_starts[seq + 1]; t++) {
        for (int a = 0; a < HQ; a++) {
            double row[D] = {0}, weights = has_sink ? exp((double)w->sink[a]) : 0.0;
            for (int j = key_starts[seq]; j < key_starts[seq] + kv_lens[seq]; j++) {
                const size_t key = (size_t)(j * HKV + a / (HQ / HKV)) * D;
                const double weight =
                    exp(0.5 * dot(w->queries + (size_t)(t * HQ + a) * D, w->keys + key));
                weights += weight;
                for (int i = 0; i < D; i++)
                    row[i] += weight * (double)w->values[key + (size_t)i];
            }
            for (int i = 0; i < D; i++) {
                const double want = weights > 0.0 ? row[i] / weights : 0.0;
                const double got = (double)w->output[(size_t)(t * HQ + a) * D + (size_t)i];
                if (!(fabs(got - want) <= 1e-5))
                    fail_msg("row %d head %d lane %d: %.9g, want %.9g", t, a, i, got, want);
            }
        }
    }
}

static void keys_come_from_another_sequence(void **state) {
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        for (int level = 0; rpa_level(level) != NULL; level++) {
            octavo_attention_context *context = rpa_context(rpa_level(level), 1 + level % 2);
            world *w = make_world(OCTAVO_KV_ROWS, turn == 1);
            run(context, w);
            for (int seq = 0; seq < SEQS; seq++)
                check_rows(w, seq, turn == 1);
            for (int i = 0; i < HQ * D; i++)
                assert_true(w->output[(QUERIES - 1) * HQ * D + i] == 0.0f);

            /* later steps have no new keys: the same rows from the cache, which stays as it is */
            float before[QUERIES * HQ * D];
            memcpy(before, w->output, sizeof before);
            float *cache = malloc(sizeof w->cache);
            assert_non_null(cache);
            memcpy(cache, w->cache, sizeof w->cache);
            memset(w->keys, 0xff, sizeof w->keys);
            w->args.key_start_loc = (octavo_array){0};
            run(context, w);
            assert_memory_equal(w->output, before, sizeof before);
            assert_memory_equal(w->cache, cache, sizeof w->cache);
            free(cache);
            free(w);
            octavo_attention_context_destroy(&context);
        }
    }
}

/* The keys of a long text may come in several calls, whose queries may be any. */
static void keys_may_come_in_pieces(void **state) {
    (void)state;
    octavo_attention_context *context = rpa_context(NULL, 2);
    world *whole = make_world(OCTAVO_KV_ROWS, false), *pieces = make_world(OCTAVO_KV_ROWS, false);
    run(context, whole);
    int32_t starts[SEQS + 1] = {0, 5, 5, 15}, lens[SEQS] = {5, 0, 10};
    pieces->args.key_start_loc = indices(starts, SEQS + 1);
    pieces->args.kv_lens = indices(lens, SEQS);
    run(context, pieces);
    int32_t rest[SEQS + 1] = {5, 5, 5, 5 + 23}; /* rows 15.. of the keys become rows 5.. */
    memmove(pieces->keys + (size_t)5 * HKV * D, pieces->keys + (size_t)15 * HKV * D,
            (size_t)23 * HKV * D * sizeof(float));
    memmove(pieces->values + (size_t)5 * HKV * D, pieces->values + (size_t)15 * HKV * D,
            (size_t)23 * HKV * D * sizeof(float));
    pieces->args.key_start_loc = indices(rest, SEQS + 1);
    pieces->args.kv_lens = indices(kv_lens, SEQS);
    run(context, pieces);
    assert_memory_equal(pieces->output, whole->output, sizeof whole->output);
    assert_memory_equal(pieces->cache, whole->cache, sizeof whole->cache);
    free(whole);
    free(pieces);
    octavo_attention_context_destroy(&context);
}

/* Which of two NaN an instruction keeps depends on the tile; the output has one. */
static void a_nan_is_one_and_the_same(void **state) {
    (void)state;
    for (int level = 0; rpa_level(level) != NULL; level++) {
        octavo_attention_context *context = rpa_context(rpa_level(level), 1);
        world *w = make_world(OCTAVO_KV_ROWS, false);
        const uint32_t nans[2] = {0xffc00155u, 0x7fc00aaau};
        for (int j = 0; j < 2; j++)
            memcpy(&w->values[j * HKV * D], &nans[j], sizeof(float));
        run(context, w);
        uint32_t got, other;
        const float nan = NAN;
        memcpy(&got, &w->output[0], sizeof got);
        memcpy(&other, &nan, sizeof other);
        assert_int_equal(got, other);
        free(w);
        octavo_attention_context_destroy(&context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nan_is_one_and_the_same),
        cmocka_unit_test(keys_come_from_another_sequence),
        cmocka_unit_test(keys_may_come_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
