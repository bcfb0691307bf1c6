/* SPDX-License-Identifier: Apache-2.0
 *
 * A norm of rows that are split over ranks: each sums its own slices, the sums are exchanged, and
 * each applies the whole to its part. Of a layer norm first the mean is taken away so. The bits are
 * those of octavo_rms_norm and octavo_layer_norm.
 */
#include "program/operand.h"

#include <math.h>

/* in: x. Of its squares; for a layer norm's mean of itself. */
void octavo_run_norm_sum(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_slices *slices = &op->params.slices;
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        const float *x = octavo_row_of(run, op->in[0], t);
        float *out = octavo_row_of(run, op->out, t), parts[OCTAVO_MAX_SLICES];
        for (int s = 0; s < slices->n; s++) {
            const int64_t begin = slices->cut[s], end = slices->cut[s + 1];
            parts[s] = op->params.norm == OCTAVO_NORM_LAYER
                           ? run->vector.sum(x, begin, end)
                           : run->vector.sum_squares(x, begin, end);
        }
        octavo_tree_add(parts, slices->n, 1, 1);
        *out = parts[0];
    }
}

/* in: x, scale, bias or none, sum. With the sum of a layer norm's mean only that is taken away. */
void octavo_run_norm_apply(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const int64_t n = octavo_width_of(octavo_tensor_at(run, op->out));
    const float *scale = octavo_vector_for(run, op->in[1], op->out);
    const float *bias = octavo_vector_for(run, op->in[2], op->out);
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    for (int64_t t = rows.begin; t < rows.end; t++) {
        const float *x = octavo_row_of(run, op->in[0], t);
        const float *sum = octavo_row_of(run, op->in[3], t);
        float *out = octavo_row_of(run, op->out, t);
        const float mean = *sum / (float)op->params.width;
        if (op->params.norm == OCTAVO_NORM_LAYER) {
            run->vector.shift(out, x, mean, n);
            continue;
        }
        run->vector.scale_mul(out, x, 1.0f / sqrtf(mean + op->params.eps), scale, n);
        if (bias) run->vector.add(out, out, bias, n);
    }
}
