/* SPDX-License-Identifier: Apache-2.0
 *
 * What rules say of a program's tensors.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "program/partition_search.h"

#include <string.h>

static bool starts_with(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

bool octavo_is_layer_sparse(const octavo_program *program, int layer) {
    for (int i = 0; layer >= 0 && i < program->n_ops; i++)
        if (program->ops[i].layer == layer && program->ops[i].kind == OCTAVO_OP_EXPERT_MATMUL)
            return true;
    return false;
}

static octavo_block_kind kind_of(const octavo_tensor *tensor, bool is_sparse) {
    static const char *const attention[] = {"attn_", "query", "key", "activation_attention",
                                            "activation_q_"};
    const char *name = tensor->name;
    if (tensor->layer < 0) return OCTAVO_BLOCK_ANY;
    for (size_t i = 0; i < OCTAVO_COUNT(attention); i++)
        if (starts_with(name, attention[i])) return OCTAVO_BLOCK_ATTENTION;
    if (starts_with(name, "ffw_") || starts_with(name, "shared_")) return OCTAVO_BLOCK_DENSE;
    if (starts_with(name, "moe_") || starts_with(name, "router_") ||
        strcmp(name, "activation_ffw_ted") == 0)
        return OCTAVO_BLOCK_MOE;
    if (starts_with(name, "activation_ffw"))
        return is_sparse ? OCTAVO_BLOCK_MOE : OCTAVO_BLOCK_DENSE;
    return OCTAVO_BLOCK_ANY;
}

/* Tokens belong to their group first, whatever the order in the rule. */
static octavo_split data_first(octavo_split split) {
    octavo_split rows = {0};
    if (octavo_split_has(&split, OCTAVO_MESH_DATA)) rows = octavo_split_add(rows, OCTAVO_MESH_DATA);
    for (int i = 0; i < split.n; i++)
        if (split.axis[i] != OCTAVO_MESH_DATA) rows = octavo_split_add(rows, split.axis[i]);
    return rows;
}

static octavo_layout layout_of_spec(const octavo_tensor *tensor, const octavo_spec *spec,
                                    const octavo_mesh *mesh) {
    octavo_layout layout = {0};
    const int n = (int)strlen(tensor->axes);
    for (int i = 0; i < spec->n && i < OCTAVO_SPEC_AXES; i++)
        layout.split[i] = octavo_split_reduce(&spec->split[i], mesh);
    if (tensor->axes[0] == 'p' && spec->n == 3) { /* (t, e, d) of pairs */
        layout.experts = layout.split[1];
        layout.split[1] = layout.split[2];
        layout.split[2] = (octavo_split){0};
    }
    for (int i = n; i < OCTAVO_SPEC_AXES; i++)
        layout.split[i] = (octavo_split){0};
    if (strchr("trps", tensor->axes[0])) layout.split[0] = data_first(layout.split[0]);
    return layout;
}

octavo_layout octavo_layout_by_rules(const octavo_program *program, int tensor, octavo_phase phase,
                                     const octavo_mesh *mesh, const octavo_rules *rules) {
    const octavo_tensor *t = &program->tensors[tensor];
    const octavo_block_kind kind = kind_of(t, octavo_is_layer_sparse(program, t->layer));
    octavo_spec spec;
    if (!octavo_rules_find(rules, phase, t->name, t->layer, kind, &spec, NULL))
        return (octavo_layout){0};
    return layout_of_spec(t, &spec, mesh);
}

static octavo_status check_lanes(octavo_partitioner *p, int tensor, const octavo_layout *layout) {
    const octavo_tensor *t = &p->program->tensors[tensor];
    for (int i = 0; t->axes[i]; i++)
        if (t->axes[i] == 'h' && layout->split[i].n > 0)
            return octavo_fail(p->error, OCTAVO_ERROR_UNSUPPORTED,
                               "rule of %s (axis h, %lld lanes, degree %d): of weights, caches and "
                               "tables a head's width is not split in this version; split its "
                               "heads",
                               t->name, (long long)t->extent[i],
                               octavo_split_degree(&layout->split[i], &p->mesh));
    return OCTAVO_OK;
}

static const octavo_op *reader_of(const octavo_program *program, int weight) {
    for (int i = 0; i < program->n_ops; i++)
        if (program->ops[i].in[1] == weight) return &program->ops[i];
    return NULL;
}

