/* SPDX-License-Identifier: Apache-2.0
 *
 * Kv splits that are dealt to ranks (attention/attention.h): how many of them a step sees, and what
 * moves when each rank of a group merges its piece of the output from the records of all.
 */
#include "program/partition_search.h"

octavo_split octavo_cache_deal(const octavo_layout *cache) {
    octavo_split parts = {0};
    for (int i = 0; i < cache->split[0].n; i++)
        if (cache->split[0].axis[i] != OCTAVO_MESH_DATA)
            parts = octavo_split_add(parts, cache->split[0].axis[i]);
    return parts;
}

bool octavo_is_records(const octavo_program *program, int tensor, const octavo_layout *layout) {
    if (layout->partial.n == 0 || layout->is_owned) return false;
    for (int i = 0; i < program->n_ops; i++)
        if (program->ops[i].out == tensor) return program->ops[i].kind == OCTAVO_OP_ATTENTION;
    return false;
}

/* Splits that the rows of a sequence see together. */
int64_t octavo_seen_splits(const octavo_partitioner *p, const octavo_op *op) {
    const octavo_plan_key *key = &p->program->plans[op->params.plan];
    const int64_t length = p->options->kv_length;
    const int64_t groups = p->mesh.degree[OCTAVO_MESH_DATA];
    int64_t rows = p->options->phase == OCTAVO_PHASE_GENERATE
                       ? 1
                       : (p->options->n_tokens + groups - 1) / groups;
    if (rows > length) rows = length;
    int64_t begin = 0;
    if (key->window > 0 && length - rows - key->window + 1 > begin)
        begin = length - rows - key->window + 1;
    if (key->chunk > 0 && (length - rows) / key->chunk * key->chunk > begin)
        begin = (length - rows) / key->chunk * key->chunk;
    return (length + OCTAVO_KV_SPLIT - 1) / OCTAVO_KV_SPLIT - begin / OCTAVO_KV_SPLIT;
}

octavo_transfer octavo_records_transfer(const octavo_partitioner *p, const octavo_op *op,
                                        const octavo_layout *from, const octavo_layout *to) {
    const int n = octavo_split_degree(&from->partial, &p->mesh);
    const octavo_axis *axes[OCTAVO_TENSOR_AXES];
    octavo_axis pairs;
    octavo_transfer t = {.collective = OCTAVO_COLLECTIVE_ALL_TO_ALL, .group = n};
    octavo_axes_of_tensor(p, op->out, &pairs, axes);
    for (int i = 0; i < from->partial.n; i++)
        t.axes |= 1u << from->partial.axis[i];
    /* a head's lanes and the head of the record */
    const int64_t lanes = p->program->tensors[op->out].extent[2];
    double pieces = (double)octavo_attention_record_bytes(
        &(octavo_attention_heads){.head_dim = (int32_t)lanes});
    for (int i = 0; i < 2; i++)
        pieces *= (double)octavo_axis_widest(axes[i], octavo_split_degree(&to->split[i], &p->mesh));
    if (octavo_split_equal(&from->split[0], &to->split[0]) &&
        octavo_split_equal(&from->split[1], &to->split[1]))
        t.collective = OCTAVO_COLLECTIVE_ALL_GATHER;
    t.bytes = pieces * (double)octavo_seen_splits(p, op);
    t.wire_bytes = t.bytes * (n - 1.0) / n;
    return t;
}
