/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's weights in random parts and in halves against the whole: values, extents, orders,
 * factors, and what is counted.
 */
#ifndef OCTAVO_TESTS_MODEL_WEIGHTS_CHECK_H
#define OCTAVO_TESTS_MODEL_WEIGHTS_CHECK_H

#include "weights_walk.h"

#include <math.h>

/* ---- random parts ---- */

static inline void choose_axis(walk *w, int64_t *begin, int64_t *end, int64_t step) {
    const int64_t extent = *end, cuts = extent / step;
    const uint32_t way = walk_random(w, 10);
    if (way == 0 || extent == 0) return; /* whole */
    int64_t a = (int64_t)walk_random(w, (uint64_t)cuts + 1) * step;
    int64_t b = (int64_t)walk_random(w, (uint64_t)cuts + 1) * step;
    if (way == 1) b = a; /* empty */
    if (way == 2) b = extent;
    *begin = a < b ? a : b;
    *end = a < b ? b : a;
}

static inline void choose_parts(walk *w, const octavo_model_weights *weights) {
    for (int i = 0; i < w->n; i++) {
        octavo_weight_part *part = &w->members[i].part;
        const octavo_weight_member at = w->members[i].at;
        *part = w->members[i].whole;
        choose_axis(w, &part->n0, &part->n1, 1);
        choose_axis(w, &part->e0, &part->e1, 1);
        if (walk_is_matrix(at))
            choose_axis(w, &part->k0, &part->k1,
                        octavo_weight_info_of(walk_weight(weights, at)->type)->record_inputs);
    }
}

/* ---- against the whole ---- */

static inline void unpack_row(const octavo_weight *weight, int64_t e, int64_t row, float *values) {
    const size_t panel_bytes = octavo_weight_panel_bytes(weight->type, weight->k);
    const size_t matrix_bytes = octavo_weight_bytes(weight->type, weight->n, weight->k);
    const uint8_t *panel =
        weight->data + (size_t)e * matrix_bytes + (size_t)(row / OCTAVO_PANEL) * panel_bytes;
    octavo_weight_unpack_row(weight->type, values, panel, (int)(row % OCTAVO_PANEL), weight->k);
}

static inline int64_t matrices_of(const octavo_weight_part *part, const octavo_weight_part *whole) {
    return whole->e1 == 0 ? 1 : part->e1 - part->e0;
}

/* Bytes of the part. */
static inline uint64_t check_matrix(const walk *w, const walk_member *m, const octavo_weight *whole,
                                    const octavo_weight *got) {
    static float want[1 << 14], row[1 << 14];
    const octavo_weight_part *p = &m->part;
    const int64_t high = matrices_of(p, &m->whole), k = p->k1 - p->k0;
    assert_true(whole->k <= (int64_t)OCTAVO_COUNT(want));
    assert_int_equal(got->type, whole->type);
    assert_int_equal(got->n, p->n1 - p->n0);
    assert_int_equal(got->k, k);
    assert_int_equal(got->stack, p->e1 - p->e0);
    assert_int_equal(got->factors != NULL, whole->factors != NULL);
    assert_int_equal(got->order != NULL, whole->order != NULL);
    const uint64_t bytes = (uint64_t)high * octavo_weight_bytes(got->type, got->n, k);
    assert_int_equal(got->data != NULL, bytes > 0);
    for (int64_t e = 0; e < high; e++) {
        const int64_t from = whole->stack ? p->e0 + e : 0;
        if (whole->factors) assert_true(got->factors[e] == whole->factors[from]);
        for (int64_t j = 0; whole->order && j < k; j++)
            assert_int_equal(got->order[e * k + j], whole->order[from * whole->k + p->k0 + j]);
        for (int64_t i = 0; bytes > 0 && i < got->n; i++) {
            unpack_row(whole, from, p->n0 + i, want);
            unpack_row(got, e, i, row);
            if (memcmp(row, want + p->k0, (size_t)k * sizeof *row) != 0)
                fail_msg("%s: layer %d, offset %zu, %s: output %lld of [%lld, %lld) x [%lld, %lld) "
                         "of matrix %lld is not the whole's",
                         w->path, m->at.layer, m->at.offset, octavo_weight_info_of(got->type)->name,
                         (long long)(p->n0 + i), (long long)p->n0, (long long)p->n1,
                         (long long)p->k0, (long long)p->k1, (long long)from);
        }
    }
    return bytes;
}

static inline uint64_t check_vector(const walk *w, const walk_member *m, const float *whole,
                                    const float *got) {
    const octavo_weight_part *p = &m->part;
    const int64_t high = matrices_of(p, &m->whole), n = p->n1 - p->n0;
    assert_int_equal(got != NULL, whole != NULL);
    for (int64_t e = 0; e < high; e++) {
        const float *want = whole + (m->whole.e1 ? p->e0 + e : 0) * m->whole.n1 + p->n0;
        if (memcmp(got + e * n, want, (size_t)n * sizeof *got) != 0)
            fail_msg("%s: layer %d, offset %zu: the vector's part is not the whole's", w->path,
                     m->at.layer, m->at.offset);
    }
    return (uint64_t)(high * n) * sizeof *got;
}