/* Of matrices of heads: queries that they make, and values that they make of the latent, are as
 * wide as a head or its latent. */
static octavo_status check_head_matrices(octavo_partitioner *p, int tensor,
                                         const octavo_layout *layout) {
    const octavo_tensor *t = &p->program->tensors[tensor];
    const octavo_op *op = t->kind == OCTAVO_TENSOR_WEIGHT ? reader_of(p->program, tensor) : NULL;
    for (int i = 1; op && op->kind == OCTAVO_OP_HEAD_MATMUL && t->axes[i]; i++)
        if (layout->split[i].n > 0)
            return octavo_fail(p->error, OCTAVO_ERROR_UNSUPPORTED,
                               "rule of %s (axis %c, %lld lanes, degree %d): a head's latent is "
                               "not split in this version; split its heads",
                               t->name, t->axes[i], (long long)t->extent[i],
                               octavo_split_degree(&layout->split[i], &p->mesh));
    return OCTAVO_OK;
}

/* The matrices of one expert lie together: its pairs are numbered once. */
octavo_status octavo_check_experts(octavo_partitioner *p) {
    const octavo_program *program = p->program;
    const octavo_op *first = NULL;
    for (int i = 0; i < program->n_ops; i++) {
        const octavo_op *op = &program->ops[i];
        if (op->kind != OCTAVO_OP_EXPERT_MATMUL) continue;
        if (!first || first->in[2] != op->in[2]) first = op;
        const octavo_split *e = &p->placed[op->in[1]].split[0];
        const octavo_split *other = &p->placed[first->in[1]].split[0];
        if (octavo_split_equal(e, other)) continue;
        const octavo_tensor *t = &program->tensors[op->in[1]];
        return octavo_fail(p->error, OCTAVO_ERROR_UNSUPPORTED,
                           "rule of %s (axis e, %lld experts, degree %d): all matrices of an "
                           "expert are on the same ranks in this version; split axis e of it and "
                           "of %s (degree %d) by the same mesh axes",
                           t->name, (long long)t->extent[0], octavo_split_degree(e, &p->mesh),
                           program->tensors[first->in[1]].name,
                           octavo_split_degree(other, &p->mesh));
    }
    return OCTAVO_OK;
}

/* A rule for prefill that differs from that of generate: a weight is taken so, and moves. */
static octavo_status rule_weight(octavo_partitioner *p, int tensor) {
    const octavo_tensor *t = &p->program->tensors[tensor];
    octavo_spec spec;
    bool is_override = false;
    if (p->options->phase != OCTAVO_PHASE_PREFILL || t->kind == OCTAVO_TENSOR_CACHE ||
        !octavo_rules_find(p->options->rules, OCTAVO_PHASE_PREFILL, t->name, t->layer,
                           kind_of(t, octavo_is_layer_sparse(p->program, t->layer)), &spec,
                           &is_override) ||
        !is_override)
        return OCTAVO_OK;
    p->ruled[tensor] = layout_of_spec(t, &spec, &p->mesh);
    p->is_kept[tensor] = !octavo_layout_equal(&p->ruled[tensor], &p->placed[tensor]);
    if (!p->is_kept[tensor]) return OCTAVO_OK;
    for (int i = 0; t->kind == OCTAVO_TENSOR_VECTOR && t->axes[i]; i++)
        if (!octavo_split_equal(&p->ruled[tensor].split[i], &p->placed[tensor].split[i]))
            return octavo_fail(p->error, OCTAVO_ERROR_UNSUPPORTED,
                               "rule of %s for prefill (axis %c, degree %d): vectors lie in both "
                               "phases as generate has them; give the rule for all",
                               t->name, t->axes[i],
                               octavo_split_degree(&p->ruled[tensor].split[i], &p->mesh));
    return check_lanes(p, tensor, &p->ruled[tensor]);
}

octavo_status octavo_place_tensor(octavo_partitioner *p, int tensor) {
    p->placed[tensor] = octavo_layout_by_rules(p->program, tensor, OCTAVO_PHASE_GENERATE, &p->mesh,
                                               p->options->rules);
    octavo_status status = check_lanes(p, tensor, &p->placed[tensor]);
    if (!status) status = check_head_matrices(p, tensor, &p->placed[tensor]);
    return status ? status : rule_weight(p, tensor);
}

