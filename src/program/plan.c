/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory plan: lifetimes are known, so every activation gets a fixed place in one arena.
 * Tensors whose lifetimes meet never overlap; places are chosen largest first, each at the lowest
 * offset that is free for its whole life.
 */
#include "base/compiler.h"
#include "program/reshard.h"

/* Most rows that a rank has of a tensor: those of its data group or of all, cut by other axes. */
size_t octavo_most_rows(const octavo_program *program, const octavo_tensor *tensor) {
    const octavo_split *split = &program->row_splits[tensor->rows];
    const bool is_of_group = octavo_split_has(split, OCTAVO_MESH_DATA);
    const int groups = program->mesh.degree[OCTAVO_MESH_DATA];
    size_t rows = (size_t)(is_of_group ? program->max_group_tokens : program->max_tokens);
    size_t parts = (size_t)octavo_split_degree(split, &program->mesh);
    if (tensor->axes[0] == '1' || tensor->kind == OCTAVO_TENSOR_WEIGHT) return 1;
    if (tensor->axes[0] == 'r')
        rows = (size_t)program->max_rows * (size_t)(is_of_group ? 1 : groups);
    if (is_of_group) parts /= (size_t)groups;
    rows = (rows + parts - 1) / parts;
    return rows * (size_t)(tensor->axes[0] == 'p' ? tensor->extent[0] : 1);
}

static size_t tensor_bytes(const octavo_program *program, const octavo_tensor *tensor) {
    return octavo_align_up(tensor->row_bytes * octavo_most_rows(program, tensor), OCTAVO_ALIGN);
}

/* The last op that surely ends before the threads of all ranks meet after op `i`: where the head
 * begins they do, and at the end. */
static int last_before_meeting(const octavo_program *program, int i) {
    for (i++; i < program->n_ops; i++)
        if (program->ops[i].params.is_meeting || i == program->head_begin) break;
    return i - 1;
}

/* Other ranks may still read what was moved until all have met again. */
static void keep_for_peers(octavo_program *program) {
    for (int i = 0; i < program->n_ops; i++) {
        const octavo_op *op = &program->ops[i];
        if (op->kind != OCTAVO_OP_RESHARD || !op->params.is_meeting) continue;
        octavo_tensor *from = &program->tensors[op->in[0]];
        const int last = last_before_meeting(program, i);
        if (from->last_op < last) from->last_op = last;
    }
}

static void find_lifetimes(octavo_program *program) {
    for (int i = 0; i < program->n_tensors; i++) {
        program->tensors[i].first_op = program->n_ops;
        program->tensors[i].last_op = -1;
    }
    for (int i = 0; i < program->n_ops; i++) {
        const octavo_op *op = &program->ops[i];
        for (int j = 0; j <= OCTAVO_OP_INPUTS; j++) {
            int id = j < OCTAVO_OP_INPUTS ? op->in[j] : op->out;
            if (id == OCTAVO_NO_TENSOR) continue;
            octavo_tensor *tensor = &program->tensors[id];
            if (tensor->first_op > i) tensor->first_op = i;
            tensor->last_op = i;
            /* The head runs once for each group of rows: what it reads of the body stays for all.
             */
            if (i >= program->head_begin && tensor->first_op < program->head_begin)
                tensor->last_op = program->n_ops - 1;
        }
    }
    for (int i = 0; i < program->n_traces; i++) {
        octavo_tensor *tensor = &program->tensors[program->traces[i].tensor];
        if (tensor->last_op < program->traces[i].op) tensor->last_op = program->traces[i].op;
    }
    keep_for_peers(program);
    if (program->logits != OCTAVO_NO_TENSOR)
        program->tensors[program->logits].last_op = program->n_ops - 1;
    /* Copied out while the first op of the logits runs, if there is one. */
    if (program->hidden == OCTAVO_NO_TENSOR) return;
    octavo_tensor *hidden = &program->tensors[program->hidden];
    if (hidden->last_op < program->logits_begin) hidden->last_op = program->logits_begin;
}

static bool is_placed(const octavo_tensor *tensor) {
    if (tensor->kind == OCTAVO_TENSOR_WEIGHT) return tensor->row_bytes > 0; /* it moves */
    return tensor->kind == OCTAVO_TENSOR_ACTIVATION && tensor->last_op >= 0;
}

/* Lowest offset at which `bytes` fit beside the tensors placed already whose lives meet this one's.
 */
static size_t find_place(const octavo_program *program, const bool *placed,
                         const octavo_tensor *tensor, size_t bytes) {
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < program->n_tensors; i++) {
            const octavo_tensor *other = &program->tensors[i];
            if (!placed[i] || other->last_op < tensor->first_op ||
                other->first_op > tensor->last_op)
                continue;
            size_t end = other->offset + tensor_bytes(program, other);
            if (other->offset < offset + bytes && offset < end) {
                offset = end;
                moved = true;
            }
        }
    }
    return offset;
}

bool octavo_program_plan_memory(octavo_program *program) {
    find_lifetimes(program);
    bool *placed = octavo_alloc_zero((size_t)program->n_tensors + 1, sizeof *placed);
    if (!placed) return false;
    program->arena_bytes = 0;
    for (;;) {
        int largest = OCTAVO_NO_TENSOR;
        size_t bytes = 0;
        for (int i = 0; i < program->n_tensors; i++) {
            const octavo_tensor *tensor = &program->tensors[i];
            if (placed[i] || !is_placed(tensor)) continue;
            if (largest == OCTAVO_NO_TENSOR || tensor_bytes(program, tensor) > bytes) {
                largest = i;
                bytes = tensor_bytes(program, tensor);
            }
        }
        if (largest == OCTAVO_NO_TENSOR) break;
        octavo_tensor *tensor = &program->tensors[largest];
        tensor->offset = find_place(program, placed, tensor, bytes);
        placed[largest] = true;
        if (tensor->offset + bytes > program->arena_bytes)
            program->arena_bytes = tensor->offset + bytes;
    }
    octavo_free(placed);
    return true;
}

void octavo_program_deinit(octavo_program *program) {
    octavo_free(program->tensors);
    octavo_free(program->ops);
    octavo_free(program->traces);
    for (int i = 0; i < program->n_reshards; i++)
        octavo_reshard_deinit(&program->reshards[i]);
    octavo_free(program->reshards);
    *program = (octavo_program){0};
}
