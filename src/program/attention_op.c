/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention ops: a program's tensors as the attention layer takes them. Update, attend and
 * merge are three ops because a barrier stands between them.
 */
#include "program/operand.h"

/* Elements between two rows of an f32 tensor. */
static int64_t row_elements(const octavo_tensor *tensor) {
    return (int64_t)(tensor->row_bytes / sizeof(float));
}

static octavo_attention_plan *plan_of(octavo_run *run, const octavo_op *op) {
    return &run->plans[op->params.plan];
}

/* cache: which the layer reads, its own or that of an earlier one. */
static octavo_attention_op layer_op(octavo_run *run, const octavo_op *op, int cache) {
    const octavo_plan_key *key = &run->program->plans[op->params.plan];
    octavo_attention_op layer;
    octavo_attention_op_init(&layer, &run->limits[op->params.plan].heads, run->cache->shape.dtype,
                             run->cache->shape.layout, run->cache->shape.page_size);
    layer.new_dtype = OCTAVO_DTYPE_F32;
    layer.kv_cache = octavo_kv_cache_layer(run->cache, run->program->tensors[cache].layer);
    layer.page_stride = run->cache->shape.page_elements;
    layer.value_in_key = key->value_lanes > 0;
    layer.scale = op->params.scale;
    layer.soft_cap = op->params.soft_cap;
    layer.mask = octavo_mask_of(key);
    return layer;
}

static void *first_row(octavo_run *run, const octavo_tensor *tensor) {
    return run->arena + tensor->offset;
}

/* in: keys or none, values or none, cache. */
void octavo_run_cache_update(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    octavo_attention_op layer = layer_op(run, op, op->in[2]);
    layer.update_kv_cache = op->in[0] != OCTAVO_NO_TENSOR;
    if (op->in[0] != OCTAVO_NO_TENSOR) {
        const octavo_tensor *key = &run->program->tensors[op->in[0]];
        layer.keys = first_row(run, key);
        layer.k_token_stride = row_elements(key);
    }
    if (op->in[1] != OCTAVO_NO_TENSOR) {
        const octavo_tensor *value = &run->program->tensors[op->in[1]];
        layer.values = first_row(run, value);
        layer.v_token_stride = row_elements(value);
    }
    octavo_attention_update(plan_of(run, op), &run->attention, &layer, thread, n_threads);
}

/* in: queries, cache, sink or none. */
static octavo_attention_op query_op(octavo_run *run, const octavo_op *op) {
    octavo_attention_op layer = layer_op(run, op, op->in[1]);
    const octavo_tensor *query = &run->program->tensors[op->in[0]];
    const octavo_tensor *out = &run->program->tensors[op->out];
    layer.queries = first_row(run, query);
    layer.q_token_stride = row_elements(query);
    layer.output = first_row(run, out);
    if (op->in[2] != OCTAVO_NO_TENSOR) layer.sink = run->program->tensors[op->in[2]].vector;
    layer.out_token_stride = row_elements(out);
    return layer;
}

void octavo_run_attention(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    octavo_attention_op layer = query_op(run, op);
    (void)n_threads;
    octavo_attention_attend(plan_of(run, op), &run->attention, &layer, run->workspace, thread);
}

void octavo_run_attention_merge(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    octavo_attention_op layer = query_op(run, op);
    octavo_attention_merge(plan_of(run, op), &run->attention, &layer, run->workspace, thread,
                           n_threads);
}
