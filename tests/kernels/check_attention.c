/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over one block: what kernels/attention.h promises of each entry.
 */
#include "base/number.h"
#include "kernels/attention.h"
#include "tester.h"

#include <math.h>
#include <string.h>

typedef struct pair {
    const octavo_attention_kernels *level;
    const octavo_attention_kernels *twin; /* has the same bits: AVX2 for AVX-512, else level */
    int type;                             /* of the entry that is checked */
    bool is_fused;                        /* multiplications with their additions */
} pair;

enum {
    F32,
    F16,
    BF16,
    FP8_E4M3,
    FP8_E5M2,
    INT8,
    BLOCK = OCTAVO_SOFTMAX_BLOCK,
    GROUP = OCTAVO_KEY_GROUP,
    FLOAT = sizeof(float)
};

#define ULP 0x1p-24 /* relative error of one rounding */
#define EXP 0x1p-21 /* of exp */

static const int widths[] = {1, 2, 7, 8, 16, 33, 64, 80, 120, 202, 512};

static size_t type_size(int type) {
    return type == F32 ? 4 : type <= BF16 ? 2 : 1;
}

static float value_of(const void *x, int64_t i, int type) {
    switch (type) {
    case F32:
        return ((const float *)x)[i];
    case F16:
        return octavo_f16_to_f32(((const uint16_t *)x)[i]);
    case BF16:
        return octavo_bf16_to_f32(((const uint16_t *)x)[i]);
    case FP8_E4M3:
        return octavo_fp8_e4m3_to_f32(((const uint8_t *)x)[i]);
    case FP8_E5M2:
        return octavo_fp8_e5m2_to_f32(((const uint8_t *)x)[i]);
    default:
        return ((const int8_t *)x)[i];
    }
}

static void put(void *x, int64_t i, int type, float value) {
    switch (type) {
    case F32:
        ((float *)x)[i] = value;
        break;
    case F16:
        ((uint16_t *)x)[i] = octavo_f32_to_f16(value);
        break;
    case BF16:
        ((uint16_t *)x)[i] = octavo_f32_to_bf16(value);
        break;
    case FP8_E4M3:
        ((uint8_t *)x)[i] = octavo_f32_to_fp8_e4m3(value);
        break;
    case FP8_E5M2:
        ((uint8_t *)x)[i] = octavo_f32_to_fp8_e5m2(value);
        break;
    default: /* of the size that 8 bits hold */
        ((int8_t *)x)[i] = (int8_t)lrintf(20.0f * value);
    }
}

static float *floats(tester *t, const char *name, int64_t n) {
    return tester_buffer(t, name, (size_t)n * FLOAT, 64);
}

static float *filled(tester *t, const char *name, int64_t n, tester_fill fill) {
    float *x = floats(t, name, n);
    tester_fill_f32(t, x, n, fill);
    return x;
}

static float *copied(tester *t, const char *name, const float *from, int64_t n) {
    float *x = floats(t, name, n);
    memcpy(x, from, (size_t)n * FLOAT);
    return x;
}

static int round_up(int n, int to) {
    return (n + to - 1) / to * to;
}

/* sum + x y as the level rounds it: what it adds up has one order only, and so one result. */
static float plus_product(const pair *k, float sum, float x, float y) {
    return k->is_fused ? fmaf(x, y, sum) : sum + x * y;
}

/* --- load and store --- */

static void check_load(tester *t, const void *arg) {
    const pair *k = arg;
    const int size = (int)type_size(k->type);
    for (int n = 0; n <= 70; n++) {
        uint8_t *x = tester_buffer(t, "x", (size_t)(n * size), (size_t)size);
        for (int i = 0; i < n * size; i++)
            x[i] = (uint8_t)tester_random(t);
        float *want = floats(t, "want", n), *got = floats(t, "got", n);
        tester_seal(t, x);
        for (int i = 0; i < n; i++)
            want[i] = value_of(x, i, k->type);
        tester_context(t, "n=%d", n);
        k->level->load[k->type](got, x, n);
        tester_equal_f32(t, "out", got, want, n);
        tester_release(t);
    }
    if (size > 1) return;
    uint8_t *x = tester_buffer(t, "x", 256, 1); /* all there are */
    float *want = floats(t, "want", 256), *got = floats(t, "got", 256);
    for (int i = 0; i < 256; i++) {
        x[i] = (uint8_t)i;
        want[i] = value_of(x, i, k->type);
    }
    tester_context(t, "all");
    k->level->load[k->type](got, x, 256);
    tester_equal_f32(t, "out", got, want, 256);
}

static void check_store(tester *t, const void *arg) {
    const pair *k = arg;
    for (int fill = 0; fill <= TESTER_FILL_NONFINITE; fill++) {
        for (int n = 0; n <= 70; n++) {
            float *x = filled(t, "x", n, (tester_fill)fill);
            const float scale = n % 3 == 0 ? 1.0f : tester_uniform(t, -2.0f, 2.0f);
            const uint32_t half = k->type == F16 ? 0x1000 : 0x8000; /* of the last bit kept */
            for (int i = 3; i < n; i += 7)                          /* ties */
                x[i] = octavo_f32_from_bits((octavo_f32_bits(x[i]) & ~(2 * half - 1)) | half);
            uint16_t *got = tester_buffer(t, "got", (size_t)n * 2, 2);
            tester_seal(t, x);
            tester_context(t, "n=%d fill=%s", n, tester_fill_name((tester_fill)fill));
            k->level->store[k->type](got, x, scale, n);
            for (int i = 0; i < n; i++) {
                const float y = x[i] * scale;
                const uint16_t want = k->type == F16 ? octavo_f32_to_f16(y) : octavo_f32_to_bf16(y);
                if (got[i] != want && !(isnan(y) && isnan(value_of(got, i, k->type))))
                    tester_fail(t, "out[%d] is %04x, want %04x", i, got[i], want);
            }
            tester_release(t);
        }
    }
}

