/* SPDX-License-Identifier: Apache-2.0
 *
 * Dots of every weight type and kind of activations against exact sums in double precision, within
 * the bounds of matmul.h; and the same bits for a row whatever rows it is computed with.
 */
#include "base/compiler.h"
#include "kernels/matmul.h"
#include "kernels/weight_layout.h"
#include "tester.h"
#include "weight_samples.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct subject {
    octavo_weight_type type;
    bool is_q8;
    const octavo_matmul_kernels *level;
    octavo_dot_fn *dot;
} subject;

/* One problem: a panel of n rows and OCTAVO_TILE_ROWS rows of activations. */
typedef struct problem {
    const subject *s;
    weight_sample sample;
    tester_fill fill;
    int n;
    int64_t k, k0, k1;
    uint8_t *panel;
    float *x;           /* [OCTAVO_TILE_ROWS][k] */
    octavo_q8_block *q; /* [OCTAVO_TILE_ROWS][k / 32] */
    size_t x_stride;
} problem;

static void make_problem(tester *t, problem *p) {
    uint64_t state = tester_random(t) | 1u;
    const octavo_weight_type type = p->s->type;
    const size_t row_bytes = weight_row_bytes(type, p->k);
    const size_t blocks = (size_t)p->k / OCTAVO_BLOCK;
    uint8_t *rows = tester_buffer(t, "rows", row_bytes * (size_t)p->n, 1);
    p->panel = tester_buffer(t, "panel", octavo_weight_panel_bytes(type, p->k), 64);
    p->x = tester_buffer(t, "x", OCTAVO_TILE_ROWS * (size_t)p->k * sizeof *p->x, sizeof *p->x);
    tester_fill_f32(t, p->x, OCTAVO_TILE_ROWS * p->k, p->fill);
    tester_seal(t, p->x);
    weight_sample_fill(type, p->sample, rows, p->n, p->k, &state);
    octavo_weight_pack(type, p->panel, rows, row_bytes, p->n, p->k);
    tester_seal(t, p->panel);
    p->x_stride = (size_t)p->k * sizeof *p->x;
    if (!p->s->is_q8) return;
    p->x_stride = blocks * sizeof *p->q;
    p->q = tester_buffer(t, "q", OCTAVO_TILE_ROWS * p->x_stride, sizeof(float));
    for (size_t i = 0; i < OCTAVO_TILE_ROWS * blocks; i++)
        q8_sample_block(p->q + i, p->x + i * OCTAVO_BLOCK);
    tester_seal(t, p->q);
}

/* One block of one output, with the operands as they are: adds to *sum, magnitudes to *size. */
static void add_exact_block(const octavo_weight_run *w, const octavo_q8_block *x, double *sum,
                            double *size) {
    double dot = 0.0, low = 0.0, low_size = 0.0;
    for (int half = 0; half < 2; half++) {
        double part = 0.0, x_sum = 0.0;
        for (int i = 16 * half; i < 16 * half + 16; i++) {
            part += (double)(w->value[i] * x->q[i]);
            x_sum += x->q[i];
        }
        dot += (double)w->scale[half] * part;
        if (!w->has_m) continue;
        low += (double)w->m[half] * (double)x->d * x_sum;
        low_size += fabs((double)w->m[half] * (double)x->d * x_sum);
    }
    double product = dot * (double)w->d * (double)x->d;
    *sum += product + low;
    /* the product of both d may be too small for an f32 to be exact */
    *size += fabs(product) + low_size + fabs(dot) * 0x1p-128;
}

/* want: the exact sums, size: those of the magnitudes; both [OCTAVO_TILE_ROWS][32]. */
static void exact_q8(const problem *p, double *want, double *size) {
    for (int64_t k = p->k0; k < p->k1; k += OCTAVO_BLOCK) {
        for (int o = 0; o < OCTAVO_PANEL; o++) {
            octavo_weight_run run;
            octavo_weight_run_load(p->s->type, &run, p->panel, k, o);
            for (int r = 0; r < OCTAVO_TILE_ROWS; r++) {
                const octavo_q8_block *row = p->q + r * (p->k / OCTAVO_BLOCK);
                const int at = r * OCTAVO_PANEL + o;
                add_exact_block(&run, row + k / OCTAVO_BLOCK, &want[at], &size[at]);
            }
        }
    }
}

static void exact_f32(const problem *p, const float *w, double *want, double *size) {
    for (int64_t k = p->k0; k < p->k1; k++) {
        for (int i = 0; i < OCTAVO_TILE_ROWS * OCTAVO_PANEL; i++) {
            double product = (double)w[k * OCTAVO_PANEL + i % OCTAVO_PANEL] *
                             (double)p->x[i / OCTAVO_PANEL * p->k + k];
            want[i] += product;
            size[i] += fabs(product);
        }
    }
}

