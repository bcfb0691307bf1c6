/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of kv splits in a step: their room, who merges which of them, and what that makes of a
 * message.
 */
#include "program/operand.h"

bool octavo_records_room(const octavo_program *program, int index, int64_t heads, int64_t rows,
                         int64_t max_length, size_t *bytes) {
    const octavo_plan_key *key = &program->plans[index];
    int64_t seen = max_length;
    *bytes = 0;
    if (key->parts.n == 0 || heads == 0 || rows == 0) return true;
    if (key->window > 0 && key->window + rows + OCTAVO_KV_SPLIT < seen)
        seen = key->window + rows + OCTAVO_KV_SPLIT;
    const octavo_attention_limits limits = {
        .heads = {.n_q_heads = (int32_t)heads,
                  .head_dim = (int32_t)key->head_dim,
                  .value_dim = (int32_t)key->value_lanes},
        .splits = {.n_parts = octavo_split_degree(&key->parts, &program->mesh)},
        .max_tokens = rows,
    };
    *bytes = octavo_attention_records_bytes(&limits, seen);
    return *bytes > 0;
}

int octavo_own_part(const octavo_run *run, const octavo_op *op) {
    return octavo_split_index(&run->program->plans[op->params.plan].parts, &run->program->mesh,
                              &run->place);
}

octavo_attention_piece octavo_records_piece(octavo_run *run, const octavo_op *op, int part) {
    const octavo_program *program = run->program;
    const octavo_reshard *reshard = &program->reshards[op->params.reshard];
    const octavo_place place = octavo_mesh_place(&program->mesh, reshard->sources[part]);
    const octavo_split *split = &program->row_splits[octavo_tensor_at(run, op->out)->rows];
    const octavo_range rows = octavo_rows_at(&program->mesh, &place, split, run->token_offsets);
    const int64_t first = run->t_rows[program->plans[op->params.plan].rows].begin;
    return (octavo_attention_piece){rows.begin - first, rows.end - first,
                                    (int32_t)reshard->heads[part].begin,
                                    (int32_t)reshard->heads[part].end};
}

size_t octavo_records_bytes(octavo_run *run, const octavo_op *op, int part,
                            const octavo_attention_piece *piece) {
    const octavo_attention_plan *plan = &run->plans[op->params.plan].plan;
    return (size_t)octavo_attention_piece_records(plan, part, piece) *
           octavo_attention_record_bytes(&plan->limits.heads);
}