static double largest(int type) {
    static const double limits[] = {0x1.fffffep127, 65504.0, 0x1.fep127, 448.0, 57344.0, 127.0};
    return limits[type];
}

static void want_quantised(tester *t, int type, float got, float x, float divisor) {
    const double y = (double)(x / divisor), limit = largest(type);
    if (isnan(y)) {
        if (type == INT8 ? got != 0.0f : !isnan(got)) tester_fail(t, "NaN became %g", (double)got);
        return;
    }
    const double low = type == INT8 ? -128.0 : -limit;
    const double clip = y > limit ? limit : y < low ? low : y;
    /* half a step of the type at that size; equality is what a tie rounds to */
    static const int digits[] = {24, 11, 8, 4, 3, 0}, least[] = {-149, -24, -133, -9, -16, 0};
    int exponent = 0;
    frexp(clip, &exponent);
    const int step = exponent - digits[type] > least[type] && type != INT8 ? exponent - digits[type]
                                                                           : least[type];
    const double want = ldexp(nearbyint(ldexp(clip, -step)), step);
    if ((double)got != want || (type != INT8 && signbit(got) != signbit((float)clip)))
        tester_fail(t, "%a / %a became %a, want %a", (double)x, (double)divisor, (double)got, want);
}

static void check_quantise(tester *t, const void *arg) {
    const pair *k = arg;
    const size_t size = type_size(k->type);
    static const float sizes[] = {1.0f, 100.0f, 0x1p-14f, 40000.0f, 0x1p-130f};
    for (int fill = 0; fill <= TESTER_FILL_NONFINITE; fill++) {
        for (int n = 0; n <= 70; n++) {
            float *x = filled(t, "x", n, (tester_fill)fill);
            const float divisor = n % 3 == 0 ? 1.0f : tester_uniform(t, 0.01f, 3.0f);
            for (int i = 0; i < n; i++) {
                x[i] *= sizes[n % 5];
                if (i % 7 == 3) x[i] = rintf(64.0f * x[i]) / 128.0f; /* ties */
            }
            void *got = tester_buffer(t, "got", (size_t)n * size, size);
            tester_seal(t, x);
            tester_context(t, "n=%d fill=%s", n, tester_fill_name((tester_fill)fill));
            k->level->quantise[k->type](got, x, divisor, n);
            for (int i = 0; i < n; i++)
                want_quantised(t, k->type, value_of(got, i, k->type), x[i], divisor);
            tester_release(t);
        }
    }
}

/* --- a block of cache rows --- */

typedef struct rows {
    const uint8_t *slots[BLOCK];
    size_t offset;
    int type, d, begin, end;
} rows;

/* Rows of d lanes for the places [begin, end), up or down; the last ends where a kernel of keys or
 * of values may read to. The rest of their groups repeats a visible one, like the caller's. */
static rows make_rows(tester *t, int type, int d, bool is_whole, bool is_key) {
    rows r = {.offset = (size_t)tester_between(t, 0, 3) * 64, .type = type, .d = d, .end = BLOCK};
    if (!is_whole) {
        r.begin = (int)tester_between(t, 0, BLOCK - 1);
        r.end = (int)tester_between(t, r.begin + 1, BLOCK);
    }
    const int size = (int)type_size(type);
    const size_t bytes =
        r.offset + (size_t)(is_key ? round_up(d * size, 32) : round_up(d, 16) * size);
    const int n = r.end - r.begin;
    const bool is_reversed = tester_random(t) % 2 == 1;
    uint8_t *all = tester_buffer(t, "rows", (size_t)n * bytes, type_size(type));
    float *lanes = floats(t, "lanes", d);
    for (int j = r.begin; j < r.end; j++) {
        uint8_t *row = all + (size_t)(is_reversed ? r.end - 1 - j : j - r.begin) * bytes;
        tester_fill_f32(t, lanes, d, TESTER_FILL_NORMAL);
        for (int i = 0; i < d; i++)
            put(row + r.offset, i, type, lanes[i]);
        r.slots[j] = row;
    }
    tester_seal(t, all);
    for (int j = r.begin / GROUP * GROUP; j < round_up(r.end, GROUP); j++) {
        if (j < r.begin || j >= r.end) r.slots[j] = r.slots[r.begin];
    }
    return r;
}

static float lane(const rows *r, int j, int i) {
    return value_of(r->slots[j] + r->offset, i, r->type);
}

static void check_gather_keys(tester *t, const void *arg) {
    const pair *k = arg;
    for (size_t w = 0; w < OCTAVO_COUNT(widths); w++) {
        for (int turn = 0; turn < 4; turn++) {
            const int n_words = (widths[w] + 3) / 4, first = turn * GROUP;
            rows r = make_rows(t, F32, n_words, true, true);
            uint32_t *words = tester_buffer(t, "words", (size_t)n_words * GROUP * 4, 64);
            tester_context(t, "n_words=%d", n_words);
            k->level->gather_keys(words, r.slots + first, r.offset, n_words, NULL);
            for (int j = 0; j < GROUP; j++) {
                for (int i = 0; i < n_words; i++) {
                    if (words[i * GROUP + j] != octavo_f32_bits(lane(&r, first + j, i)))
                        tester_fail(t, "word %d of key %d is wrong", i, j);
                }
            }
            tester_release(t);
        }
    }
}