static void exact(tester *t, const problem *p, double *want, double *bound) {
    const double eps = 0x1p-24, n = (double)(p->k1 - p->k0);
    const double factor = p->s->is_q8 ? 8.0 * eps * n / OCTAVO_BLOCK : eps * n;
    memset(want, 0, OCTAVO_TILE_ROWS * OCTAVO_PANEL * sizeof *want);
    memset(bound, 0, OCTAVO_TILE_ROWS * OCTAVO_PANEL * sizeof *bound);
    if (p->s->is_q8) {
        exact_q8(p, want, bound);
    } else {
        float *w = tester_buffer(t, "w", (size_t)p->k * OCTAVO_PANEL * sizeof *w, 64);
        octavo_weight_unpack(p->s->type, w, p->panel, 0, p->k);
        exact_f32(p, w, want, bound);
    }
    /* the second term: what products below the smallest normal number lose */
    for (int i = 0; i < OCTAVO_TILE_ROWS * OCTAVO_PANEL; i++)
        bound[i] = bound[i] * factor + n * 0x1p-148;
}

static void check_problem(tester *t, problem *p) {
    enum { SIZE = OCTAVO_TILE_ROWS * OCTAVO_PANEL };
    double want[SIZE], bound[SIZE];
    tester_context(t, "n=%d k=%lld [%lld, %lld) weights=%s x=%s", p->n, (long long)p->k,
                   (long long)p->k0, (long long)p->k1, weight_sample_name(p->sample),
                   tester_fill_name(p->fill));
    make_problem(t, p);
    const void *x = p->s->is_q8 ? (const void *)p->q : p->x;
    float *all = tester_buffer(t, "acc", SIZE * sizeof *all, 64);
    p->s->dot(all, p->panel, x, p->x_stride, OCTAVO_TILE_ROWS, p->k0, p->k1);
    exact(t, p, want, bound);
    if (p->sample == WEIGHT_SAMPLE_NONFINITE) {
        /* output 5 is whatever it is, the others must not see it */
        for (int r = 0; r < OCTAVO_TILE_ROWS; r++)
            want[r * OCTAVO_PANEL + 5] = (double)all[r * OCTAVO_PANEL + 5];
        for (int r = 0; r < OCTAVO_TILE_ROWS; r++)
            bound[r * OCTAVO_PANEL + 5] = 0.0;
    }
    tester_near_f32(t, "acc", all, want, bound, SIZE);
    for (int n_rows = 1; n_rows < OCTAVO_TILE_ROWS; n_rows++) {
        float *some = tester_buffer(t, "acc", (size_t)n_rows * OCTAVO_PANEL * sizeof *some, 64);
        for (int r = 0; r + n_rows <= OCTAVO_TILE_ROWS; r += n_rows) {
            p->s->dot(some, p->panel, (const uint8_t *)x + (size_t)r * p->x_stride, p->x_stride,
                      n_rows, p->k0, p->k1);
            tester_equal_f32(t, "rows apart", some, all + r * OCTAVO_PANEL, n_rows * OCTAVO_PANEL);
        }
    }
    tester_release(t);
}

static void check_shapes(tester *t, const subject *s) {
    static const int64_t widths[] = {1, 2, 31, 32, 64, 95, 256, 576, 896, 4864};
    const octavo_weight_info *info = octavo_weight_info_of(s->type);
    for (size_t i = 0; i < OCTAVO_COUNT(widths); i++) {
        int64_t k = widths[i];
        if (k % info->source_inputs) continue;
        if (tester_flags(t) == 0 && k > 1024) continue; /* minutes, where it is emulated */
        problem p = {.s = s, .n = 32, .k = k, .k1 = k};
        check_problem(t, &p);
        int64_t records = k / info->record_inputs;
        if (records < 2) continue;
        p.k0 = tester_between(t, 1, records - 1) * info->record_inputs;
        p.n = (int)tester_between(t, 1, 31);
        check_problem(t, &p);
        p.k1 = p.k0;
        p.k0 = 0;
        check_problem(t, &p);
    }
}

static void check_values(tester *t, const subject *s) {
    static const tester_fill fills[] = {TESTER_FILL_NORMAL,    TESTER_FILL_ZERO,
                                        TESTER_FILL_SPARSE,    TESTER_FILL_DENORMAL,
                                        TESTER_FILL_ALTERNATE, TESTER_FILL_OUTLIER};
    for (int sample = 0; sample <= WEIGHT_SAMPLE_NONFINITE; sample++)
        for (size_t i = 0; i < OCTAVO_COUNT(fills); i++)
            check_problem(t, &(problem){.s = s,
                                        .sample = (weight_sample)sample,
                                        .fill = fills[i],
                                        .n = 32,
                                        .k = 512,
                                        .k1 = 512});
}

