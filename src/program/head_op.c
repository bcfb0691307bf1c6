/* SPDX-License-Identifier: Apache-2.0
 *
 * A matrix for each head: latent attention takes queries into the space of the cached latents, and
 * what it attended out of it.
 */
#include "program/operand.h"

#include <string.h>

/* Lanes behind those that are multiplied. */
static void copy_rest(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_tensor *x = octavo_tensor_at(run, op->in[2]);
    const octavo_tensor *out = octavo_tensor_at(run, op->out);
    const octavo_weight *weight = octavo_tensor_at(run, op->in[1])->weight;
    const int64_t n_rest = x->extent[2] - weight->k;
    octavo_range rows = octavo_share_rows(run, op->out, thread, n_threads);
    if (n_rest == 0) return;
    for (int64_t t = rows.begin; t < rows.end; t++) {
        const float *from = octavo_row_of(run, op->in[2], t);
        float *to = octavo_row_of(run, op->out, t);
        for (int64_t n = 0; n < x->extent[1]; n++)
            memcpy(to + n * out->extent[2] + weight->n, from + n * x->extent[2] + weight->k,
                   (size_t)n_rest * sizeof *to);
    }
}

/* Bytes from one head's lanes to the next's. */
static size_t head_bytes(const octavo_tensor *x) {
    return x->is_q8 ? (size_t)(x->extent[2] / OCTAVO_BLOCK) * sizeof(octavo_q8_block)
                    : (size_t)x->extent[2] * sizeof(float);
}

/* in: x as the weights take it, weights, x. Threads share the panels of all heads. */
void octavo_run_head_matmul(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    const octavo_tensor *x = octavo_tensor_at(run, op->in[0]);
    const octavo_tensor *out = octavo_tensor_at(run, op->out);
    const octavo_weight *weight = octavo_tensor_at(run, op->in[1])->weight;
    const size_t matrix_bytes = octavo_weight_bytes(weight->type, weight->n, weight->k);
    const int64_t n_panels = (weight->n + OCTAVO_PANEL - 1) / OCTAVO_PANEL;
    const int64_t first_head = x->begin[1] - octavo_tensor_at(run, op->in[1])->begin[0];
    int64_t low, high;
    copy_rest(run, op, thread, n_threads);
    octavo_pool_share(x->extent[1] * n_panels, 1, thread, n_threads, &low, &high);
    while (low < high) {
        const int64_t n = low / n_panels, first = low % n_panels;
        const int64_t last = high - n * n_panels < n_panels ? high - n * n_panels : n_panels;
        const octavo_matmul_args args = {
            .type = weight->type,
            .weight = octavo_data_of(run, op->in[1]) + (size_t)(first_head + n) * matrix_bytes,
            .n = weight->n,
            .k = weight->k,
            .slices = &op->params.slices,
            .slice_begin = 0,
            .slice_end = op->params.slices.n,
            .x = (const uint8_t *)octavo_row_of(run, op->in[0], 0) + (size_t)n * head_bytes(x),
            .x_stride = x->row_bytes,
            .is_q8 = x->is_q8,
            .n_rows = octavo_rows_of(run, op->out),
            .out = (float *)octavo_row_of(run, op->out, 0) + n * out->extent[2],
            .out_stride = (int64_t)(out->row_bytes / sizeof(float)),
            .factor = weight->factors ? weight->factors + first_head + n : NULL,
        };
        octavo_matmul(&run->matmul, &args, first, last);
        low = (n + 1) * n_panels;
    }
}