/* The words of all places of a block, and where the groups of them are. */
typedef struct words {
    const uint32_t *groups[BLOCK / GROUP];
} words;

static words make_words(tester *t, const pair *k, const rows *r) {
    words w = {0};
    const int n_words = (r->d * (int)type_size(r->type) + 3) / 4;
    for (int g = r->begin / GROUP; g < round_up(r->end, GROUP) / GROUP; g++) {
        uint32_t *to = tester_buffer(t, "words", (size_t)n_words * GROUP * 4, 64);
        k->level->gather_keys(to, r->slots + g * GROUP, r->offset, n_words, NULL);
        w.groups[g] = to;
        tester_seal(t, to);
    }
    return w;
}

static void check_widen_keys(tester *t, const void *arg) {
    const pair *k = arg;
    for (size_t i = 0; i < OCTAVO_COUNT(widths); i++) {
        const int d = widths[i];
        rows r = make_rows(t, k->type, d, true, true);
        words w = make_words(t, k, &r);
        float *columns = floats(t, "columns", d * GROUP), *want = floats(t, "want", d * GROUP);
        tester_context(t, "d=%d", d);
        k->level->widen_keys[k->type](columns, w.groups[1], d);
        for (int n = 0; n < d * GROUP; n++)
            want[n] = lane(&r, GROUP + n % GROUP, n / GROUP);
        tester_equal_f32(t, "columns", columns, want, d * GROUP);
        tester_release(t);
    }
}

/* All bits there are of 8 of them, as each lane of a word. */
static void check_widen_all(tester *t, const void *arg) {
    const pair *k = arg;
    enum { N = 256 / GROUP };
    for (int turn = 0; turn < 256; turn += 37) {
        uint32_t *w = tester_buffer(t, "words", 4 * N * GROUP, 64);
        float *columns = floats(t, "columns", 4 * N * GROUP);
        for (int i = 0; i < N * GROUP; i++)
            w[i] = 0x01010101u * (uint32_t)((i + turn) % 256) + 0x03020100u;
        tester_seal(t, w);
        k->level->widen_keys[k->type](columns, w, 4 * N);
        for (int i = 0; i < 4 * N * GROUP; i++) {
            const int at = 4 * (i / GROUP / 4 * GROUP + i % GROUP) + i / GROUP % 4;
            const float want = value_of(w, at, k->type);
            tester_equal_f32(t, "a byte", &columns[i], &want, 1);
        }
        tester_release(t);
    }
}

/* The bits of a score depend neither on rows or places that are computed along, nor on whether keys
 * were widened first, nor on the memory that is asked for meanwhile. */
static void check_alone(tester *t, const pair *k, const float *all, const float *q, int64_t stride,
                        const words *w, int n_rows, int d, int g) {
    const int r = (int)tester_between(t, 0, n_rows - 1);
    float *one = floats(t, "one", BLOCK), *columns = floats(t, "columns", d * GROUP);
    uint8_t *memory = tester_buffer(t, "memory", 3 * 1024, 64);
    octavo_ahead ahead = {.at = memory,
                          .left = 320,
                          .run = memory,
                          .slot = memory,
                          .run_bytes = 320,
                          .run_stride = 512,
                          .slot_stride = 1024,
                          .runs = 2,
                          .runs_left = 2,
                          .slots_left = 3,
                          .steps = (int)tester_between(t, 0, 40)};
    k->level->scores[k->type](one, q + r * stride, stride, 1, w->groups, g, g + 1, d, &ahead);
    tester_equal_f32(t, "score alone", one + g * GROUP, all + r * BLOCK + g * GROUP, GROUP);
    if (ahead.steps < 0 || ahead.slots_left < 0 || ahead.at > memory + 3 * 1024)
        tester_fail(t, "asks for memory past what there is");
    k->level->widen_keys[k->type](columns, w->groups[g], d);
    words wide = {0};
    wide.groups[g] = (const void *)columns;
    k->level->scores[F32](one, q + r * stride, stride, 1, wide.groups, g, g + 1, d, NULL);
    tester_equal_f32(t, "score widened", one + g * GROUP, all + r * BLOCK + g * GROUP, GROUP);
}

static void check_scores_once(tester *t, const pair *k, int d, int n_rows, tester_fill fill) {
    const int stride = d + (int)tester_between(t, 0, 5);
    float *q = filled(t, "q", (int64_t)n_rows * stride, fill);
    float *got = floats(t, "s", (int64_t)n_rows * BLOCK);
    rows v = make_rows(t, k->type, d, n_rows % 4 != 3, true);
    words w = make_words(t, k, &v);
    const int first = v.begin / GROUP, last = round_up(v.end, GROUP) / GROUP;
    tester_seal(t, q);
    tester_context(t, "d=%d rows=%d groups=[%d, %d)", d, n_rows, first, last);
    k->level->scores[k->type](got, q, stride, n_rows, w.groups, first, last, d, NULL);
    for (int r = 0; r < n_rows; r++) {
        for (int j = v.begin; j < v.end; j++) {
            double want = 0.0, sum = 0.0;
            float exact = 0.0f;
            for (int i = 0; i < d; i++) {
                const float key = lane(&v, j, i);
                const double x = (double)q[r * stride + i] * (double)key;
                want += x;
                sum += fabs(x);
                exact = plus_product(k, exact, q[r * stride + i], key);
            }
            double bound = (d + 1) * ULP * sum;
            tester_near_f32(t, "s", &got[r * BLOCK + j], &want, &bound, 1);
            tester_equal_f32(t, "s in the order of lanes", &got[r * BLOCK + j], &exact, 1);
        }
    }
    check_alone(t, k, got, q, stride, &w, n_rows, d, (int)tester_between(t, first, last - 1));
    tester_release(t);
}

