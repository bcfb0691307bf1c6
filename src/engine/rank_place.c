/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole program points into weights that were bound without data; a rank's weights have the
 * same members. A tensor's axes say which of a matrix's are outputs, inputs or experts.
 */
#include "engine/rank_place.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/operand.h"

#include <string.h>

/* ---- members ---- */

#define OF_LAYER(field) offsetof(octavo_layer_weights, field)
#define OF_MODEL(field) offsetof(octavo_model_weights, field)

static const size_t layer_vectors[] = {
    OF_LAYER(latent.q_a_bias),
    OF_LAYER(latent.kv_a_bias),
    OF_LAYER(latent.q_norm),
    OF_LAYER(latent.kv_norm),
    OF_LAYER(attn_q_bias),
    OF_LAYER(attn_k_bias),
    OF_LAYER(attn_v_bias),
    OF_LAYER(attn_o_bias),
    OF_LAYER(ffw_down_bias),
    OF_LAYER(ffw_gate_bias),
    OF_LAYER(ffw_up_bias),
    OF_LAYER(attn_norm),
    OF_LAYER(ffw_norm),
    OF_LAYER(attn_norm_bias),
    OF_LAYER(ffw_norm_bias),
    OF_LAYER(post_attn_norm),
    OF_LAYER(post_ffw_norm),
    OF_LAYER(attn_sum_norm),
    OF_LAYER(attn_sum_norm_bias),
    OF_LAYER(ffw_sum_norm),
    OF_LAYER(ffw_sum_norm_bias),
    OF_LAYER(sinks),
    OF_LAYER(router_bias),
    OF_LAYER(choice_bias),
    OF_LAYER(expert_gate_bias),
    OF_LAYER(expert_up_bias),
    OF_LAYER(expert_down_bias),
    OF_LAYER(q_norm),
    OF_LAYER(k_norm),
};

static const size_t model_vectors[] = {
    OF_MODEL(output_norm),     OF_MODEL(output_norm_bias), OF_MODEL(embed_norm),
    OF_MODEL(embed_norm_bias), OF_MODEL(pooler_bias),
};

/* Where the weights keep a member. */
static const uint8_t *address_of(const octavo_model_weights *weights,
                                 const octavo_weight_member *member) {
    if (member->layer == OCTAVO_NO_LAYER) return (const uint8_t *)weights + member->offset;
    return (const uint8_t *)&weights->layers[member->layer] + member->offset;
}

static const float *vector_at(const octavo_model_weights *weights,
                              const octavo_weight_member *member) {
    const float *vector;
    memcpy(&vector, address_of(weights, member), sizeof vector);
    return vector;
}

static bool find_vector(const octavo_model_weights *weights, const octavo_tensor *tensor,
                        octavo_weight_member *member) {
    const bool is_of_layer = tensor->layer != OCTAVO_NO_LAYER;
    const size_t n = is_of_layer ? OCTAVO_COUNT(layer_vectors) : OCTAVO_COUNT(model_vectors);
    for (size_t i = 0; i < n; i++) {
        *member = (octavo_weight_member){tensor->layer,
                                         is_of_layer ? layer_vectors[i] : model_vectors[i]};
        if (vector_at(weights, member) == tensor->vector) return true;
    }
    return false;
}

/* ---- parts ---- */

typedef struct cutter {
    const octavo_program *program;
    const octavo_program_axes *axes;
    const octavo_mesh *mesh;
    octavo_place place;
    octavo_layout layout; /* of the tensor at hand */
    int tensor;
} cutter;

static octavo_range cut(const cutter *c, int i) {
    return octavo_shard_of(c->program, c->axes, c->mesh, &c->place, &c->layout, c->tensor, i);
}

/* Axis i, behind which there may be lanes. */
static octavo_range cut_lanes(const cutter *c, int i, int n) {
    octavo_range range = cut(c, i);
    for (int k = 1; k < n; k++) {
        range.begin *= c->program->tensors[c->tensor].extent[i + k];
        range.end *= c->program->tensors[c->tensor].extent[i + k];
    }
    return range;
}

