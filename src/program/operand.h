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

/* Rows that the tensor has in the step at hand. */
static inline int64_t octavo_rows_of(octavo_run *run, int id) {
    const octavo_tensor *tensor = octavo_tensor_at(run, id);
    if (tensor->axes[0] == 'r') return run->row_end - run->row_begin;
    return run->step->n_tokens * (tensor->axes[0] == 'p' ? tensor->extent[0] : 1);
}

typedef struct octavo_row_range {
    int64_t begin, end;
} octavo_row_range;

static inline octavo_row_range octavo_share_rows(octavo_run *run, int id, int thread,
                                                 int n_threads) {
    octavo_row_range range;
    octavo_pool_share(octavo_rows_of(run, id), 1, thread, n_threads, &range.begin, &range.end);
    return range;
}

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

/* The vector of an operand that may be none. */
static inline const float *octavo_vector_of(octavo_run *run, int id) {
    return id == OCTAVO_NO_TENSOR ? NULL : octavo_tensor_at(run, id)->vector;
}

#endif
