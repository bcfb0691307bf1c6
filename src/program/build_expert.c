/* SPDX-License-Identifier: Apache-2.0
 *
 * The builder's ops for experts.
 */
#include "program/build_op.h"

#include <string.h>

/* Groups are equal, at least one is chosen, and those chosen have experts enough. */
static bool has_groups(const octavo_router *router, int64_t n_experts) {
    const int n = router->n_groups, chosen = router->n_chosen_groups;
    if (n == 0) return true;
    return n > 0 && chosen > 0 && chosen <= n && n_experts % n == 0 &&
           router->n_chosen <= n_experts / n * chosen;
}

int octavo_build_route(octavo_builder *builder, const char *name, int logits, int bias,
                       const octavo_router *router) {
    octavo_program *program = builder->program;
    const octavo_tensor *in = octavo_built_tensor(builder, logits),
                        *b = octavo_built_tensor(builder, bias);
    if (!octavo_is_activation(in, false) || strlen(in->axes) != 2 || in->axes[0] != 't')
        return octavo_build_reject(builder, name, "routing by something that is not [t, e]");
    if (router->n_chosen < 1 || router->n_chosen > in->extent[1] ||
        in->extent[1] > OCTAVO_MAX_EXPERTS || !has_groups(router, in->extent[1]))
        return octavo_build_reject(builder, name, "a choice among too few or too many experts");
    if (b && b->extent[0] != in->extent[1])
        return octavo_build_reject(builder, name, "not one bias for each expert");
    const int n_experts = (int)in->extent[1];
    const int64_t extent[] = {0, (int64_t)(router->n_chosen * sizeof(octavo_choice) / 4)};
    int out = octavo_add_activation(builder, name, "tc", extent, false);
    const octavo_op_params params = {.router = *router,
                                     .slices = octavo_slices_of_experts(n_experts)};
    octavo_add_op(builder, OCTAVO_OP_ROUTE, out, params, logits, bias, OCTAVO_NO_TENSOR,
                  OCTAVO_NO_TENSOR);
    if (program->n_experts < n_experts) program->n_experts = n_experts;
    if (program->n_chosen < router->n_chosen) program->n_chosen = router->n_chosen;
    return octavo_add_op(builder, OCTAVO_OP_GROUP, out, params, out, OCTAVO_NO_TENSOR,
                         OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}

/* How the experts are cut that a router's result chooses from. */
static octavo_slices slices_of(const octavo_program *program, int route) {
    int i = program->n_ops - 1;
    while (i > 0 && (program->ops[i].kind != OCTAVO_OP_ROUTE || program->ops[i].out != route))
        i--;
    return program->ops[i].params.slices;
}

/* Experts that a row of a router's result chooses, 0 for something else. */
static int64_t chosen_of(const octavo_tensor *route) {
    if (!octavo_is_activation(route, false) || strcmp(route->axes, "tc") != 0) return 0;
    return route->extent[1] * 4 / (int64_t)sizeof(octavo_choice);
}

int octavo_build_gather(octavo_builder *builder, const char *name, int x, int route,
                        const octavo_router *router) {
    const octavo_tensor *in = octavo_built_tensor(builder, x),
                        *chosen = octavo_built_tensor(builder, route);
    if (!in || in->kind != OCTAVO_TENSOR_ACTIVATION || strlen(in->axes) != 2 ||
        chosen_of(chosen) != router->n_chosen || (in->is_q8 && router->is_for_input))
        return octavo_build_reject(builder, name, "rows or choices that cannot be gathered");
    const char axes[] = {'p', in->axes[1], 0};
    const int64_t extent[] = {chosen_of(chosen), in->extent[1]};
    int out = octavo_add_activation(builder, name, axes, extent, in->is_q8);
    return octavo_add_op(builder, OCTAVO_OP_GATHER, out, (octavo_op_params){.router = *router}, x,
                         route, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}

int octavo_build_expert_matmul(octavo_builder *builder, const char *name, int x, int weight,
                               int bias, int route, octavo_slices slices, char axis) {
    const octavo_tensor *in = octavo_built_tensor(builder, x),
                        *w = octavo_built_tensor(builder, weight);
    const octavo_tensor *b = octavo_built_tensor(builder, bias);
    const octavo_tensor *chosen = octavo_built_tensor(builder, route);
    if (!in || in->kind != OCTAVO_TENSOR_ACTIVATION || in->axes[0] != 'p' || !w ||
        w->kind != OCTAVO_TENSOR_WEIGHT || chosen_of(chosen) != in->extent[0])
        return octavo_build_reject(builder, name, "experts without rows, weights or choices");
    if (in->is_q8 && !octavo_weight_info_of(w->weight->type)->is_quantised)
        return octavo_build_reject(builder, name, "quantised rows with float weights");
    if (w->weight->stack < 1 || w->weight->k != octavo_width_of(in) ||
        slices.cut[slices.n] != w->weight->k)
        return octavo_build_reject(builder, name, "input and weights differ in width");
    if (!octavo_has_order(in->order, w->weight))
        return octavo_build_reject(builder, name, "input and weights differ in order");
    if (b && octavo_elements_of(b) != w->weight->stack * w->weight->n)
        return octavo_build_reject(builder, name, "outputs of weights and biases differ");
    const char axes[] = {'p', axis, 0};
    const int64_t extent[] = {in->extent[0], w->weight->n};
    int out = octavo_add_activation(builder, name, axes, extent, false);
    return octavo_add_op(builder, OCTAVO_OP_EXPERT_MATMUL, out,
                         (octavo_op_params){.slices = slices}, x, weight, route, bias);
}

int octavo_build_combine(octavo_builder *builder, const char *name, int x, int route,
                         const octavo_router *router) {
    const octavo_tensor *in = octavo_built_tensor(builder, x),
                        *chosen = octavo_built_tensor(builder, route);
    if (!octavo_is_activation(in, false) || in->axes[0] != 'p' ||
        chosen_of(chosen) != in->extent[0])
        return octavo_build_reject(builder, name, "rows or choices that cannot be combined");
    const char axes[] = {'t', in->axes[1], 0};
    int out = octavo_add_activation(builder, name, axes, in->extent, false);
    if (out == OCTAVO_NO_TENSOR) return out;
    const octavo_op_params params = {.router = *router,
                                     .slices = slices_of(builder->program, route)};
    return octavo_add_op(builder, OCTAVO_OP_COMBINE, out, params, x, route, OCTAVO_NO_TENSOR,
                         OCTAVO_NO_TENSOR);
}

int octavo_build_row_gate(octavo_builder *builder, int x, int gate) {
    const octavo_tensor *in = octavo_built_tensor(builder, x),
                        *by = octavo_built_tensor(builder, gate);
    if (!octavo_is_activation(in, false) || !octavo_is_activation(by, false) ||
        octavo_width_of(by) != 1 || in->axes[0] != by->axes[0])
        return octavo_build_reject(builder, "row gate", "not one number for each row");
    return octavo_add_op(builder, OCTAVO_OP_ROW_GATE, x, (octavo_op_params){0}, x, gate,
                         OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}