/* One row over a matrix larger than any cache, and many rows over the shapes of small models. */
static void bench(tester *t, const subject *s, int64_t n_rows, int64_t n, int64_t k) {
    const octavo_weight_info *info = octavo_weight_info_of(s->type);
    if (k % info->source_inputs) return;
    const size_t panel_bytes = octavo_weight_panel_bytes(s->type, k);
    const int64_t n_panels = n / OCTAVO_PANEL;
    const octavo_slices slices = octavo_slices_make(k, info->record_inputs);
    const double bytes = (double)panel_bytes * (double)n_panels;
    octavo_matmul_args args = {.type = s->type,
                               .n = n,
                               .k = k,
                               .slices = &slices,
                               .slice_end = slices.n,
                               .is_q8 = s->is_q8,
                               .n_rows = n_rows,
                               .out_stride = n};
    char label[48];
    snprintf(label, sizeof label, "%lld x %lld x %lld", (long long)n_rows, (long long)n,
             (long long)k);
    tester_bench(t, label,
                 &(tester_work){.bytes = bytes,
                                .ops = 2.0 * (double)n_rows * (double)n * (double)k,
                                .peak = s->is_q8 ? TESTER_PEAK_INT8 : TESTER_PEAK_F32});
    if (!tester_run(t)) return; /* not asked for: no large buffers */
    uint64_t state = 1;
    uint8_t *rows = tester_buffer(t, "rows", weight_row_bytes(s->type, k) * OCTAVO_PANEL, 64);
    uint8_t *weight = tester_buffer(t, "weight", panel_bytes * (size_t)n_panels, 64);
    float *x = tester_buffer(t, "x", (size_t)(n_rows * k) * sizeof *x, 64);
    octavo_q8_block *q = tester_buffer(t, "q", (size_t)(n_rows * k / OCTAVO_BLOCK) * sizeof *q, 64);
    args.out = tester_buffer(t, "out", (size_t)(n_rows * n) * sizeof *args.out, 64);
    args.weight = weight;
    args.x = s->is_q8 ? (const void *)q : x;
    args.x_stride = s->is_q8 ? (size_t)k / OCTAVO_BLOCK * sizeof *q : (size_t)k * sizeof *x;
    weight_sample_fill(s->type, WEIGHT_SAMPLE_NORMAL, rows, OCTAVO_PANEL, k, &state);
    octavo_weight_pack(s->type, weight, rows, weight_row_bytes(s->type, k), OCTAVO_PANEL, k);
    for (int64_t i = 1; i < n_panels; i++)
        memcpy(weight + (size_t)i * panel_bytes, weight, panel_bytes);
    tester_fill_f32(t, x, n_rows * k, TESTER_FILL_NORMAL);
    for (int64_t i = 0; i < n_rows * k / OCTAVO_BLOCK; i++)
        q8_sample_block(q + i, x + i * OCTAVO_BLOCK);
    do {
        octavo_matmul(s->level, &args, 0, n_panels);
    } while (tester_run(t));
    tester_release(t);
}

static void check_dot(tester *t, const void *arg) {
    const subject *s = arg;
    check_shapes(t, s);
    check_values(t, s);
    const size_t panel_bytes = octavo_weight_panel_bytes(s->type, 4096);
    const int64_t many = (int64_t)((96u << 20) / panel_bytes) * OCTAVO_PANEL;
    bench(t, s, 128, 1536, 576);
    if (tester_flags(t) == 0) return; /* takes minutes */
    bench(t, s, 1, many, 4096);
    bench(t, s, 4, many, 4096);
    bench(t, s, 8, many, 4096);
    bench(t, s, 512, 1536, 576);
    bench(t, s, 512, 4864, 896);
    bench(t, s, 512, 2048, 2048);
}

void check_matmul(tester *t);

void check_matmul(tester *t) {
    octavo_matmul_kernels level;
    octavo_matmul_kernels_init(&level, tester_flags(t));
    for (int i = 0; i < 2 * OCTAVO_WEIGHT_TYPES; i++) {
        subject s = {.type = (octavo_weight_type)(i / 2), .is_q8 = i % 2, .level = &level};
        const octavo_weight_info *info = octavo_weight_info_of(s.type);
        if (s.is_q8 && !info->is_quantised) continue;
        s.dot = s.is_q8 ? level.dot_q8[s.type] : level.dot_f32[s.type];
        char name[32];
        snprintf(name, sizeof name, "dot_%s_%s", s.is_q8 ? "q8" : "f32", info->name);
        tester_check(t, name, (tester_function *)s.dot, check_dot, &s);
    }
}
