/* SPDX-License-Identifier: Apache-2.0
 *
 * The scales of 8-bit float weights: each legal shape against a plain definition of which scale is
 * whose, and each refusal.
 */
#include "../unit.h"
#include "bad_file.h"
#include "base/compiler.h"
#include "base/number.h"
#include "safetensors_walk.h"
#include "safetensors_writer.h"

#include <math.h>

/* A model with the weight "w" of F8_E4M3 and scales, under a name, that count up from 1. */
typedef struct model {
    safetensors_writer writer;
    octavo_safetensors *safetensors;
    const octavo_safetensors_tensor *weight;
} model;

static void open_model(model *m) {
    size_t size;
    octavo_error error = {0};
    const uint8_t *bytes = safetensors_writer_finish(&m->writer, &size);
    octavo_status status = octavo_safetensors_parse(bytes, size, "f8", &m->safetensors, &error);
    if (status != OCTAVO_OK) fail_msg("%s", error.message);
    safetensors_walk(m->safetensors, size);
    ptrdiff_t index = octavo_safetensors_tensor_find(m->safetensors, "w");
    assert_true(index >= 0);
    m->weight = octavo_safetensors_tensor_at(m->safetensors, (size_t)index);
}

static void add_scales(model *m, const char *name, const char *shape, size_t count) {
    float *values = calloc(count, sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(i + 1);
    }
    safetensors_writer_tensor(&m->writer, name, "F32", shape, values, count * sizeof(*values));
    free(values);
}

static void begin(model *m, const char *shape, size_t bytes) {
    *m = (model){0};
    safetensors_writer_tensor(&m->writer, "w", "F8_E4M3", shape, NULL, bytes);
}

static void end(model *m) {
    octavo_safetensors_close(&m->safetensors);
    safetensors_writer_deinit(&m->writer);
}

static void refused(model *m, octavo_status expected, const char *text) {
    octavo_safetensors_scale scale = {0};
    octavo_error error = {0};
    open_model(m);
    octavo_status status =
        octavo_safetensors_find_scale(m->safetensors, m->weight, NULL, &scale, &error);
    bad_file_refused(status, &error, expected, text);
    assert_null(scale.tensor);
    end(m);
}

/* Which scale is whose, said plainly. */
static uint64_t expected_index(octavo_safetensors_scale_kind kind, bool shared, const uint64_t n[3],
                               uint64_t m, uint64_t r, uint64_t c) {
    switch (kind) {
    case OCTAVO_SAFETENSORS_SCALE_MATRIX:
        return shared ? 0 : m;
    case OCTAVO_SAFETENSORS_SCALE_ROW:
        return m * n[1] + r;
    case OCTAVO_SAFETENSORS_SCALE_COLUMN:
        return m * n[2] + c;
    default: {
        uint64_t rows = (n[1] + 127) / 128, columns = (n[2] + 127) / 128;
        return (m * rows + r / 128) * columns + c / 128;
    }
    }
}