static void bench_scores(tester *t, const pair *k, int n, const char *label) {
    const int d = 128;
    float *q = filled(t, "q", n * d, TESTER_FILL_NORMAL), *s = floats(t, "s", n * BLOCK);
    rows v = make_rows(t, k->type, d, true, true);
    words w = make_words(t, k, &v);
    tester_bench(t, label, &(tester_work){.ops = 2.0 * n * d * BLOCK});
    while (tester_run(t))
        k->level->scores[k->type](s, q, d, n, w.groups, 0, BLOCK / GROUP, d, NULL);
}

static void check_scores(tester *t, const void *arg) {
    const pair *k = arg;
    static const tester_fill fills[] = {TESTER_FILL_NORMAL, TESTER_FILL_OUTLIER,
                                        TESTER_FILL_ALTERNATE};
    for (size_t w = 0; w < OCTAVO_COUNT(widths); w++) {
        for (int n_rows = 1; n_rows <= 14; n_rows++)
            check_scores_once(t, k, widths[w], n_rows, fills[n_rows % 3]);
    }
    bench_scores(t, k, 1, "rows=1 d=128");
    bench_scores(t, k, 4, "rows=4 d=128");
    bench_scores(t, k, 96, "rows=96 d=128");
}

/* --- softmax --- */

static double logit_of(double x, int j, const octavo_logit *logit) {
    double s = x * (double)logit->scale, cap = (double)logit->soft_cap;
    if (cap != 0.0) s = cap * tanh(s / cap);
    return s - (double)logit->slope * fabs((double)logit->first + j);
}

static void check_softmax_once(tester *t, const pair *k, const octavo_logit *logit, float before,
                               int begin, int end) {
    float *x = filled(t, "x", BLOCK, TESTER_FILL_NORMAL), *s = floats(t, "s", BLOCK);
    for (int j = begin; j < end; j++)
        x[j] *= 8.0f;
    memcpy(s, x, BLOCK * FLOAT);
    for (int j = 0; j < BLOCK; j++) { /* dot products of keys that are not seen */
        if (j < begin || j >= end) s[j] = j % 2 ? NAN : INFINITY;
    }
    const float sum_before = before == -INFINITY ? 0.0f : 3.5f;
    float max = before, sum = sum_before;
    float *twin = copied(t, "twin", s, BLOCK), twin_max = max, twin_sum = sum;
    const float rescale = k->level->softmax(s, begin, end, logit, &max, &sum);
    k->twin->softmax(twin, begin, end, logit, &twin_max, &twin_sum);
    tester_equal_f32(t, "p at the level below", s, twin, BLOCK);
    tester_equal_f32(t, "sum at the level below", &sum, &twin_sum, 1);

    /* f32 rounds the logit and its distance to the maximum, and the cap adds what it may */
    double top = (double)before, size = fabs((double)before), want_sum = 0.0, sum_bound = 0.0;
    if (before == -INFINITY) size = 0.0;
    for (int j = begin; j < end; j++) {
        top = fmax(top, logit_of((double)x[j], j, logit));
        size = fmax(size, fabs((double)x[j] * (double)logit->scale));
        size = fmax(size, (double)logit->slope * fabs((double)logit->first + j));
    }
    const double error = 4.0 * ULP * (2.0 * size + 1.0) + 2.0 * EXP * fabs((double)logit->soft_cap);
    if (!(fabs((double)max - top) <= error)) tester_fail(t, "max is %g", (double)max);
    for (int j = 0; j < BLOCK; j++) {
        const bool is_seen = j >= begin && j < end;
        double want = is_seen ? exp(logit_of((double)x[j], j, logit) - top) : 0.0;
        double bound = is_seen ? want * (2.0 * error + EXP) + 1e-37 : 0.0;
        if (logit->round_weights) {
            bound += want * 0x1p-8;
            if (octavo_bf16_to_f32(octavo_f32_to_bf16(s[j])) != s[j])
                tester_fail(t, "p[%d] is no bf16: %a", j, (double)s[j]);
        }
        tester_near_f32(t, "p", &s[j], &want, &bound, 1);
        if (logit->round_weights) want = (double)s[j], bound = 0.0; /* what is summed */
        want_sum += want;
        sum_bound += bound;
    }
    const double want_rescale = before == -INFINITY ? 0.0 : exp((double)before - top);
    const double rescale_bound = want_rescale * (2.0 * error + EXP) + 1e-37;
    tester_near_f32(t, "rescale", &rescale, &want_rescale, &rescale_bound, 1);
    want_sum += want_rescale * (double)sum_before;
    sum_bound += rescale_bound * (double)sum_before + 16.0 * ULP * want_sum;
    tester_near_f32(t, "sum", &sum, &want_sum, &sum_bound, 1);
    if ((double)before > top - 1e-9 && max == before && rescale != 1.0f)
        tester_fail(t, "rescale without a new maximum is %g", (double)rescale);
}

