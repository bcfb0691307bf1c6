/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention ops: a program's tensors as the attention layer takes them. Update, attend and
 * merge are three ops because a barrier stands between them.
 */
#include "program/operand.h"

#include <math.h>

/* By what an 8-bit cache's keys and values are divided: factors of each head that were known
 * before, or what each slot keeps. */
static void set_scales(octavo_attention_op *layer, const octavo_kv_cache *cache, int index) {
    const octavo_kv_scales *scales = &cache->scales;
    if (octavo_kv_has_slot_scales(cache)) {
        layer->slot_scales = true;
    } else if (scales->key) {
        layer->quantise_new = true;
        layer->k_scales = scales->key + (int64_t)index * scales->n_heads;
        layer->v_scales = layer->value_in_key ? layer->k_scales
                                              : scales->value + (int64_t)index * scales->n_heads;
    }
}

/* Elements between two rows of an f32 tensor. */
static int64_t row_elements(const octavo_tensor *tensor) {
    return (int64_t)(tensor->row_bytes / sizeof(float));
}

static octavo_attention_plan *plan_of(octavo_run *run, const octavo_op *op) {
    return &run->plans[op->params.plan].plan;
}

/* cache: which the layer reads, its own or that of an earlier one. */
static octavo_attention_op layer_op(octavo_run *run, const octavo_op *op, int cache) {
    const octavo_plan_key *key = &run->program->plans[op->params.plan];
    octavo_attention_op layer;
    octavo_attention_op_init(&layer, &run->plans[op->params.plan].limits.heads,
                             run->cache->shape.dtype, run->cache->shape.layout,
                             run->cache->shape.page_size);
    layer.new_dtype = OCTAVO_DTYPE_F32;
    layer.kv_cache = octavo_kv_cache_layer(run->cache, run->program->tensors[cache].layer);
    layer.page_stride = run->cache->shape.page_elements;
    layer.value_in_key = key->value_lanes > 0;
    set_scales(&layer, run->cache, run->program->tensors[cache].layer);
    layer.scale = op->params.scale;
    layer.soft_cap = op->params.soft_cap;
    layer.mask = octavo_mask_of(key);
    return layer;
}

/* The row of keys or values that is the batch's first: a rank may have those of more sequences. */
static const void *first_key(octavo_run *run, const octavo_op *op, int id) {
    return octavo_row_of(run, id,
                         run->plans[op->params.plan].first_row - octavo_first_row(run, id));
}

/* Raises tops [n_kv_heads] by this thread's rows of keys or values. */
static void raise_tops(octavo_run *run, int id, float *tops, int thread, int n_threads) {
    const octavo_range rows = octavo_share_rows(run, id, thread, n_threads);
    const int64_t width = octavo_width_of(octavo_tensor_at(run, id));
    const int64_t lanes = width / run->n_kv_heads;
    for (int64_t t = rows.begin; t < rows.end; t++) {
        const float *row = octavo_row_of(run, id, t);
        for (int64_t i = 0; i < width; i++) {
            const float x = fabsf(row[i]);
            if (!(x <= tops[i / lanes])) tops[i / lanes] = x; /* a NaN, too */
        }
    }
}

/* in: keys or none, values or none, cache. */
void octavo_run_cache_update(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    octavo_attention_op layer = layer_op(run, op, op->in[2]);
    layer.update_kv_cache = op->in[0] != OCTAVO_NO_TENSOR;
    if (op->in[0] != OCTAVO_NO_TENSOR) {
        const octavo_tensor *key = &run->program->tensors[op->in[0]];
        layer.keys = first_key(run, op, op->in[0]);
        layer.k_token_stride = row_elements(key);
    }
    if (op->in[1] != OCTAVO_NO_TENSOR) {
        const octavo_tensor *value = &run->program->tensors[op->in[1]];
        layer.values = first_key(run, op, op->in[1]);
        layer.v_token_stride = row_elements(value);
    }
    octavo_attention_update(plan_of(run, op), &run->attention, &layer, thread, n_threads);
    if (run->kv_tops == NULL || op->in[0] == OCTAVO_NO_TENSOR) return;
    const int64_t index = (int64_t)thread * run->cache->shape.n_layers + op->layer;
    float *tops = run->kv_tops + 2 * index * run->n_kv_heads;
    raise_tops(run, op->in[0], tops, thread, n_threads);
    if (op->in[1] == OCTAVO_NO_TENSOR) return; /* values are in the keys */
    raise_tops(run, op->in[1], tops + run->n_kv_heads, thread, n_threads);
}

