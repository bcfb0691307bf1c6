/* SPDX-License-Identifier: Apache-2.0 */
#include "rank_weights.h"

#include "program/operand.h"

#include <string.h>

static void *must(void *p) {
    assert_non_null(p);
    return p;
}

static const world_matrix *matrix_of(const world *w, const octavo_tensor *tensor) {
    for (int i = 0; i < w->n_matrices; i++)
        if (&w->matrices[i].weight == tensor->weight) return &w->matrices[i];
    fail_msg("no matrix \"%s\"", tensor->name);
    return NULL;
}

/* Numbers, in the whole, of the elements of some axes that are in the ranges, ascending. */
static int64_t list_box(const octavo_tensor *tensor, const octavo_range *ranges, int first, int n,
                        int64_t *list) {
    int64_t count = 0;
    const int64_t outer = n > 1 ? tensor->extent[first] : 1;
    const int inner_axis = n > 1 ? first + 1 : first;
    for (int64_t i = 0; i < outer; i++) {
        if (n > 1 && (i < ranges[first].begin || i >= ranges[first].end)) continue;
        for (int64_t j = ranges[inner_axis].begin; n > 0 && j < ranges[inner_axis].end; j++)
            list[count++] = i * tensor->extent[inner_axis] + j;
    }
    return count;
}

/* By what octavo_weight_outputs_at says where the weight is used; a table's outputs are first. */
static int outputs_at(const octavo_program *program, int id) {
    for (int i = 0; i < program->n_ops; i++) {
        const octavo_op *op = &program->ops[i];
        if (op->in[1] != id) continue;
        if (op->kind == OCTAVO_OP_EMBED) return 0;
        if (op->kind == OCTAVO_OP_MATMUL) return octavo_weight_outputs_at(program, op);
        if (op->kind == OCTAVO_OP_EXPERT_MATMUL) return 2;
    }
    fail_msg("weight \"%s\" is not used", program->tensors[id].name);
    return 0;
}

static void cut_matrix(const world *w, int id, const octavo_range *ranges, world_matrix *part) {
    const octavo_tensor *tensor = &w->program.tensors[id];
    const world_matrix *m = matrix_of(w, tensor);
    const octavo_weight_info *info = octavo_weight_info_of(m->weight.type);
    const int stack = m->weight.stack > 0, at = outputs_at(&w->program, id);
    const int n_axes = (int)strlen(tensor->axes);
    const int in_at = at == 0 ? 1 : stack;
    const int n_in = at == 0 ? n_axes - 1 : at - stack, n_out = n_axes - stack - n_in;
    int64_t *outputs = must(octavo_alloc_zero((size_t)m->weight.n + 1, sizeof *outputs));
    int64_t *inputs = must(octavo_alloc_zero((size_t)m->weight.k + 1, sizeof *inputs));
    const octavo_range experts = stack ? ranges[0] : (octavo_range){0, 1};
    part->weight = m->weight;
    part->weight.n = list_box(tensor, ranges, at, n_out, outputs);
    part->weight.k = list_box(tensor, ranges, in_at, n_in, inputs);
    part->weight.stack = stack ? experts.end - experts.begin : 0;
    const int64_t n_blocks = part->weight.k / info->source_inputs;
    const size_t block = (size_t)info->source_bytes;
    part->row_bytes = (size_t)n_blocks * block;
    part->blocks = must(octavo_alloc_zero(
        (size_t)((experts.end - experts.begin) * part->weight.n) * part->row_bytes + 1, 1));
    uint8_t *to = part->blocks;
    for (int64_t e = experts.begin; e < experts.end; e++)
        for (int64_t r = 0; r < part->weight.n; r++)
            for (int64_t b = 0; b < n_blocks; b++, to += block)
                memcpy(to,
                       m->blocks + (size_t)(e * m->weight.n + outputs[r]) * m->row_bytes +
                           (size_t)(inputs[b * info->source_inputs] / info->source_inputs) * block,
                       block);
    octavo_free(outputs);
    octavo_free(inputs);
    part->data = must(octavo_alloc_aligned(
        octavo_weight_bytes(part->weight.type, part->weight.n, part->weight.k) *
            (size_t)(experts.end - experts.begin) +
        OCTAVO_ALIGN));
    world_pack(&part->weight, part->data, part->blocks, part->row_bytes);
}

static float *cut_vector(const octavo_tensor *tensor, const octavo_range *ranges) {
    const int n_axes = (int)strlen(tensor->axes);
    int64_t *list = must(octavo_alloc_zero((size_t)octavo_elements_of(tensor), sizeof *list));
    const int64_t n = list_box(tensor, ranges, 0, n_axes, list);
    float *part = must(octavo_alloc_zero((size_t)n + 1, sizeof *part));
    for (int64_t i = 0; i < n; i++)
        part[i] = tensor->vector[list[i]];
    octavo_free(list);
    return part;
}

void rank_weights_cut(rank_weights *parts, const world *w, const octavo_mesh *mesh,
                      const octavo_rules *rules, int rank) {
    const size_t n = (size_t)w->program.n_tensors;
    const octavo_place place = octavo_mesh_place(mesh, rank);
    parts->bindings = must(octavo_alloc_zero(n, sizeof *parts->bindings));
    parts->matrices = must(octavo_alloc_zero(n, sizeof *parts->matrices));
    parts->vectors = must(octavo_alloc_zero(n, sizeof *parts->vectors));
    for (int id = 0; id < w->program.n_tensors; id++) {
        const octavo_tensor *tensor = &w->program.tensors[id];
        octavo_range ranges[OCTAVO_TENSOR_AXES];
        if (tensor->kind != OCTAVO_TENSOR_WEIGHT && tensor->kind != OCTAVO_TENSOR_VECTOR) continue;
        const octavo_layout layout =
            octavo_layout_by_rules(&w->program, id, OCTAVO_PHASE_GENERATE, mesh, rules);
        for (int i = 0; tensor->axes[i]; i++)
            ranges[i] = octavo_shard_of(&w->program, &w->axes, mesh, &place, &layout, id, i);
        if (tensor->kind == OCTAVO_TENSOR_WEIGHT) {
            cut_matrix(w, id, ranges, &parts->matrices[id]);
            parts->bindings[id].weight = &parts->matrices[id].weight;
        } else {
            parts->bindings[id].vector = parts->vectors[id] = cut_vector(tensor, ranges);
        }
    }
}

void rank_weights_free(rank_weights *parts, const world *w) {
    for (int id = 0; id < w->program.n_tensors && parts->bindings; id++) {
        octavo_free(parts->matrices[id].blocks);
        octavo_free_aligned(parts->matrices[id].data);
        octavo_free(parts->vectors[id]);
    }
    octavo_free(parts->bindings);
    octavo_free(parts->matrices);
    octavo_free(parts->vectors);
}