/* Infinite logits as IEEE arithmetic has them; NaN must not get lost. */
static void check_softmax_edges(tester *t, const pair *k) {
    const octavo_logit logit = {.scale = 1.0f};
    float *s = floats(t, "s", BLOCK), max, sum, rescale;
    for (int j = 0; j < BLOCK; j++)
        s[j] = -INFINITY;
    max = -INFINITY, sum = 0.0f;
    rescale = k->level->softmax(s, 0, BLOCK, &logit, &max, &sum);
    if (max != -INFINITY || sum != 0.0f || rescale != 0.0f || s[5] != 0.0f)
        tester_fail(t, "a block of -inf gives max %g sum %g", (double)max, (double)sum);
    for (int j = 0; j < BLOCK; j++)
        s[j] = -3e38f;
    max = -INFINITY, sum = 0.0f;
    k->level->softmax(s, 1, 2, &logit, &max, &sum);
    if (s[1] != 1.0f || sum != 1.0f || s[0] != 0.0f)
        tester_fail(t, "a lowest logit alone weighs %g", (double)s[1]);
    static const octavo_logit logits[] = {
        {.scale = 1.0f},
        {.scale = 1.0f, .soft_cap = 20.0f},
        {.scale = 1.0f, .slope = 0.5f, .first = -80.0f},
        {.scale = 1.0f, .round_weights = true},
    };
    for (int l = 0; l < (int)OCTAVO_COUNT(logits); l++) {
        for (int j = 0; j < BLOCK; j++)
            s[j] = j == 17 ? octavo_f32_from_bits(0x7fc00155u) : 0.25f;
        max = 0.5f, sum = 1.0f;
        k->level->softmax(s, 0, BLOCK, &logits[l], &max, &sum);
        if (!isnan(s[17]) || !isnan(sum)) tester_fail(t, "a NaN got lost (logit %d)", l);
    }
}

static void check_softmax(tester *t, const void *arg) {
    const pair *k = arg;
    static const float befores[] = {-INFINITY, -40.0f, 0.0f, 2.0f, 300.0f};
    static const octavo_logit logits[] = {
        {.scale = 1.0f},
        {.scale = 0.125f},
        {.scale = -1.0f},
        {.scale = 1.0f, .soft_cap = 30.0f},
        {.scale = 0.3f, .soft_cap = -5.0f},
        {.scale = 40.0f, .soft_cap = 50.0f},
        {.scale = 1.0f, .slope = 0.25f, .first = -100.0f},
        {.scale = 0.5f, .slope = 0.01f, .first = -20.0f, .soft_cap = 9.0f},
        {.scale = 0.2f, .round_weights = true},
        {.scale = 0.2f, .round_weights = true, .slope = 0.125f, .first = -1.0f},
    };
    for (size_t b = 0; b < sizeof befores / sizeof befores[0]; b++) {
        for (size_t l = 0; l < sizeof logits / sizeof logits[0]; l++) {
            for (int turn = 0; turn < 8; turn++) {
                int begin = 0, end = BLOCK;
                if (turn > 0) {
                    begin = (int)tester_between(t, 0, BLOCK - 1);
                    end = (int)tester_between(t, begin + 1, BLOCK);
                }
                tester_context(t, "places=[%d, %d) max=%g logit=%d", begin, end, (double)befores[b],
                               (int)l);
                check_softmax_once(t, k, &logits[l], befores[b], begin, end);
                tester_release(t);
            }
        }
    }
    tester_context(t, "edges");
    check_softmax_edges(t, k);
    float *x = filled(t, "x", BLOCK, TESTER_FILL_NORMAL), *s = floats(t, "s", BLOCK);
    tester_bench(t, "64", &(tester_work){.bytes = 2 * BLOCK * FLOAT});
    while (tester_run(t)) {
        float max = 0.0f, sum = 0.0f;
        memcpy(s, x, BLOCK * FLOAT);
        k->level->softmax(s, 0, BLOCK, &(octavo_logit){.scale = 0.125f}, &max, &sum);
    }
}

/* --- values --- */

/* Row by row, in two parts, from panels: the same bits. */
static void check_values_again(tester *t, const pair *k, const rows *v, const float *acc,
                               const float *rescale, const float *p, int n_rows,
                               const float *want) {
    const int width = round_up(v->d, 16), d = v->d;
    const int cut = (int)tester_between(t, v->begin, v->end);
    float *split = copied(t, "split", acc, (int64_t)n_rows * width);
    float *panel = copied(t, "panel", acc, (int64_t)n_rows * width);
    float *panels = floats(t, "panels", (int64_t)width * BLOCK);
    for (int r = 0; r < n_rows; r++) {
        float *row = split + r * width;
        const float *weights = p + r * BLOCK;
        k->level->values[k->type](row, width, rescale + r, weights, 1, v->slots, v->offset,
                                  v->begin, cut, d, NULL);
        k->level->values[k->type](row, width, NULL, weights, 1, v->slots, v->offset, cut, v->end, d,
                                  NULL);
        tester_equal_f32(t, "acc in parts", row, want + r * width, d);
    }
    k->level->widen_values[k->type](panels, v->slots, v->offset, v->begin, v->end, d);
    for (int j = v->begin; j < v->end; j++) {
        for (int i = 0; i < d; i++) {
            const float want_lane = lane(v, j, i);
            tester_equal_f32(t, "panel", &panels[(i / 16 * BLOCK + j) * 16 + i % 16], &want_lane,
                             1);
        }
    }
    k->level->panel_values(panel, width, rescale, p, n_rows, panels, v->begin, v->end, d);
    for (int r = 0; r < n_rows; r++)
        tester_equal_f32(t, "acc from panels", panel + r * width, want + r * width, d);
}

