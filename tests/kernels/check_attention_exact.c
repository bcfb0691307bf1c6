/* SPDX-License-Identifier: Apache-2.0
 *
 * What has one right result, to the bit: loading, storing and quantising rows, and keys gathered
 * and widened.
 */
#include "base/number.h"
#include "check_attention.h"

#include <math.h>

void check_load(tester *t, const void *arg) {
    const attention_pair *k = arg;
    const int size = (int)sample_size(k->type);
    for (int n = 0; n <= 70; n++) {
        uint8_t *x = tester_buffer(t, "x", (size_t)(n * size), (size_t)size);
        for (int i = 0; i < n * size; i++)
            x[i] = (uint8_t)tester_random(t);
        float *want = sample_floats(t, "want", n), *got = sample_floats(t, "got", n);
        tester_seal(t, x);
        for (int i = 0; i < n; i++)
            want[i] = sample_value(x, i, k->type);
        tester_context(t, "n=%d", n);
        k->level->load[k->type](got, x, n);
        tester_equal_f32(t, "out", got, want, n);
        tester_release(t);
    }
    if (size > 1) return;
    uint8_t *x = tester_buffer(t, "x", 256, 1); /* all there are */
    float *want = sample_floats(t, "want", 256), *got = sample_floats(t, "got", 256);
    for (int i = 0; i < 256; i++) {
        x[i] = (uint8_t)i;
        want[i] = sample_value(x, i, k->type);
    }
    tester_context(t, "all");
    k->level->load[k->type](got, x, 256);
    tester_equal_f32(t, "out", got, want, 256);
}

void check_store(tester *t, const void *arg) {
    const attention_pair *k = arg;
    for (int fill = 0; fill <= TESTER_FILL_NONFINITE; fill++) {
        for (int n = 0; n <= 70; n++) {
            float *x = sample_filled(t, "x", n, (tester_fill)fill);
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
                if (got[i] != want && !(isnan(y) && isnan(sample_value(got, i, k->type))))
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

void check_quantise(tester *t, const void *arg) {
    const attention_pair *k = arg;
    const size_t size = sample_size(k->type);
    static const float sizes[] = {1.0f, 100.0f, 0x1p-14f, 40000.0f, 0x1p-130f};
    for (int fill = 0; fill <= TESTER_FILL_NONFINITE; fill++) {
        for (int n = 0; n <= 70; n++) {
            float *x = sample_filled(t, "x", n, (tester_fill)fill);
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
                want_quantised(t, k->type, sample_value(got, i, k->type), x[i], divisor);
            tester_release(t);
        }
    }
}

void check_gather_keys(tester *t, const void *arg) {
    const attention_pair *k = arg;
    for (size_t w = 0; w < OCTAVO_COUNT(widths); w++) {
        for (int turn = 0; turn < 4; turn++) {
            const int n_words = (widths[w] + 3) / 4, first = turn * GROUP;
            sample_rows r = sample_rows_make(t, F32, n_words, true, true);
            uint32_t *words = tester_buffer(t, "words", (size_t)n_words * GROUP * 4, 64);
            tester_context(t, "n_words=%d", n_words);
            k->level->gather_keys(words, r.slots + first, r.offset, n_words, NULL);
            for (int j = 0; j < GROUP; j++) {
                for (int i = 0; i < n_words; i++) {
                    if (words[i * GROUP + j] != octavo_f32_bits(sample_lane(&r, first + j, i)))
                        tester_fail(t, "word %d of key %d is wrong", i, j);
                }
            }
            tester_release(t);
        }
    }
}

void check_widen_keys(tester *t, const void *arg) {
    const attention_pair *k = arg;
    for (size_t i = 0; i < OCTAVO_COUNT(widths); i++) {
        const int d = widths[i];
        sample_rows r = sample_rows_make(t, k->type, d, true, true);
        sample_words w = sample_words_make(t, k, &r);
        float *columns = sample_floats(t, "columns", d * GROUP),
              *want = sample_floats(t, "want", d * GROUP);
        tester_context(t, "d=%d", d);
        k->level->widen_keys[k->type](columns, w.groups[1], d);
        for (int n = 0; n < d * GROUP; n++)
            want[n] = sample_lane(&r, GROUP + n % GROUP, n / GROUP);
        tester_equal_f32(t, "columns", columns, want, d * GROUP);
        tester_release(t);
    }
}

/* All bits there are of 8 of them, as each lane of a word. */
void check_widen_all(tester *t, const void *arg) {
    const attention_pair *k = arg;
    enum { N = 256 / GROUP };
    for (int turn = 0; turn < 256; turn += 37) {
        uint32_t *w = tester_buffer(t, "words", 4 * N * GROUP, 64);
        float *columns = sample_floats(t, "columns", 4 * N * GROUP);
        for (int i = 0; i < N * GROUP; i++)
            w[i] = 0x01010101u * (uint32_t)((i + turn) % 256) + 0x03020100u;
        tester_seal(t, w);
        k->level->widen_keys[k->type](columns, w, 4 * N);
        for (int i = 0; i < 4 * N * GROUP; i++) {
            const int at = 4 * (i / GROUP / 4 * GROUP + i % GROUP) + i / GROUP % 4;
            const float want = sample_value(w, at, k->type);
            tester_equal_f32(t, "a byte", &columns[i], &want, 1);
        }
        tester_release(t);
    }
}
