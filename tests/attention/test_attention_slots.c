/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches whose slots keep the scales of their keys and values: the result is that of the numbers
 * which the slots stand for, the same bits however a text is cut, wherever it lies and whoever
 * computes; and what is not finite shows.
 */
#include "../unit.h"
#include "attention/attention.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/thread.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { N = 90, HQ = 6, HKV = 2, D = 40, WINDOW = 70, MOST_PAGES = N + 7 };

typedef struct setting {
    octavo_dtype dtype;
    octavo_kv_layout layout;
    bool value_in_key;
    int page_size, chunk, threads;
    const char *isa;
} setting;

typedef struct text {
    float queries[N * HQ * D], keys[N * HKV * D], values[N * HKV * D];
} text;

static const float sink[HQ] = {0.5f, -1.0f, 0.0f, 2.0f, -3.0f, 1.0f};

static int value_dim(const setting *s) {
    return s->value_in_key ? D - 8 : D;
}

/* Rows of very different size, as keys have them. */
static void make_text(text *t) {
    uint32_t state = 5;
    for (int i = 0; i < N * HKV * D; i++) {
        state = state * 1664525u + 1013904223u;
        const float size = ldexpf(1.0f, i / D % 13 - 6), x = (float)(state >> 8) / 8388608.0f - 1;
        t->keys[i] = size * x * 0.3f;
        state = state * 1664525u + 1013904223u;
        t->values[i] = ((float)(state >> 8) / 8388608.0f - 1.0f) * (float)(1 + i / D % 5);
    }
    for (int i = 0; i < N * HQ * D; i++) {
        state = state * 1664525u + 1013904223u;
        t->queries[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    memset(t->keys + 17 * HKV * D, 0, D * sizeof(float)); /* of head 0 */
    memset(t->values + 18 * HKV * D, 0, D * sizeof(float));
    for (int i = 0; i < D; i++)
        t->keys[(19 * HKV + 1) * D + i] *= 0x1p-140f;
}

typedef struct job {
    octavo_attention_plan plan;
    octavo_attention_kernels kernels;
    octavo_attention_op op;
    octavo_pool *pool;
    void *workspace;
} job;

static void run(void *arg, int thread, int n_threads) {
    job *j = arg;
    octavo_attention_update(&j->plan, &j->kernels, &j->op, thread, n_threads);
    octavo_pool_barrier(j->pool, thread);
    octavo_attention_attend(&j->plan, &j->kernels, &j->op, j->workspace, thread);
    octavo_pool_barrier(j->pool, thread);
    octavo_attention_merge(&j->plan, &j->kernels, &j->op, j->workspace, thread, n_threads);
}

/* out [N, HQ, value_dim]: the text in chunks, one after another. */
static void attend(text *t, const setting *s, float *out) {
    const octavo_attention_limits limits = {.heads = {HQ, HKV, D, value_dim(s), 0, 0},
                                            .max_tokens = s->chunk,
                                            .max_seqs = 1,
                                            .n_threads = s->threads};
    octavo_cpu_flags flags;
    octavo_error error;
    job j = {.pool = NULL};
    assert_int_equal(octavo_cpu_select(s->isa, &flags, &error), OCTAVO_OK);
    octavo_attention_kernels_init(&j.kernels, flags);
    assert_int_equal(octavo_pool_create(&j.pool, s->threads, false, &error), OCTAVO_OK);
    void *memory = octavo_alloc_aligned(octavo_attention_plan_bytes(&limits));
    j.workspace = octavo_alloc_aligned(octavo_attention_workspace_bytes(&limits));
    octavo_attention_op_init(&j.op, &limits.heads, s->dtype, s->layout, s->page_size);
    j.op.slot_scales = true;
    j.op.value_in_key = s->value_in_key;
    j.op.page_stride = octavo_attention_page_stride(&j.op, &limits.heads, s->page_size);
    const size_t bytes = (size_t)(MOST_PAGES * j.op.page_stride);
    uint8_t *cache = octavo_alloc_aligned(bytes);
    assert_true(memory && j.workspace && cache && j.op.page_stride > 0);
    memset(cache, 0xff, bytes); /* NaN wherever nobody writes */
    int32_t table[MOST_PAGES], kv_len, starts[2] = {0, 0};
    for (int i = 0; i < MOST_PAGES; i++)
        table[i] = MOST_PAGES - 1 - i;
    j.op.kv_cache = cache;
    j.op.scale = 0.4f;
    j.op.mask.window = WINDOW;
    j.op.sink = sink;
    for (int done = 0; done < N; done += starts[1]) {
        starts[1] = N - done < s->chunk ? N - done : s->chunk;
        kv_len = done + starts[1];
        const octavo_attention_batch batch = {.n_tokens = starts[1],
                                              .n_seqs = 1,
                                              .page_size = s->page_size,
                                              .pages_per_seq = MOST_PAGES,
                                              .kv_lens = &kv_len,
                                              .query_start_loc = starts,
                                              .block_tables = table};
        octavo_attention_plan_make(&j.plan, &limits, &batch, j.op.mask, memory);
        j.op.queries = t->queries + done * HQ * D;
        j.op.keys = t->keys + done * HKV * D;
        j.op.values = t->values + done * HKV * D;
        j.op.output = out + done * HQ * value_dim(s);
        octavo_pool_run(j.pool, run, &j);
    }
    octavo_pool_destroy(&j.pool);
    octavo_free_aligned(memory);
    octavo_free_aligned(j.workspace);
    octavo_free_aligned(cache);
}

/* ---- in double precision ---- */

/* The number that a slot has for x, in a row whose largest magnitude is top. */
static double kept(double x, double top, octavo_dtype dtype) {
    const float largest = dtype == OCTAVO_DTYPE_INT8       ? 127.0f
                          : dtype == OCTAVO_DTYPE_FP8_E4M3 ? 448.0f
                                                           : 57344.0f;
    const float scale = fmaxf((float)top / largest, FLT_MIN), y = (float)x / scale;
    if (dtype == OCTAVO_DTYPE_INT8) return (double)rintf(y) * (double)scale;
    if (dtype == OCTAVO_DTYPE_FP8_E4M3)
        return (double)octavo_fp8_e4m3_to_f32(octavo_f32_to_fp8_e4m3(y)) * (double)scale;
    return (double)octavo_fp8_e5m2_to_f32(octavo_f32_to_fp8_e5m2(y)) * (double)scale;
}

static void keep_rows(const float *rows, octavo_dtype dtype, double *to) {
    for (int r = 0; r < N * HKV; r++) {
        double top = 0.0;
        for (int i = 0; i < D; i++)
            top = fmax(top, fabs((double)rows[r * D + i]));
        for (int i = 0; i < D; i++)
            to[r * D + i] = kept((double)rows[r * D + i], top, dtype);
    }
}

static void check_row(const text *t, const setting *s, const double *keys, const double *values,
                      int token, int head, const float *got) {
    const double *row = s->value_in_key ? keys : values;
    double weights[N], most = (double)sink[head], sum, want[D] = {0}, size[D] = {0};
    const int first = token < WINDOW ? 0 : token - WINDOW + 1, kv = head / (HQ / HKV);
    for (int p = first; p <= token; p++) {
        weights[p] = 0.0;
        for (int i = 0; i < D; i++)
            weights[p] += (double)t->queries[(token * HQ + head) * D + i] *
                          keys[(p * HKV + kv) * D + i] * (double)0.4f;
        most = fmax(most, weights[p]);
    }
    sum = exp((double)sink[head] - most);
    for (int p = first; p <= token; p++) {
        weights[p] = exp(weights[p] - most);
        sum += weights[p];
        for (int i = 0; i < value_dim(s); i++) {
            const double x = weights[p] * row[(p * HKV + kv) * D + i];
            want[i] += x;
            size[i] += fabs(x);
        }
    }
    for (int i = 0; i < value_dim(s); i++) {
        if (fabs((double)got[i] - want[i] / sum) <= 3e-5 * size[i] / sum + 1e-30) continue;
        fail_msg("%s: token %d, head %d, lane %d: %g instead of %g", octavo_dtype_name(s->dtype),
                 token, head, i, (double)got[i], want[i] / sum);
    }
}

static void check_numbers(const text *t, const setting *s, const float *got) {
    static double keys[N * HKV * D], values[N * HKV * D];
    keep_rows(t->keys, s->dtype, keys);
    keep_rows(t->values, s->dtype, values);
    for (int token = 0; token < N; token++) {
        for (int head = 0; head < HQ; head++)
            check_row(t, s, keys, values, token, head,
                      got + (token * HQ + head) * (int64_t)value_dim(s));
    }
}

/* ---- tests ---- */

static const octavo_dtype dtypes[] = {OCTAVO_DTYPE_FP8_E4M3, OCTAVO_DTYPE_FP8_E5M2,
                                      OCTAVO_DTYPE_INT8};

static void check_settings(text *t, setting base) {
    static const setting others[] = {
        {.page_size = 16, .chunk = 1, .threads = 1},  {.page_size = 1, .chunk = 40, .threads = 2},
        {.page_size = 5, .chunk = 7, .threads = 3},   {.page_size = 64, .chunk = N, .threads = 2},
        {.page_size = 24, .chunk = 33, .threads = 1},
    };
    static float want[N * HQ * D], got[N * HQ * D];
    const size_t bytes = sizeof(float) * N * HQ * (size_t)value_dim(&base);
    attend(t, &base, want);
    check_numbers(t, &base, want);
    for (size_t i = 0; i < 2 * sizeof others / sizeof *others; i++) {
        setting s = others[i / 2];
        s.dtype = base.dtype;
        s.isa = base.isa;
        s.value_in_key = base.value_in_key;
        s.layout = i % 2 && !s.value_in_key ? OCTAVO_KV_ROWS : OCTAVO_KV_COLUMNS;
        memset(got, 0xff, sizeof got);
        attend(t, &s, got);
        if (memcmp(got, want, bytes) != 0)
            fail_msg("%s, %s, layout %d, pages of %d, chunk %d, %d threads: other bits",
                     s.isa ? s.isa : "best", octavo_dtype_name(s.dtype), s.layout, s.page_size,
                     s.chunk, s.threads);
    }
}

static void numbers_and_bits_are_those_of_the_slots(void **state) {
    static text t;
    (void)state;
    make_text(&t);
    for (int i = 0; i < 12; i++)
        check_settings(&t, (setting){.dtype = dtypes[i % 3],
                                     .layout = OCTAVO_KV_COLUMNS,
                                     .value_in_key = i / 3 % 2,
                                     .page_size = 16,
                                     .chunk = N,
                                     .threads = 1,
                                     .isa = i / 6 ? "scalar" : NULL});
}

/* Whoever sees a row that is not finite gets NaN, and nobody else does. */
static void what_is_not_finite_shows(void **state) {
    static text t;
    static float out[N * HQ * D];
    (void)state;
    for (int i = 0; i < 12; i++) {
        const int token = 10 + i;
        const setting s = {.dtype = dtypes[i % 3],
                           .layout = i % 2 ? OCTAVO_KV_ROWS : OCTAVO_KV_COLUMNS,
                           .page_size = 16,
                           .chunk = 1 + 8 * i,
                           .threads = 2};
        make_text(&t);
        (i / 3 % 2 ? t.keys : t.values)[(token * HKV + 1) * D + 3] = i < 6 ? NAN : -INFINITY;
        attend(&t, &s, out);
        for (int r = 0; r < N * HQ; r++) {
            const int at = r / HQ, sees = at >= token && at < token + WINDOW && r % HQ >= HQ / HKV;
            for (int d = 0; d < D; d++)
                assert_int_equal(isnan(out[r * D + d]) != 0, sees);
        }
    }
}

static void pages_have_room_for_scales(void **state) {
    const octavo_attention_heads heads = {HQ, HKV, 64, 0, 0, 0};
    octavo_attention_op op;
    (void)state;
    octavo_attention_op_init(&op, &heads, OCTAVO_DTYPE_INT8, OCTAVO_KV_COLUMNS, 16);
    assert_int_equal(octavo_attention_page_stride(&op, &heads, 16), op.page_stride);
    op.slot_scales = true;
    assert_int_equal(octavo_attention_page_stride(&op, &heads, 16), HKV * 16 * (2 * 64 + 2 * 4));
    assert_int_equal(octavo_attention_page_stride(&op, &heads, INT64_MAX / 8), 0);
    octavo_attention_op_init(&op, &heads, OCTAVO_DTYPE_INT8, OCTAVO_KV_ROWS, 3);
    assert_int_equal(octavo_attention_page_stride(&op, &heads, 3), op.page_stride);
    op.slot_scales = true;
    assert_int_equal(octavo_attention_page_stride(&op, &heads, 3),
                     op.page_stride + 3 * HKV * 2 * 4);
    assert_int_equal(octavo_attention_page_stride(&op, &heads, INT64_MAX / 8), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_bits_are_those_of_the_slots),
        cmocka_unit_test(what_is_not_finite_shows),
        cmocka_unit_test(pages_have_room_for_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