static void check_values_once(tester *t, const pair *k, int d, int n_rows, bool is_whole) {
    rows v = make_rows(t, k->type, d, is_whole, false);
    const int width = round_up(d, 16);
    float *acc = filled(t, "acc", (int64_t)n_rows * width, TESTER_FILL_NORMAL);
    float *got = copied(t, "got", acc, (int64_t)n_rows * width);
    float *p = floats(t, "p", (int64_t)n_rows * BLOCK);
    float *rescale = floats(t, "rescale", n_rows);
    for (int i = 0; i < n_rows * BLOCK; i++)
        p[i] = tester_uniform(t, 0.0f, 1.0f);
    for (int r = 0; r < n_rows; r++)
        rescale[r] = tester_uniform(t, 0.0f, 1.0f);
    tester_seal(t, p);
    tester_context(t, "d=%d rows=%d places=[%d, %d)", d, n_rows, v.begin, v.end);
    k->level->values[k->type](got, width, rescale, p, n_rows, v.slots, v.offset, v.begin, v.end, d,
                              NULL);
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < d; i++) {
            double want = (double)acc[r * width + i] * (double)rescale[r], sum = fabs(want);
            float exact = acc[r * width + i] * rescale[r];
            for (int j = v.begin; j < v.end; j++) {
                const float value = lane(&v, j, i);
                double x = (double)p[r * BLOCK + j] * (double)value;
                want += x;
                sum += fabs(x);
                exact = plus_product(k, exact, p[r * BLOCK + j], value);
            }
            double bound = (v.end - v.begin + 2) * ULP * sum;
            tester_near_f32(t, "acc", &got[r * width + i], &want, &bound, 1);
            tester_equal_f32(t, "acc in the order of places", &got[r * width + i], &exact, 1);
        }
    }
    check_values_again(t, k, &v, acc, rescale, p, n_rows, got);
    tester_release(t);
}

static void bench_values(tester *t, const pair *k, int n, const char *label) {
    const int d = 128;
    rows v = make_rows(t, k->type, d, true, false);
    float *acc = filled(t, "acc", n * d, TESTER_FILL_ZERO);
    float *p = filled(t, "p", n * BLOCK, TESTER_FILL_NORMAL);
    tester_bench(t, label, &(tester_work){.ops = 2.0 * n * d * BLOCK});
    while (tester_run(t))
        k->level->values[k->type](acc, d, NULL, p, n, v.slots, v.offset, 0, BLOCK, d, NULL);
}

static void check_values(tester *t, const void *arg) {
    const pair *k = arg;
    for (size_t w = 0; w < OCTAVO_COUNT(widths); w++) {
        for (int n_rows = 1; n_rows <= 14; n_rows += n_rows < 8 ? 1 : 5)
            check_values_once(t, k, widths[w], n_rows, n_rows % 2 == 0);
    }
    bench_values(t, k, 1, "rows=1 d=128");
    bench_values(t, k, 4, "rows=4 d=128");
    const int d = 128, n = 96;
    float *panels = filled(t, "panels", d * BLOCK, TESTER_FILL_NORMAL);
    float *acc = filled(t, "acc", n * d, TESTER_FILL_ZERO);
    float *p = filled(t, "p", n * BLOCK, TESTER_FILL_NORMAL);
    tester_bench(t, "panels rows=96 d=128", &(tester_work){.ops = 2.0 * n * d * BLOCK});
    while (tester_run(t))
        k->level->panel_values(acc, d, NULL, p, n, panels, 0, BLOCK, d);
}

/* --- pairs of bf16 --- */

static float *bf16_floats(tester *t, const char *name, int64_t n, tester_fill fill) {
    float *x = filled(t, name, n, fill);
    for (int64_t i = 0; i < n; i++)
        x[i] = octavo_bf16_to_f32(octavo_f32_to_bf16(x[i]));
    return x;
}

static void check_pair_scores_once(tester *t, const pair *k, int d, int n_rows) {
    const int stride = (d + 1) / 2 + (int)tester_between(t, 0, 3);
    float *q = bf16_floats(t, "q", (int64_t)n_rows * d, TESTER_FILL_NORMAL);
    uint32_t *pairs = tester_buffer(t, "pairs", (size_t)(n_rows * stride) * 4, 4);
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < d; i += 2)
            pairs[r * stride + i / 2] = octavo_f32_bits(q[r * d + i]) >> 16 |
                                        (i + 1 < d ? octavo_f32_bits(q[r * d + i + 1]) : 0);
    }
    rows v = make_rows(t, BF16, d, n_rows % 4 != 3, true);
    words w = make_words(t, k, &v);
    const int first = v.begin / GROUP, last = round_up(v.end, GROUP) / GROUP;
    float *got = floats(t, "s", (int64_t)n_rows * BLOCK), *one = floats(t, "one", BLOCK);
    tester_seal(t, pairs);
    tester_context(t, "d=%d rows=%d groups=[%d, %d)", d, n_rows, first, last);
    k->level->pair_scores(got, pairs, stride, n_rows, w.groups, first, last, d, NULL);
    for (int r = 0; r < n_rows; r++) {
        for (int j = v.begin; j < v.end; j++) {
            double want = 0.0, sum = 0.0;
            for (int i = 0; i < d; i++) {
                const double x = (double)q[r * d + i] * (double)lane(&v, j, i);
                want += x;
                sum += fabs(x);
            }
            double bound = (d + 1) * ULP * sum + 1e-36;
            tester_near_f32(t, "s", &got[r * BLOCK + j], &want, &bound, 1);
        }
        for (int g = first; g < last; g++) { /* alone: the same bits */
            k->level->pair_scores(one, pairs + r * stride, stride, 1, w.groups, g, g + 1, d, NULL);
            tester_equal_f32(t, "score alone", one + g * GROUP, got + r * BLOCK + g * GROUP, GROUP);
        }
    }
    tester_release(t);
}