static void test_shapes(void **unused) {
    (void)unused;
    static const struct {
        const char *weight;
        uint64_t n[3];
        const char *scale;
        size_t count;
        octavo_safetensors_scale_kind kind;
        bool shared; /* one scale for a whole stack */
    } shapes[] = {
        {"[3,5]", {1, 3, 5}, "[]", 1, OCTAVO_SAFETENSORS_SCALE_MATRIX, true},
        {"[3,5]", {1, 3, 5}, "[1]", 1, OCTAVO_SAFETENSORS_SCALE_MATRIX, true},
        {"[3,5]", {1, 3, 5}, "[1,1]", 1, OCTAVO_SAFETENSORS_SCALE_MATRIX, true},
        {"[3,5]", {1, 3, 5}, "[3]", 3, OCTAVO_SAFETENSORS_SCALE_ROW, false},
        {"[3,5]", {1, 3, 5}, "[3,1]", 3, OCTAVO_SAFETENSORS_SCALE_ROW, false},
        {"[3,5]", {1, 3, 5}, "[1,5]", 5, OCTAVO_SAFETENSORS_SCALE_COLUMN, false},
        {"[256,384]", {1, 256, 384}, "[2,3]", 6, OCTAVO_SAFETENSORS_SCALE_BLOCKS, false},
        {"[257,130]", {1, 257, 130}, "[3,2]", 6, OCTAVO_SAFETENSORS_SCALE_BLOCKS, false},
        {"[100,300]", {1, 100, 300}, "[1,3]", 3, OCTAVO_SAFETENSORS_SCALE_BLOCKS, false},
        {"[300,100]", {1, 300, 100}, "[3,1]", 3, OCTAVO_SAFETENSORS_SCALE_BLOCKS, false},
        {"[300,100]", {1, 300, 100}, "[300,1]", 300, OCTAVO_SAFETENSORS_SCALE_ROW, false},
        {"[1,300]", {1, 1, 300}, "[1,3]", 3, OCTAVO_SAFETENSORS_SCALE_BLOCKS, false},
        {"[4,3,5]", {4, 3, 5}, "[]", 1, OCTAVO_SAFETENSORS_SCALE_MATRIX, true},
        {"[4,3,5]", {4, 3, 5}, "[4]", 4, OCTAVO_SAFETENSORS_SCALE_MATRIX, false},
        {"[4,3,5]", {4, 3, 5}, "[4,1,1]", 4, OCTAVO_SAFETENSORS_SCALE_MATRIX, false},
        {"[4,3,5]", {4, 3, 5}, "[4,3]", 12, OCTAVO_SAFETENSORS_SCALE_ROW, false},
        {"[4,3,5]", {4, 3, 5}, "[4,3,1]", 12, OCTAVO_SAFETENSORS_SCALE_ROW, false},
        {"[4,3,5]", {4, 3, 5}, "[4,1,5]", 20, OCTAVO_SAFETENSORS_SCALE_COLUMN, false},
        {"[2,130,257]", {2, 130, 257}, "[2,2,3]", 12, OCTAVO_SAFETENSORS_SCALE_BLOCKS, false},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(shapes); i++) {
        const uint64_t *n = shapes[i].n;
        model m;
        octavo_safetensors_scale scale = {0};
        octavo_error error = {0};
        begin(&m, shapes[i].weight, (size_t)(n[0] * n[1] * n[2]));
        add_scales(&m, i % 2 == 0 ? "w_scale" : "w_scale_inv", shapes[i].scale, shapes[i].count);
        open_model(&m);
        if (octavo_safetensors_find_scale(m.safetensors, m.weight, NULL, &scale, &error) !=
            OCTAVO_OK) {
            fail_msg("%s", error.message);
        }
        assert_int_equal(scale.kind, shapes[i].kind);
        for (uint64_t a = 0; a < n[0]; a++) {
            for (uint64_t r = 0; r < n[1]; r++) {
                for (uint64_t c = 0; c < n[2]; c++) {
                    uint64_t index = safetensors_walk_index(&scale, a, r, c);
                    uint64_t wanted = expected_index(shapes[i].kind, shapes[i].shared, n, a, r, c);
                    if (index != wanted) {
                        fail_msg("weight %s scale %s: [%d, %d, %d] has scale %d, not %d",
                                 shapes[i].weight, shapes[i].scale, (int)a, (int)r, (int)c,
                                 (int)index, (int)wanted);
                    }
                }
            }
        }
        for (size_t k = 0; k < shapes[i].count; k++) {
            float value = octavo_safetensors_scale_value(&scale, k);
            assert_int_equal(octavo_f32_bits(value), octavo_f32_bits((float)(k + 1)));
        }
        end(&m);
    }
}

static void test_wrong_shapes(void **unused) {
    (void)unused;
    static const struct {
        const char *weight;
        size_t bytes;
        const char *scale;
        size_t count;
    } shapes[] = {
        {"[3,5]", 15, "[5]", 5},          {"[3,5]", 15, "[4]", 4},
        {"[3,5]", 15, "[3,5]", 15},       {"[3,5]", 15, "[5,1]", 5},
        {"[3,5]", 15, "[0]", 0},          {"[3,5]", 15, "[1,1,1]", 1},
        {"[256,256]", 65536, "[2,1]", 2}, {"[256,256]", 65536, "[4,4]", 16},
        {"[256,256]", 65536, "[4]", 4},   {"[4,3,5]", 60, "[3]", 3},
        {"[4,3,5]", 60, "[3,4,1]", 12},   {"[4,3,5]", 60, "[1,3,1]", 3},
        {"[0,5]", 0, "[0]", 0},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(shapes); i++) {
        model m;
        char text[80];
        begin(&m, shapes[i].weight, shapes[i].bytes);
        add_scales(&m, "w_scale", shapes[i].scale, shapes[i].count);
        snprintf(text, sizeof(text), "tensor \"w_scale\" (f8): scales [");
        refused(&m, OCTAVO_ERROR_FORMAT, text);
    }
    model m;
    begin(&m, "[4,5]", 20);
    add_scales(&m, "w_scale_inv", "[2,3]", 6);
    refused(&m, OCTAVO_ERROR_FORMAT,
            "tensor \"w_scale_inv\" (f8): scales [2, 3] do not fit the weight [4, 5], one for all");
}

