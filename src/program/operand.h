/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands of ops in the step at hand.
 */
#ifndef OCTAVO_PROGRAM_OPERAND_H
#define OCTAVO_PROGRAM_OPERAND_H

#include "program/run.h"

static inline const octavo_tensor *octavo_tensor_at(octavo_run *run, int id) {
    return &run->program->tensors[id];
}

static inline void *octavo_row_of(octavo_run *run, int id, int64_t row) {
    const octavo_tensor *tensor = octavo_tensor_at(run, id);
    return run->arena + tensor->offset + (size_t)row * tensor->row_bytes;
}

static inline int64_t octavo_width_of(const octavo_tensor *tensor) {
    int64_t width = 1;
    for (int i = 1; tensor->axes[i]; i++)
        width *= tensor->extent[i];
    return width;
}

/* Of a vector. */
static inline int64_t octavo_elements_of(const octavo_tensor *tensor) {
    return tensor->extent[0] * octavo_width_of(tensor);
}

/* Rows that the tensor has in the step at hand: numbers among those of the step (t), or of those at
 * hand (r). */
static inline octavo_range octavo_range_of(const octavo_run *run, const octavo_tensor *tensor) {
    switch (tensor->axes[0]) {
    case 't':
        return run->t_rows[tensor->rows];
    case 'r':
        return run->r_rows[tensor->rows];
    case 'p':
        return (octavo_range){0, run->n_pairs};
    default:
        return (octavo_range){0, 1};
    }
}

static inline int64_t octavo_rows_of(octavo_run *run, int id) {
    const octavo_range rows = octavo_range_of(run, octavo_tensor_at(run, id));
    return rows.end - rows.begin;
}

/* Number of the tensor's first row in the step. */
static inline int64_t octavo_first_row(octavo_run *run, int id) {
    return octavo_range_of(run, octavo_tensor_at(run, id)).begin;
}

static inline octavo_range octavo_share_rows(octavo_run *run, int id, int thread, int n_threads) {
    octavo_range range;
    octavo_pool_share(octavo_rows_of(run, id), 1, thread, n_threads, &range.begin, &range.end);
    return range;
}

/* Rows [begin, end) of a place by a split: with `data` in it, which counts as the outermost, those
 * of its group, cut evenly by the other axes. offsets: [groups + 1]. */
octavo_range octavo_rows_at(const octavo_mesh *mesh, const octavo_place *place,
                            const octavo_split *split, const int32_t *offsets);

/* [t] of an input. */
static inline const int32_t *octavo_input_of(octavo_run *run, int id) {
    if (id == run->program->positions) return run->step->positions;
    return id == run->program->types ? run->step->types : run->step->ids;
}

/* Which keys attention of a plan sees. */
static inline octavo_attention_mask octavo_mask_of(const octavo_plan_key *key) {
    return (octavo_attention_mask){.type = key->is_encoder ? OCTAVO_ATTENTION_ENCODER
                                                           : OCTAVO_ATTENTION_DECODER,
                                   .window = key->window,
                                   .chunk = key->chunk};
}

/* The vector of an operand that may be none. One that came from other ranks is in the arena. */
static inline const float *octavo_vector_of(octavo_run *run, int id) {
    if (id == OCTAVO_NO_TENSOR) return NULL;
    const octavo_tensor *tensor = octavo_tensor_at(run, id);
    if (tensor->kind == OCTAVO_TENSOR_ACTIVATION) return octavo_row_of(run, id, 0);
    return tensor->vector;
}

/* Of a weight. One that came from other ranks is in the arena. */
static inline const uint8_t *octavo_data_of(octavo_run *run, int id) {
    const octavo_weight *weight = octavo_tensor_at(run, id)->weight;
    return weight->data ? weight->data : octavo_row_of(run, id, 0);
}

/* Row 0 of what a reshard brings into another layout, as the rank has it. */
static inline const void *octavo_source_of(octavo_run *run, const octavo_op *op) {
    const octavo_tensor *from = octavo_tensor_at(run, op->in[0]);
    if (from->kind == OCTAVO_TENSOR_VECTOR) return from->vector;
    if (from->kind == OCTAVO_TENSOR_WEIGHT) return octavo_data_of(run, op->in[0]);
    return octavo_row_of(run, op->in[0], 0);
}

/* Column at which a rank's part of a tensor's rows (or of a vector) begins, if parts are runs. */
static inline int64_t octavo_first_column(const octavo_tensor *tensor) {
    const int first = tensor->kind == OCTAVO_TENSOR_VECTOR ? 0 : 1;
    int64_t column = 0;
    for (int i = first; tensor->axes[i]; i++)
        column = column * tensor->extent[i] + tensor->begin[i];
    return column;
}

/* The vector from the first column of `out` on. */
static inline const float *octavo_vector_for(octavo_run *run, int id, int out) {
    if (id == OCTAVO_NO_TENSOR) return NULL;
    return octavo_vector_of(run, id) + octavo_first_column(octavo_tensor_at(run, out)) -
           octavo_first_column(octavo_tensor_at(run, id));
}

/* Likewise of a bias [e, ...] that of the rank's expert e. */
static inline const float *octavo_expert_bias(octavo_run *run, int id, int64_t e, int out) {
    if (id == OCTAVO_NO_TENSOR) return NULL;
    const octavo_tensor *bias = octavo_tensor_at(run, id);
    const int first = bias->kind == OCTAVO_TENSOR_VECTOR ? 0 : 1;
    return octavo_vector_of(run, id) +
           (run->first_expert + e - bias->begin[first]) * bias->extent[first + 1] +
           octavo_tensor_at(run, out)->begin[1] - bias->begin[first + 1];
}

/* x of a product, row 0, at the weight's first input: a rank may have more of x than that, or not
 * have it; only what it has is read. */
static inline const void *octavo_first_input(octavo_run *run, const octavo_op *op) {
    const int64_t first = op->params.first_input;
    const ptrdiff_t bytes = octavo_tensor_at(run, op->in[0])->is_q8
                                ? first / OCTAVO_BLOCK * (ptrdiff_t)sizeof(octavo_q8_block)
                                : first * (ptrdiff_t)sizeof(float);
    return (const uint8_t *)octavo_row_of(run, op->in[0], 0) + bytes;
}

#endif