static void check_pair_scores(tester *t, const void *arg) {
    for (size_t w = 0; w < OCTAVO_COUNT(widths); w++) {
        for (int n_rows = 1; n_rows <= 14; n_rows++)
            check_pair_scores_once(t, arg, widths[w], n_rows);
    }
}

/* Places that are not seen hold NaN, as what lies in a cache may. */
static void check_pair_values_once(tester *t, const pair *k, int d, int n_rows, bool is_whole) {
    rows v = make_rows(t, BF16, d, is_whole, false);
    const int width = round_up(d, 16);
    float *acc = filled(t, "acc", (int64_t)n_rows * width, TESTER_FILL_NORMAL);
    float *got = copied(t, "got", acc, (int64_t)n_rows * width);
    float *parts = copied(t, "parts", acc, (int64_t)n_rows * width);
    float *p = bf16_floats(t, "p", (int64_t)n_rows * BLOCK, TESTER_FILL_NORMAL);
    float *rescale = floats(t, "rescale", n_rows);
    for (int r = 0; r < n_rows; r++)
        rescale[r] = tester_uniform(t, 0.0f, 1.0f);
    uint32_t *panels = tester_buffer(t, "panels", (size_t)width * BLOCK / 2 * 4, 64);
    tester_context(t, "d=%d rows=%d places=[%d, %d)", d, n_rows, v.begin, v.end);
    k->level->pair_up(panels, v.slots, v.offset, v.begin, v.end, d);
    /* what the call is about may be less than what is there */
    const int begin = (int)tester_between(t, v.begin, v.end - 1);
    const int end = (int)tester_between(t, begin + 1, v.end);
    for (int m = 0; m < BLOCK / 2; m++) {
        const uint32_t nan = (2 * m < begin || 2 * m >= end ? 0x7fc0u : 0) |
                             (2 * m + 1 < begin || 2 * m + 1 >= end ? 0x7fc00000u : 0);
        for (int i = 0; i < width; i++)
            panels[(i / GROUP * BLOCK / 2 + m) * GROUP + i % GROUP] |= nan;
    }
    tester_seal(t, panels);
    k->level->pair_values(got, width, rescale, p, n_rows, panels, begin, end, d);
    const int cut = (int)tester_between(t, begin / 2, end / 2) * 2;
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < d; i++) {
            double want = (double)acc[r * width + i] * (double)rescale[r], sum = fabs(want);
            for (int j = begin; j < end; j++) {
                const double x = (double)p[r * BLOCK + j] * (double)lane(&v, j, i);
                want += x;
                sum += fabs(x);
            }
            double bound = (end - begin + 2) * ULP * sum + 1e-36;
            tester_near_f32(t, "acc", &got[r * width + i], &want, &bound, 1);
        }
        /* row by row and cut between pairs: the same bits */
        float *row = parts + r * width;
        const int middle = cut > begin ? cut : begin;
        k->level->pair_values(row, width, rescale + r, p + r * BLOCK, 1, panels, begin, middle, d);
        k->level->pair_values(row, width, NULL, p + r * BLOCK, 1, panels, middle, end, d);
        tester_equal_f32(t, "acc in parts", row, got + r * width, d);
    }
    tester_release(t);
}

static void check_pair_values(tester *t, const void *arg) {
    for (size_t w = 0; w < OCTAVO_COUNT(widths); w++) {
        for (int n_rows = 1; n_rows <= 14; n_rows += n_rows < 8 ? 1 : 5) {
            for (int turn = 0; turn < 3; turn++)
                check_pair_values_once(t, arg, widths[w], n_rows, turn == 0);
        }
    }
}

/* --- joining --- */