static octavo_weight_part part_of_matrix(const cutter *c, const octavo_op *op) {
    const octavo_tensor *tensors = c->program->tensors;
    const int n_axes = (int)strlen(tensors[c->tensor].axes);
    octavo_range e = {0, 0}, n, k;
    switch (op->kind) {
    case OCTAVO_OP_EXPERT_MATMUL:
        e = cut(c, 0);
        k = cut(c, 1);
        n = cut(c, 2);
        break;
    case OCTAVO_OP_HEAD_MATMUL:
        e = cut(c, 0);
        k = (octavo_range){0, tensors[c->tensor].weight->k};
        n = (octavo_range){0, tensors[c->tensor].weight->n};
        break;
    case OCTAVO_OP_EMBED:
        n = cut(c, 0);
        k = cut(c, 1);
        break;
    default: {
        const int at = octavo_weight_outputs_at(c->program, op);
        const int n_out = n_axes - (int)strlen(tensors[op->in[0]].axes) + 1;
        n = cut_lanes(c, at, n_out);
        k = cut_lanes(c, at == 0 ? n_out : 0, n_axes - n_out);
        break;
    }
    }
    return (octavo_weight_part){n.begin, n.end, k.begin, k.end, e.begin, e.end};
}

static octavo_weight_part part_of_vector(const cutter *c) {
    const octavo_tensor *tensor = &c->program->tensors[c->tensor];
    const int n_axes = (int)strlen(tensor->axes);
    if (n_axes > 1 && tensor->axes[0] == 'e') {
        const octavo_range e = cut(c, 0), n = cut(c, 1);
        return (octavo_weight_part){.n0 = n.begin, .n1 = n.end, .e0 = e.begin, .e1 = e.end};
    }
    const octavo_range n = cut_lanes(c, 0, n_axes);
    return (octavo_weight_part){.n0 = n.begin, .n1 = n.end};
}

static const octavo_op *op_of_weight(const octavo_program *program, int tensor) {
    for (int i = 0; i < program->n_ops; i++)
        if (program->ops[i].in[1] == tensor) return &program->ops[i];
    return NULL;
}

octavo_status octavo_rank_places_init(octavo_rank_places *places,
                                      const octavo_ranks_options *options,
                                      const octavo_program_axes *axes, const octavo_mesh *mesh,
                                      int rank, octavo_error *error) {
    const octavo_program *program = options->program;
    const octavo_model_weights *weights = &options->network->weights;
    cutter c = {
        .program = program, .axes = axes, .mesh = mesh, .place = octavo_mesh_place(mesh, rank)};
    *places = (octavo_rank_places){.program = program};
    places->placed = octavo_alloc_zero((size_t)program->n_tensors + 1, sizeof *places->placed);
    if (!places->placed)
        return octavo_fail_memory(error, "parts of a rank", (uint64_t)program->n_tensors);
    for (int i = 0; i < program->n_tensors; i++) {
        const octavo_tensor *tensor = &program->tensors[i];
        octavo_rank_placed *placed = &places->placed[places->n];
        const octavo_op *op;
        c.tensor = i;
        c.layout = octavo_layout_by_rules(program, i, OCTAVO_PHASE_GENERATE, mesh, options->rules);
        placed->tensor = i;
        if (tensor->kind == OCTAVO_TENSOR_VECTOR && find_vector(weights, tensor, &placed->member)) {
            placed->part = part_of_vector(&c);
            places->n++;
        } else if (tensor->kind == OCTAVO_TENSOR_WEIGHT && (op = op_of_weight(program, i))) {
            placed->member = octavo_weights_member(weights, tensor->weight);
            placed->part = part_of_matrix(&c, op);
            places->n++;
        }
    }
    return OCTAVO_OK;
}

void octavo_rank_places_deinit(octavo_rank_places *places) {
    octavo_free(places->placed);
    *places = (octavo_rank_places){0};
}

void octavo_rank_place(void *cookie, const octavo_weight_member *member, octavo_weight_part *part) {
    const octavo_rank_places *places = cookie;
    for (int i = 0; i < places->n; i++) {
        const octavo_rank_placed *placed = &places->placed[i];
        if (placed->member.layer != member->layer || placed->member.offset != member->offset)
            continue;
        *part = placed->part;
        return;
    }
}

void octavo_rank_bind(const octavo_rank_places *places, const octavo_model_weights *weights,
                      octavo_binding *bindings) {
    for (int i = 0; i < places->n; i++) {
        const octavo_rank_placed *placed = &places->placed[i];
        if (places->program->tensors[placed->tensor].kind == OCTAVO_TENSOR_VECTOR)
            bindings[placed->tensor].vector = vector_at(weights, &placed->member);
        else
            bindings[placed->tensor].weight =
                (const octavo_weight *)(const void *)address_of(weights, &placed->member);
    }
}