static void test_refusals(void **unused) {
    (void)unused;
    model m;
    begin(&m, "[4,5]", 20);
    refused(&m, OCTAVO_ERROR_NOT_FOUND,
            "tensor \"w\" (f8): it is of type F8_E4M3 and has no scales, neither _scale nor "
            "_scale_inv");
    begin(&m, "[4,5]", 20);
    add_scales(&m, "w_scale", "[]", 1);
    add_scales(&m, "w_scale_inv", "[]", 1);
    refused(&m, OCTAVO_ERROR_FORMAT, "tensor \"w\" (f8): it has scales of both names");
    begin(&m, "[4,5]", 20);
    safetensors_writer_tensor(&m.writer, "w_scale", "I32", "[]", NULL, 4);
    refused(&m, OCTAVO_ERROR_UNSUPPORTED, "tensor \"w_scale\" (f8): scales of type I32 are not");
    begin(&m, "[4,5]", 20);
    safetensors_writer_tensor(&m.writer, "w_scale", "F3_E1M1", "[]", NULL, 4);
    refused(&m, OCTAVO_ERROR_UNSUPPORTED, "scales of type F3_E1M1 are not supported");
    begin(&m, "[20]", 20);
    add_scales(&m, "w_scale", "[]", 1);
    refused(&m, OCTAVO_ERROR_INVALID, "not F8_E4M3 [20]");
    begin(&m, "[1,2,2,5]", 20);
    add_scales(&m, "w_scale", "[]", 1);
    refused(&m, OCTAVO_ERROR_INVALID, "not F8_E4M3 [1, 2, 2, 5]");
    m = (model){0};
    safetensors_writer_tensor(&m.writer, "w", "BF16", "[2,2]", NULL, 8);
    add_scales(&m, "w_scale", "[]", 1);
    refused(&m, OCTAVO_ERROR_INVALID, "tensor \"w\" (f8): only matrices");
}

/* Each type of scale, at an odd address too. */
static void test_values(void **unused) {
    (void)unused;
    static const struct {
        const char *dtype;
        uint8_t bytes[8]; /* two scales, little-endian */
        size_t size;
        uint32_t bits[2];
    } types[] = {
        {"F32", {0, 0, 0x40, 0x40, 0, 0, 0, 0xbf}, 8, {0x40400000, 0xbf000000}},
        {"F16", {0, 0x42, 1, 0}, 4, {0x40400000, 0x33800000}},
        {"BF16", {0x40, 0x40, 0, 0xbf}, 4, {0x40400000, 0xbf000000}},
        {"F8_E8M0", {128, 0}, 2, {0x40000000, 0x00400000}},
        {"F8_E8M0", {254, 1}, 2, {0x7f000000, 0x00800000}},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        for (size_t padding = 0; padding < 2; padding++) {
            model m = {.writer = {.padding = padding}};
            octavo_safetensors_scale scale = {0};
            safetensors_writer_tensor(&m.writer, "w", "F8_E5M2", "[2,3]", NULL, 6);
            safetensors_writer_tensor(&m.writer, "w_scale", types[i].dtype, "[2]", types[i].bytes,
                                      types[i].size);
            open_model(&m);
            assert_int_equal(
                octavo_safetensors_find_scale(m.safetensors, m.weight, NULL, &scale, NULL),
                OCTAVO_OK);
            for (size_t k = 0; k < 2; k++) {
                assert_int_equal(octavo_f32_bits(octavo_safetensors_scale_value(&scale, k)),
                                 types[i].bits[k]);
            }
            end(&m);
        }
    }
    model m;
    octavo_safetensors_scale scale = {0};
    begin(&m, "[2,3]", 6);
    safetensors_writer_tensor(&m.writer, "w_scale", "F8_E8M0", "[]", "\xff", 1);
    open_model(&m);
    assert_int_equal(octavo_safetensors_find_scale(m.safetensors, m.weight, NULL, &scale, NULL),
                     OCTAVO_OK);
    assert_true(isnan(octavo_safetensors_scale_value(&scale, 0)));
    end(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_wrong_shapes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