static void check_merge(tester *t, const void *arg) {
    const pair *k = arg;
    static const float maxima[] = {-INFINITY, -90.0f, -1.0f, 0.0f, 0.5f, 200.0f};
    enum { COUNT = sizeof maxima / sizeof maxima[0] };
    for (int c = 0; c < COUNT * COUNT; c++) {
        const int n = 16 * (1 + c % 5);
        const float a = maxima[c / COUNT], b = maxima[c % COUNT];
        float *x = filled(t, "x", n, TESTER_FILL_NORMAL),
              *y = filled(t, "y", n, TESTER_FILL_NORMAL);
        float *got = floats(t, "got", n);
        memcpy(got, x, (size_t)n * FLOAT);
        float max = a, sum = a == -INFINITY ? 0.0f : 2.0f;
        const float l = b == -INFINITY ? 0.0f : 3.0f;
        const double top = fmax((double)a, (double)b), base = top == (double)-INFINITY ? 0.0 : top;
        const double old = exp((double)a - base), new = exp((double)b - base);
        const double want_sum = (double)sum * old + (double)l * new;
        const double sum_bound = want_sum * 2.0 * EXP + 1e-36;
        tester_context(t, "n=%d max=%g m=%g", n, (double)a, (double)b);
        k->level->merge(got, &max, &sum, y, b, l, n);
        if ((double)max != top) tester_fail(t, "max is %g", (double)max);
        tester_near_f32(t, "sum", &sum, &want_sum, &sum_bound, 1);
        for (int i = 0; i < n; i++) {
            const double p = (double)x[i] * old, q = (double)y[i] * new, want = p + q;
            const double bound = (fabs(p) + fabs(q)) * (EXP + 2.0 * ULP) + 1e-36;
            tester_near_f32(t, "out", &got[i], &want, &bound, 1);
        }
        tester_release(t);
    }
}

static void check_sink(tester *t, const void *arg) {
    const pair *k = arg;
    static const float logits[] = {-INFINITY, -100.0f, -0.5f, 0.0f, 3.0f, 120.0f};
    for (size_t i = 0; i < sizeof logits / sizeof logits[0]; i++) {
        const float before = tester_uniform(t, -2.0f, 2.0f);
        float max = before, sum = 4.0f;
        const float rescale = k->level->sink(logits[i], &max, &sum);
        const double top = fmax((double)before, (double)logits[i]);
        const double want = exp((double)before - top), bound = want * EXP + 1e-37;
        const double want_sum = 4.0 * want + exp((double)logits[i] - top);
        const double sum_bound = 2.0 * EXP * want_sum;
        tester_context(t, "logit=%g max=%g", (double)logits[i], (double)before);
        if ((double)max != top) tester_fail(t, "max is %g", (double)max);
        tester_near_f32(t, "rescale", &rescale, &want, &bound, 1);
        tester_near_f32(t, "sum", &sum, &want_sum, &sum_bound, 1);
    }
}

void check_attention(tester *t);

void check_attention(tester *t) {
    octavo_attention_kernels level, avx2;
    octavo_attention_kernels_init(&level, tester_flags(t));
    octavo_attention_kernels_init(&avx2, tester_flags(t) & OCTAVO_CPU_AVX2);
    const octavo_attention_kernels *twin = tester_flags(t) & OCTAVO_CPU_AVX512 ? &avx2 : &level;
    const bool fused = tester_flags(t) != 0;
    const pair pairs[] = {{&level, twin, F32, fused},      {&level, twin, F16, fused},
                          {&level, twin, BF16, fused},     {&level, twin, FP8_E4M3, fused},
                          {&level, twin, FP8_E5M2, fused}, {&level, twin, INT8, fused}};
    static const struct {
        const char *load, *store, *quantise, *widen_keys, *scores, *values;
    } names[] = {
        {"load_f32", "store_f32", "quantise_f32", "widen_keys_f32", "scores_f32", "values_f32"},
        {"load_f16", "store_f16", "quantise_f16", "widen_keys_f16", "scores_f16", "values_f16"},
        {"load_bf16", "store_bf16", "quantise_bf16", "widen_keys_bf16", "scores_bf16",
         "values_bf16"},
        {"load_fp8_e4m3", NULL, "quantise_fp8_e4m3", "widen_keys_fp8_e4m3", "scores_fp8_e4m3",
         "values_fp8_e4m3"},
        {"load_fp8_e5m2", NULL, "quantise_fp8_e5m2", "widen_keys_fp8_e5m2", "scores_fp8_e5m2",
         "values_fp8_e5m2"},
        {"load_int8", NULL, "quantise_int8", "widen_keys_int8", "scores_int8", "values_int8"},
    };
    for (int i = F32; i <= INT8; i++) {
        tester_check(t, names[i].load, (tester_function *)level.load[i], check_load, &pairs[i]);
        if (i == F16 || i == BF16)
            tester_check(t, names[i].store, (tester_function *)level.store[i], check_store,
                         &pairs[i]);
        tester_check(t, names[i].quantise, (tester_function *)level.quantise[i], check_quantise,
                     &pairs[i]);
        tester_check(t, names[i].widen_keys, (tester_function *)level.widen_keys[i],
                     i < FP8_E4M3 ? check_widen_keys : check_widen_all, &pairs[i]);
        tester_check(t, names[i].scores, (tester_function *)level.scores[i], check_scores,
                     &pairs[i]);
        tester_check(t, names[i].values, (tester_function *)level.values[i], check_values,
                     &pairs[i]);
    }
    tester_check(t, "gather_keys", (tester_function *)level.gather_keys, check_gather_keys,
                 &pairs[F32]);
    tester_check(t, "softmax", (tester_function *)level.softmax, check_softmax, &pairs[F32]);
    if (level.pair_scores) {
        tester_check(t, "pair_scores", (tester_function *)level.pair_scores, check_pair_scores,
                     &pairs[BF16]);
        tester_check(t, "pair_values", (tester_function *)level.pair_values, check_pair_values,
                     &pairs[BF16]);
    }
    tester_check(t, "merge", (tester_function *)level.merge, check_merge, &pairs[F32]);
    tester_check(t, "sink", (tester_function *)level.sink, check_sink, &pairs[F32]);
}