static inline void check_load(walk *w, octavo_pool *pool, octavo_weights kind,
                              const octavo_model_weights *whole, octavo_model_weights *got) {
    octavo_error error;
    uint64_t bytes = 0;
    walk_must(walk_load(w, pool, kind, got, &error), &error);
    for (int i = 0; i < w->n; i++) {
        const walk_member *m = &w->members[i];
        const octavo_weight_member at = octavo_weights_member(got, walk_find(got, m->at));
        assert_int_equal(at.layer, m->at.layer);
        assert_int_equal(at.offset, m->at.offset);
        if (walk_is_matrix(m->at))
            bytes += check_matrix(w, m, walk_weight(whole, m->at), walk_weight(got, m->at));
        else
            bytes += check_vector(w, m, walk_vector(whole, m->at), walk_vector(got, m->at));
    }
    assert_int_equal(got->is_tied, whole->is_tied);
    if (got->is_tied) assert_memory_equal(&got->output, &got->embed, sizeof got->embed);
    assert_int_equal(got->packed_bytes, bytes);
    assert_int_equal(w->done, w->total);
    assert_int_equal(w->done, got->source_bytes);
}

/* Every matrix is asked for. */
static inline void check_members(walk *w, const octavo_model_weights *weights) {
    for (int layer = 0; layer < weights->n_layers; layer++)
        for (size_t i = 0; i < OCTAVO_COUNT(walk_layer_matrices); i++) {
            const octavo_weight_member at = {layer, walk_layer_matrices[i]};
            assert_int_equal(walk_member_of(w, at) != NULL, walk_weight(weights, at)->n > 0);
        }
    for (size_t i = 0; i < OCTAVO_COUNT(walk_model_matrices); i++) {
        const octavo_weight_member at = {OCTAVO_NO_LAYER, walk_model_matrices[i]};
        const bool is_output = at.offset == offsetof(octavo_model_weights, output);
        assert_int_equal(walk_member_of(w, at) != NULL,
                         walk_weight(weights, at)->n > 0 && !(is_output && weights->is_tied));
    }
}

/* Two halves read what the whole reads: no part twice, but for rounding and the factors of a stack.
 */
static inline void check_halves(walk *w, octavo_pool *pool, octavo_weights kind,
                                const octavo_model_weights *whole) {
    static const char axes[] = {'n', 'k', 'e'};
    for (size_t a = 0; a < sizeof axes; a++) {
        uint64_t packed = 0, read = 0;
        for (int half = 0; half < 2; half++) {
            octavo_model_weights got;
            for (int i = 0; i < w->n; i++) {
                walk_member *m = &w->members[i];
                const bool is_matrix = walk_is_matrix(m->at);
                const int64_t step =
                    is_matrix
                        ? octavo_weight_info_of(walk_weight(whole, m->at)->type)->record_inputs
                        : 1;
                octavo_weight_part *p = &m->part;
                *p = m->whole;
                int64_t *begin = &p->n0, *end = &p->n1, cut = p->n1 / 2;
                if (axes[a] == 'e' && p->e1 > 0) {
                    begin = &p->e0, end = &p->e1, cut = p->e1 / 2;
                } else if (axes[a] == 'k' && is_matrix) {
                    begin = &p->k0, end = &p->k1, cut = p->k1 / step / 2 * step;
                }
                *(half ? begin : end) = cut;
            }
            check_load(w, pool, kind, whole, &got);
            packed += got.packed_bytes;
            read += got.source_bytes;
            octavo_weights_deinit(&got);
        }
        const double slack = 0.03 * (double)whole->source_bytes;
        if (fabs((double)read - (double)whole->source_bytes) > slack ||
            packed < whole->packed_bytes)
            fail_msg("%s: halves of %c read %llu and hold %llu bytes, the whole %llu and %llu",
                     w->path, axes[a], (unsigned long long)read, (unsigned long long)packed,
                     (unsigned long long)whole->source_bytes,
                     (unsigned long long)whole->packed_bytes);
    }
}

static inline bool check_model(const char *path, octavo_pool *pool) {
    static const octavo_weights kinds[] = {OCTAVO_WEIGHTS_FILE, OCTAVO_WEIGHTS_F32,
                                           OCTAVO_WEIGHTS_BF16, OCTAVO_WEIGHTS_Q8,
                                           OCTAVO_WEIGHTS_Q4};
    static walk w;
    if (!walk_open(&w, path)) return false;
    for (size_t i = 0; i < OCTAVO_COUNT(kinds); i++) {
        octavo_model_weights whole, got;
        walk_load_whole(&w, pool, kinds[i], &whole);
        check_members(&w, &whole);
        for (int round = 0; round < (i == 0 ? 4 : 1); round++) {
            choose_parts(&w, &whole);
            check_load(&w, pool, kinds[i], &whole, &got);
            octavo_weights_deinit(&got);
        }
        if (i == 0) check_halves(&w, pool, kinds[i], &whole);
        octavo_weights_deinit(&whole);
    }
    walk_close(&w);
    return true;
}

#endif
