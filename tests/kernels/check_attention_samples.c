/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows and numbers for the checks of attention.
 */
#include "base/number.h"
#include "check_attention.h"

#include <string.h>

size_t sample_size(int type) {
    return type == F32 ? 4 : type <= BF16 ? 2 : 1;
}

float sample_value(const void *x, int64_t i, int type) {
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

float *sample_floats(tester *t, const char *name, int64_t n) {
    return tester_buffer(t, name, (size_t)n * FLOAT, 64);
}

float *sample_filled(tester *t, const char *name, int64_t n, tester_fill fill) {
    float *x = sample_floats(t, name, n);
    tester_fill_f32(t, x, n, fill);
    return x;
}

float *sample_copied(tester *t, const char *name, const float *from, int64_t n) {
    float *x = sample_floats(t, name, n);
    memcpy(x, from, (size_t)n * FLOAT);
    return x;
}

float *sample_bf16_filled(tester *t, const char *name, int64_t n, tester_fill fill) {
    float *x = sample_filled(t, name, n, fill);
    for (int64_t i = 0; i < n; i++)
        x[i] = octavo_bf16_to_f32(octavo_f32_to_bf16(x[i]));
    return x;
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

sample_rows sample_rows_make(tester *t, int type, int d, bool is_whole, bool is_key) {
    sample_rows r = {
        .offset = (size_t)tester_between(t, 0, 3) * 64, .type = type, .d = d, .end = BLOCK};
    if (!is_whole) {
        r.begin = (int)tester_between(t, 0, BLOCK - 1);
        r.end = (int)tester_between(t, r.begin + 1, BLOCK);
    }
    const int size = (int)sample_size(type);
    const size_t bytes =
        r.offset + (size_t)(is_key ? round_up(d * size, 32) : round_up(d, 16) * size);
    const int n = r.end - r.begin;
    const bool is_reversed = tester_random(t) % 2 == 1;
    uint8_t *all = tester_buffer(t, "rows", (size_t)n * bytes, sample_size(type));
    float *lanes = sample_floats(t, "lanes", d);
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

sample_words sample_words_make(tester *t, const attention_pair *k, const sample_rows *r) {
    sample_words w = {0};
    const int n_words = (r->d * (int)sample_size(r->type) + 3) / 4;
    for (int g = r->begin / GROUP; g < round_up(r->end, GROUP) / GROUP; g++) {
        uint32_t *to = tester_buffer(t, "words", (size_t)n_words * GROUP * 4, 64);
        k->level->gather_keys(to, r->slots + g * GROUP, r->offset, n_words, NULL);
        w.groups[g] = to;
        tester_seal(t, to);
    }
    return w;
}
