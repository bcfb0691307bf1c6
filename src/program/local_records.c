/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of kv splits on their way: which rank has which part, and which heads each of them
 * merges.
 */
#include "program/local_maker.h"

/* The place of part `part` of the rank's group. */
static octavo_place place_of(const octavo_local_maker *maker, const octavo_split *parts, int part) {
    octavo_place place = maker->place;
    for (int i = parts->n - 1; i >= 0; i--) {
        const int degree = maker->partition->mesh.degree[parts->axis[i]];
        place.at[parts->axis[i]] = part % degree;
        part /= degree;
    }
    return place;
}

static void fill(octavo_local_maker *maker, octavo_reshard *reshard, const octavo_tensor *query,
                 const octavo_value *out, const octavo_split *parts) {
    const octavo_mesh *mesh = &maker->partition->mesh;
    for (int i = 0; i < reshard->n_parts; i++) {
        const octavo_place place = place_of(maker, parts, i);
        octavo_range heads = octavo_shard_of(maker->whole, maker->options->axes, mesh, &place,
                                             &out->layout, out->tensor, 1);
        if (heads.begin < heads.end &&
            (heads.begin < query->begin[1] || heads.end > query->begin[1] + query->extent[1]))
            octavo_local_reject(maker, out->tensor, "its heads are not those of the queries");
        heads.begin -= query->begin[1];
        heads.end -= query->begin[1];
        if (heads.begin >= heads.end) heads = (octavo_range){0, 0};
        reshard->sources[i] = octavo_mesh_rank(mesh, &place);
        reshard->heads[i] = heads;
    }
}

void octavo_local_records(octavo_local_maker *maker, int query, octavo_op_params *params) {
    octavo_program *local = maker->local;
    const octavo_partition_step *step = maker->records;
    const octavo_split *parts = &maker->values[step->in[0]].layout.partial;
    void *array = local->reshards;
    maker->records = NULL;
    if (!octavo_build_grow(&maker->builder, &array, local->n_reshards, &maker->capacity_reshards,
                           sizeof *local->reshards))
        return;
    local->reshards = array;
    octavo_reshard *reshard = &local->reshards[local->n_reshards];
    const int n = octavo_split_degree(parts, &maker->partition->mesh);
    *reshard = (octavo_reshard){.collective = step->transfer.collective, .n_parts = n};
    reshard->sources = octavo_alloc_zero((size_t)n, sizeof *reshard->sources);
    reshard->heads = octavo_alloc_zero((size_t)n, sizeof *reshard->heads);
    params->reshard = local->n_reshards++;
    params->is_meeting = params->is_wire = true;
    if (n > OCTAVO_MAX_PARTS)
        octavo_local_reject(maker, maker->values[step->in[0]].tensor,
                            "positions over more than 256 ranks");
    if (reshard->sources && reshard->heads)
        fill(maker, reshard, &local->tensors[query], &maker->values[step->out], parts);
    else
        octavo_local_no_memory(maker);
}