/* Splits lanes of heads, which blocks of quantised rows may be wider than. */
static bool has_lanes(const octavo_tensor *tensor, const octavo_layout *layout) {
    return tensor->kind == OCTAVO_TENSOR_ACTIVATION && tensor->axes[0] && tensor->axes[1] &&
           tensor->axes[2] == 'h' && layout->split[2].n > 0;
}

/* An op of the same layer that makes a tensor of the same name of it: what is kept is the last one
 * of that name, of lanes the last one that is not quantised. */
static bool is_made_into_namesake(const octavo_program *program, int tensor,
                                  const octavo_layout *layout) {
    const octavo_tensor *t = &program->tensors[tensor];
    for (int i = t->first_op; i <= t->last_op && i < program->n_ops; i++) {
        const octavo_op *op = &program->ops[i];
        if (op->out == tensor || op->layer != t->layer ||
            strcmp(program->tensors[op->out].name, t->name) != 0)
            continue;
        if (has_lanes(t, layout) && program->tensors[op->out].is_q8) continue;
        for (int k = 0; k < OCTAVO_OP_INPUTS; k++)
            if (op->in[k] == tensor) return true;
    }
    return false;
}

octavo_status octavo_rule_tensor(octavo_partitioner *p, int tensor, bool is_sparse) {
    const octavo_tensor *t = &p->program->tensors[tensor];
    octavo_spec spec;
    bool is_override = false;
    const bool is_named = octavo_rules_find(p->options->rules, p->options->phase, t->name, t->layer,
                                            kind_of(t, is_sparse), &spec, &is_override);
    if (!is_named) return OCTAVO_OK;
    p->ruled[tensor] = layout_of_spec(t, &spec, &p->mesh);
    const bool has_blocks = t->is_q8 && has_lanes(t, &p->ruled[tensor]);
    if (has_blocks) p->ruled[tensor].split[2] = (octavo_split){0};
    const bool is_obliged =
        is_override || strcmp(t->name, "activation_td") == 0 || strcmp(t->name, "logits_tv") == 0;
    p->is_kept[tensor] = is_obliged && !has_blocks &&
                         !is_made_into_namesake(p->program, tensor, &p->ruled[tensor]) &&
                         strcmp(t->name, "keyvalue_skh") != 0;
    /* those that ranks make for themselves lie as they are made */
    return p->is_kept[tensor] && octavo_is_made_anywhere(p, tensor)
               ? check_lanes(p, tensor, &p->ruled[tensor])
               : OCTAVO_OK;
}

/* By which rule a matmul's input is kept. */
static const char *input_name_of(const char *weight) {
    static const struct {
        const char *weight, *input;
    } list[] = {
        {"attn_q_weight_dnh", "activation_q_td"},
        {"attn_q_a_weight_dl", "activation_q_td"},
        {"attn_k_weight_dkh", "activation_attention_td"},
        {"attn_v_weight_dkh", "activation_attention_td"},
        {"attn_kv_a_weight_dl", "activation_attention_td"},
        {"ffw_weight_df", "activation_ffw_td"},
        {"moe_router_de", "activation_ffw_td"},
        {"vocab_dv", "prelogit_td"},
        {"vocab_vd", "prelogit_td"},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++)
        if (strcmp(list[i].weight, weight) == 0) return list[i].input;
    return NULL;
}

bool octavo_input_is_ruled(const octavo_partitioner *p, const octavo_op *op, int index,
                           octavo_layout *layout) {
    if (op->kind != OCTAVO_OP_MATMUL || index != 0) return false;
    const octavo_tensor *x = &p->program->tensors[op->in[0]], *w = &p->program->tensors[op->in[1]];
    const char *name = input_name_of(w->name);
    octavo_spec spec;
    bool is_override = false;
    if (!name || strcmp(name, x->name) == 0) return false;
    /* q, k and v share their quantised input */
    if (strcmp(x->name, "activation_q_td") == 0) return false;
    octavo_rules_find(p->options->rules, p->options->phase, name, op->layer, kind_of(w, false),
                      &spec, &is_override);
    if (is_override) *layout = layout_of_spec(x, &spec, &p->mesh);
    return is_override;
}

bool octavo_is_made_anywhere(const octavo_partitioner *p, int tensor) {
    return strcmp(p->program->tensors[tensor].name, "rope_table_th") == 0;
}