/* Of the rank's query heads. */
static const float *sinks_of(octavo_run *run, const octavo_op *op, const octavo_tensor *query) {
    if (op->in[2] == OCTAVO_NO_TENSOR) return NULL;
    return octavo_vector_of(run, op->in[2]) + query->begin[1] -
           octavo_first_column(octavo_tensor_at(run, op->in[2]));
}

/* in: queries, cache, sink or none. */
static octavo_attention_op query_op(octavo_run *run, const octavo_op *op) {
    octavo_attention_op layer = layer_op(run, op, op->in[1]);
    const octavo_tensor *query = &run->program->tensors[op->in[0]];
    const octavo_tensor *out = &run->program->tensors[op->out];
    layer.queries = octavo_row_of(run, op->in[0], 0);
    layer.q_token_stride = row_elements(query);
    layer.output = octavo_row_of(run, op->out, 0);
    layer.sink = sinks_of(run, op, query);
    layer.out_token_stride = row_elements(out);
    return layer;
}

void octavo_run_attention(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    octavo_attention_op layer = query_op(run, op);
    (void)n_threads;
    layer.records = run->records;
    octavo_attention_attend(plan_of(run, op), &run->attention, &layer, run->workspace, thread);
}

/* From the records of all ranks that share the kv splits: those of ranks of this process where they
 * are, others' as they came, which are the rank's piece alone. */
static void merge_records(octavo_run *run, const octavo_op *op, const octavo_attention_op *layer,
                          int thread, int n_threads) {
    const octavo_reshard *reshard = &run->program->reshards[op->params.reshard];
    const octavo_attention_plan *plan = plan_of(run, op);
    const octavo_attention_piece all = {0, plan->batch.n_tokens, 0, plan->limits.heads.n_q_heads};
    const int own = octavo_own_part(run, op);
    const octavo_attention_piece piece = octavo_records_piece(run, op, own);
    octavo_traffic *traffic = &run->traffic;
    const void *parts[OCTAVO_MAX_PARTS];
    octavo_attention_piece held[OCTAVO_MAX_PARTS];
    for (int i = 0; i < reshard->n_parts; i++) {
        const octavo_run *peer = i == own ? run : run->peers[reshard->sources[i]];
        parts[i] = peer ? peer->records : run->received[i];
        held[i] = peer ? all : piece;
        const size_t bytes = octavo_records_bytes(run, op, i, &piece);
        if (thread > 0 || i == own || bytes == 0) continue;
        traffic->messages[reshard->collective]++;
        traffic->bytes[reshard->collective] += (int64_t)bytes;
    }
    octavo_attention_merge_records(plan, &run->attention, layer, parts, held, &piece, thread,
                                   n_threads);
}

/* in: queries, cache, sink or none, and what attention has left, in place. */
void octavo_run_attention_merge(octavo_run *run, const octavo_op *op, int thread, int n_threads) {
    octavo_attention_op layer = query_op(run, op);
    if (plan_of(run, op)->limits.splits.n_parts > 1) {
        merge_records(run, op, &layer, thread, n_threads);
        return;
    }
    octavo_attention_merge(plan_of(run, op), &run->attention, &layer, run->workspace, thread,
                           n_threads);
}
