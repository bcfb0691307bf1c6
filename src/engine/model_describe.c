/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/model.h: facts about an open model.
 */
#include "base/compiler.h"
#include "engine/model.h"

/* Packed weights of the experts of a layer that a token does not choose. */
static uint64_t unchosen_bytes(const octavo_model *model, int layer) {
    const octavo_model_config *config = &model->network.config;
    const octavo_layer_weights *w = &model->network.weights.layers[layer];
    const octavo_weight *stacks[] = {&w->expert_gate, &w->expert_up, &w->expert_down};
    uint64_t bytes = 0;
    if (!config->layers[layer].is_sparse) return 0;
    for (size_t i = 0; i < OCTAVO_COUNT(stacks); i++)
        bytes += octavo_weight_bytes(stacks[i]->type, stacks[i]->n, stacks[i]->k);
    return bytes * (uint64_t)(config->n_experts - config->router.n_chosen);
}

/* Packed weights that a step of one token reads: all but the rows of the embedding that it does not
 * look up and the experts that it does not choose. */
static uint64_t step_bytes(const octavo_model *model) {
    const octavo_model_weights *weights = &model->network.weights;
    uint64_t bytes = weights->packed_bytes;
    const octavo_weight *embed = &weights->embed;
    if (!weights->is_tied || model->network.config.is_encoder)
        bytes -= octavo_weight_bytes(embed->type, embed->n, embed->k);
    for (int i = 0; i < model->network.config.n_layers; i++)
        bytes -= unchosen_bytes(model, i);
    return bytes;
}

octavo_model_facts octavo_model_describe(const octavo_model *model) {
    const octavo_model_config *config = &model->network.config;
    const octavo_kv_shape *kv = &model->cache.shape;
    const octavo_kv_cache *cache =
        model->ranks.n > 0 ? &model->ranks.ranks[0].cache : &model->cache;
    const uint64_t head_bytes = (uint64_t)config->head_dim * octavo_dtype_size(kv->dtype) +
                                (octavo_kv_has_slot_scales(cache) ? sizeof(float) : 0);
    return (octavo_model_facts){
        .architecture = config->architecture,
        .isa = octavo_cpu_name(model->cpu),
        .threads = octavo_pool_threads(model->pool) / octavo_pool_teams(model->pool),
        .ranks =
            octavo_pool_teams(model->pool) * (model->comm ? octavo_comm_processes(model->comm) : 1),
        .processes = model->comm ? octavo_comm_processes(model->comm) : 1,
        .process = model->comm ? octavo_comm_process(model->comm) : 0,
        .groups = model->n_groups,
        .vocabulary = (int32_t)config->vocab,
        .context = model->context,
        .layers = config->n_layers,
        .width = config->d,
        .heads = config->n_heads,
        .kv_heads = config->n_kv_heads,
        .head_width = config->head_dim,
        .weights = model->weights,
        .kv_dtype = kv->dtype,
        .page_size = model->page_size,
        .pages = kv->n_pages * model->cache_parts,
        .chunk = model->chunk,
        .max_sequences = model->max_sequences,
        .weight_bytes = model->network.weights.source_bytes,
        .packed_bytes = model->network.weights.packed_bytes,
        .step_bytes = step_bytes(model),
        .kv_bytes = model->ranks.n > 0 ? (uint64_t)model->ranks.cache_bytes
                                       : (uint64_t)kv->n_layers * model->cache.layer_bytes,
        .position_bytes = (octavo_config_value_lanes(config) > 0 ? 1 : 2) * (uint64_t)kv->n_layers *
                          (uint64_t)config->n_kv_heads * head_bytes,
        .is_encoder = config->is_encoder,
        .has_pooler = config->has_pooler,
        .token_types = (int32_t)config->n_types,
        .pooling = config->pooling,
    };
}
