/* SPDX-License-Identifier: Apache-2.0
 *
 * The builder: appends ops and their results, and checks that the shapes meet.
 */
#include "program/build.h"

#include "base/compiler.h"
#include "base/error.h"
#include "kernels/matmul.h"
#include "program/build_op.h"

#include <string.h>

int octavo_build_reject(octavo_builder *builder, const char *name, const char *why) {
    if (builder->status == OCTAVO_OK)
        builder->status = octavo_fail(
            &builder->error, OCTAVO_ERROR_INVALID,
            "tensor \"%s\" (layer %d of the program): %s; the model's description is at fault",
            name, builder->layer, why);
    return OCTAVO_NO_TENSOR;
}

bool octavo_build_grow(octavo_builder *builder, void **array, int n, int *capacity, size_t size) {
    if (n < *capacity) return builder->status == OCTAVO_OK;
    int wanted = *capacity ? *capacity * 2 : 256;
    void *moved = octavo_realloc(*array, (size_t)wanted * size);
    if (!moved) {
        builder->status =
            octavo_fail_memory(&builder->error, "step program", (uint64_t)wanted * size);
        return false;
    }
    *array = moved;
    *capacity = wanted;
    return true;
}

static size_t row_bytes(const octavo_tensor *tensor) {
    const int64_t width = octavo_width_of(tensor);
    size_t bytes = tensor->is_q8 ? (size_t)(width / OCTAVO_BLOCK) * sizeof(octavo_q8_block)
                                 : (size_t)width * sizeof(float);
    return octavo_align_up(bytes, OCTAVO_ALIGN);
}

int octavo_add_tensor(octavo_builder *builder, octavo_tensor tensor) {
    octavo_program *program = builder->program;
    void *array = program->tensors;
    if (builder->status != OCTAVO_OK) return OCTAVO_NO_TENSOR;
    if (!octavo_build_grow(builder, &array, program->n_tensors, &program->capacity_tensors,
                           sizeof tensor))
        return OCTAVO_NO_TENSOR;
    program->tensors = array;
    tensor.layer = builder->layer;
    if (tensor.kind == OCTAVO_TENSOR_ACTIVATION) tensor.row_bytes = row_bytes(&tensor);
    program->tensors[program->n_tensors] = tensor;
    return program->n_tensors++;
}

int octavo_add_activation(octavo_builder *builder, const char *name, const char *axes,
                          const int64_t *extent, bool is_q8) {
    octavo_tensor tensor = {.name = name, .kind = OCTAVO_TENSOR_ACTIVATION, .is_q8 = is_q8};
    memcpy(tensor.axes, axes, strlen(axes));
    for (int i = axes[0] == 'p' ? 0 : 1; axes[i]; i++)
        tensor.extent[i] = extent[i];
    return octavo_add_tensor(builder, tensor);
}

int octavo_add_op(octavo_builder *builder, octavo_op_kind kind, int out, octavo_op_params params,
                  int in0, int in1, int in2, int in3) {
    octavo_program *program = builder->program;
    void *array = program->ops;
    if (builder->status != OCTAVO_OK) return OCTAVO_NO_TENSOR;
    if (!octavo_build_grow(builder, &array, program->n_ops, &program->capacity_ops,
                           sizeof(octavo_op)))
        return OCTAVO_NO_TENSOR;
    program->ops = array;
    octavo_op op = {.kind = kind, .layer = builder->layer, .out = out, .params = params};
    const int in[OCTAVO_OP_INPUTS] = {in0, in1, in2, in3, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR};
    memcpy(op.in, in, sizeof in);
    program->ops[program->n_ops++] = op;
    return out;
}

void octavo_build_start(octavo_builder *builder, octavo_program *program, int max_tokens,
                        int max_rows, bool is_exact) {
    *program = (octavo_program){.max_tokens = max_tokens,
                                .max_group_tokens = max_tokens,
                                .max_rows = max_rows,
                                .mesh = {.degree = {1, 1, 1, 1}},
                                .n_row_splits = 1,
                                .head_begin = INT32_MAX,
                                .logits_begin = INT32_MAX,
                                .hidden = OCTAVO_NO_TENSOR,
                                .logits = OCTAVO_NO_TENSOR};
    *builder = (octavo_builder){.program = program, .layer = OCTAVO_NO_LAYER, .is_exact = is_exact};
    program->ids = octavo_add_tensor(
        builder, (octavo_tensor){.name = "token_ids_t", .kind = OCTAVO_TENSOR_INPUT, .axes = "t"});
    program->positions = octavo_add_tensor(
        builder, (octavo_tensor){.name = "positions_t", .kind = OCTAVO_TENSOR_INPUT, .axes = "t"});
    program->types = octavo_add_tensor(
        builder,
        (octavo_tensor){.name = "token_types_t", .kind = OCTAVO_TENSOR_INPUT, .axes = "t"});
}

int octavo_build_weight(octavo_builder *builder, const char *name, const octavo_weight *weight,
                        const int64_t *extent) {
    octavo_tensor tensor = {.name = name, .kind = OCTAVO_TENSOR_WEIGHT, .weight = weight};
    const char *axes = strrchr(name, '_');
    if (!axes || strlen(axes + 1) > OCTAVO_TENSOR_AXES)
        return octavo_build_reject(builder, name, "no axes in its name");
    int64_t elements = 1;
    for (int i = 0; axes[1 + i]; i++) {
        tensor.axes[i] = axes[1 + i];
        tensor.extent[i] = extent[i];
        elements *= extent[i];
    }
    if (elements != weight->n * weight->k * (weight->stack ? weight->stack : 1))
        return octavo_build_reject(builder, name, "extents that are not the weight's");
    return octavo_add_tensor(builder, tensor);
}

int octavo_build_vector(octavo_builder *builder, const char *name, const char *axes,
                        const float *vector, const int64_t *extent) {
    octavo_tensor tensor = {.name = name, .kind = OCTAVO_TENSOR_VECTOR, .vector = vector};
    for (int i = 0; axes[i]; i++) {
        tensor.axes[i] = axes[i];
        tensor.extent[i] = extent[i];
    }
    return octavo_add_tensor(builder, tensor);
}

int octavo_build_cache(octavo_builder *builder, const char *name, int64_t kv_heads,
                       int64_t head_dim) {
    return octavo_add_tensor(builder, (octavo_tensor){.name = name,
                                                      .kind = OCTAVO_TENSOR_CACHE,
                                                      .axes = "skh",
                                                      .extent = {0, kv_heads, head_dim}});
}

int octavo_build_embed(octavo_builder *builder, const char *name, int by, int weight, float scale) {
    const octavo_tensor *w = octavo_built_tensor(builder, weight),
                        *input = octavo_built_tensor(builder, by);
    if (!w || w->kind != OCTAVO_TENSOR_WEIGHT || !input || input->kind != OCTAVO_TENSOR_INPUT)
        return octavo_build_reject(builder, name, "embedding without an input or a weight");
    const int64_t extent[] = {0, w->weight->k};
    int out = octavo_add_activation(builder, name, "td", extent, false);
    return octavo_add_op(builder, OCTAVO_OP_EMBED, out, (octavo_op_params){.scale = scale}, by,
                         weight, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}

int octavo_build_rope_table(octavo_builder *builder, const char *name,
                            const octavo_rope_speeds *speeds, int64_t pairs) {
    const int64_t extent[] = {0, 2 * pairs};
    int out = octavo_add_activation(builder, name, "th", extent, false);
    return octavo_add_op(builder, OCTAVO_OP_ROPE_TABLE, out, (octavo_op_params){.speeds = *speeds},
                         builder->program->positions, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR,
                         OCTAVO_NO_TENSOR);
}

int octavo_build_norm(octavo_builder *builder, const char *name, int x,
                      const octavo_norm_desc *desc, octavo_slices slices) {
    const octavo_tensor *in = octavo_built_tensor(builder, x),
                        *scale = octavo_built_tensor(builder, desc->scale);
    const octavo_tensor *bias = octavo_built_tensor(builder, desc->bias);
    if (!octavo_is_activation(in, false) || slices.cut[slices.n] != octavo_width_of(in))
        return octavo_build_reject(builder, name,
                                   "norm of something that is not rows of that width");
    if (!scale || octavo_elements_of(scale) != octavo_width_of(in) ||
        (bias && octavo_elements_of(bias) != octavo_width_of(in)))
        return octavo_build_reject(builder, name, "norm scale or bias of another width");
    if (bias && desc->kind == OCTAVO_NORM_RMS)
        return octavo_build_reject(builder, name, "a bias at an RMS norm");
    int out = octavo_add_activation(builder, name, in->axes, in->extent, false);
    octavo_op_params params = {.norm = desc->kind, .eps = desc->eps, .slices = slices};
    return octavo_add_op(builder, OCTAVO_OP_NORM, out, params, x, desc->scale, desc->bias,
                         OCTAVO_NO_TENSOR);
}

int octavo_build_head_norm(octavo_builder *builder, int x, int scale, float eps) {
    const octavo_tensor *in = octavo_built_tensor(builder, x),
                        *weight = octavo_built_tensor(builder, scale);
    if (!octavo_is_activation(in, false) || strlen(in->axes) != 3)
        return octavo_build_reject(builder, "head norm", "input is not [t, n, h]");
    if (weight && weight->extent[0] > in->extent[2])
        return octavo_build_reject(builder, in->name, "norm scale wider than a head");
    const int64_t width = weight ? weight->extent[0] : in->extent[2];
    octavo_op_params params = {.eps = eps, .slices = octavo_slices_make(width, 1)};
    return octavo_add_op(builder, OCTAVO_OP_HEAD_NORM, x, params, x, scale, OCTAVO_NO_TENSOR,
                         OCTAVO_NO_TENSOR);
}

static int add_quantised(octavo_builder *builder, const char *name, int x) {
    const octavo_tensor *in = octavo_built_tensor(builder, x);
    if (!octavo_is_activation(in, false) || octavo_width_of(in) % OCTAVO_BLOCK != 0)
        return octavo_build_reject(builder, name, "rows that cannot be cut into blocks of 32");
    const int32_t *order = in->order;
    int out = octavo_add_activation(builder, name, in->axes, in->extent, true);
    if (out != OCTAVO_NO_TENSOR) builder->program->tensors[out].order = order;
    return octavo_add_op(builder, OCTAVO_OP_QUANTISE, out, (octavo_op_params){0}, x,
                         OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}

static int add_reordered(octavo_builder *builder, const char *name, int x,
                         const octavo_weight *weight) {
    const octavo_tensor *in = octavo_built_tensor(builder, x);
    if (!octavo_is_activation(in, false) || octavo_width_of(in) != weight->k ||
        (in->axes[0] == 'p') != (weight->stack > 0))
        return octavo_build_reject(builder, name, "rows that have not the inputs of an order");
    int out = octavo_add_activation(builder, name, in->axes, in->extent, false);
    if (out != OCTAVO_NO_TENSOR) builder->program->tensors[out].order = weight->order;
    return octavo_add_op(builder, OCTAVO_OP_REORDER, out,
                         (octavo_op_params){.order = weight->order}, x, OCTAVO_NO_TENSOR,
                         OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}

void octavo_build_operands(octavo_builder *builder, const char *name, int x, const int *weights,
                           int *operands, int n_weights) {
    int ordered[OCTAVO_MAX_OPERANDS]; /* the operands before they are quantised */
    octavo_assert(n_weights <= OCTAVO_MAX_OPERANDS);
    for (int i = 0; i < n_weights; i++) {
        const octavo_tensor *w = octavo_built_tensor(builder, weights[i]);
        operands[i] = ordered[i] = x;
        if (!w) continue;
        const octavo_weight *weight = w->weight;
        int same = 0;
        while (same < i &&
               !(octavo_built_tensor(builder, ordered[same]) &&
                 octavo_has_order(octavo_built_tensor(builder, ordered[same])->order, weight)))
            same++;
        if (weight->order)
            ordered[i] = same < i ? ordered[same] : add_reordered(builder, name, x, weight);
        operands[i] = ordered[i];
        if (builder->is_exact || !octavo_weight_info_of(weight->type)->is_quantised) continue;
        same = 0;
        while (same < i && (ordered[same] != ordered[i] || operands[same] == ordered[i]))
            same++;
        operands[i] = same < i ? operands[same] : add_quantised(builder, name, ordered[i]);
    }
}

int octavo_build_matmul(octavo_builder *builder, const char *name, int x, int weight, int bias,
                        octavo_slices slices, const char *axes, int64_t extent0, int64_t extent1) {
    const octavo_tensor *in = octavo_built_tensor(builder, x),
                        *w = octavo_built_tensor(builder, weight);
    const octavo_tensor *b = octavo_built_tensor(builder, bias);
    if (!in || !w || in->kind != OCTAVO_TENSOR_ACTIVATION || w->kind != OCTAVO_TENSOR_WEIGHT)
        return octavo_build_reject(builder, name, "matmul without an input or a weight");
    if (in->is_q8 && !octavo_weight_info_of(w->weight->type)->is_quantised)
        return octavo_build_reject(builder, name, "quantised rows with a float weight");
    if (w->weight->k != octavo_width_of(in) || slices.cut[slices.n] != w->weight->k)
        return octavo_build_reject(builder, name, "input and weight differ in width");
    if (!octavo_has_order(in->order, w->weight))
        return octavo_build_reject(builder, name, "input and weight differ in order");
    if (w->weight->n != extent0 * extent1 || (b && octavo_elements_of(b) != w->weight->n))
        return octavo_build_reject(builder, name,
                                   "outputs of the weight, the bias and the result differ");
    char full[OCTAVO_TENSOR_AXES + 1] = {in->axes[0]};
    memcpy(full + 1, axes, strlen(axes));
    const int64_t extent[] = {0, extent0, extent1};
    int out = octavo_add_activation(builder, name, full, extent, false);
    return octavo_add_op(builder, OCTAVO_OP_MATMUL, out, (octavo_op_params){.slices = slices}, x,
                         weight, bias, OCTAVO_NO_TENSOR);
}

/* Rows are quantised where that leaves blocks of a head's own; else they stay f32. */
int octavo_build_head_matmul(octavo_builder *builder, const char *name, int x, int weight,
                             octavo_slices slices) {
    const octavo_tensor *in = octavo_built_tensor(builder, x),
                        *w = octavo_built_tensor(builder, weight);
    if (!octavo_is_activation(in, false) || strlen(in->axes) != 3 || !w ||
        w->kind != OCTAVO_TENSOR_WEIGHT || w->weight->stack != in->extent[1])
        return octavo_build_reject(builder, name, "not one matrix for each head");
    if (w->weight->k > in->extent[2] || slices.cut[slices.n] != w->weight->k)
        return octavo_build_reject(builder, name, "heads and matrices differ in width");
    const int64_t extent[] = {0, in->extent[1], w->weight->n + in->extent[2] - w->weight->k};
    int operand = x;
    if (in->extent[2] % OCTAVO_BLOCK == 0)
        octavo_build_operands(builder, name, x, &weight, &operand, 1);
    int out = octavo_add_activation(builder, name, "tnh", extent, false);
    return octavo_add_op(builder, OCTAVO_OP_HEAD_MATMUL, out, (octavo_op_params){.slices = slices},
                         operand, weight, x, OCTAVO_NO_TENSOR);
}

int octavo_build_rope(octavo_builder *builder, int x, int table, octavo_rope_pairing pairing,
                      int64_t first_lane) {
    const octavo_tensor *in = octavo_built_tensor(builder, x),
                        *cs = octavo_built_tensor(builder, table);
    if (!octavo_is_activation(in, false) || strlen(in->axes) != 3 ||
        !octavo_is_activation(cs, false) || first_lane + cs->extent[1] > in->extent[2])
        return octavo_build_reject(builder, "rope",
                                   "input is not [t, n, h] or narrower than its table");
    octavo_op_params params = {.pairing = pairing, .first_lane = first_lane};
    return octavo_add_op(builder, OCTAVO_OP_ROPE, x, params, x, table, OCTAVO_NO_TENSOR,
                         OCTAVO_NO_TENSOR);
}

int octavo_build_temperature(octavo_builder *builder, int x, octavo_temperature temperature) {
    if (!octavo_is_activation(octavo_built_tensor(builder, x), false) ||
        !(temperature.period > 0.0f))
        return octavo_build_reject(builder, "temperature", "not rows of f32, or no period");
    return octavo_add_op(builder, OCTAVO_OP_TEMPERATURE, x,
                         (octavo_op_params){.temperature = temperature}, x,
                         builder->program->positions, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}

int octavo_find_plan(octavo_program *program, const octavo_plan_key *key) {
    for (int i = 0; i < program->n_plans; i++) {
        const octavo_plan_key *plan = &program->plans[i];
        if (plan->n_heads == key->n_heads && plan->n_kv_heads == key->n_kv_heads &&
            plan->head_dim == key->head_dim && plan->value_lanes == key->value_lanes &&
            plan->window == key->window && plan->chunk == key->chunk &&
            plan->is_encoder == key->is_encoder && plan->group == key->group &&
            plan->first == key->first && plan->rows == key->rows &&
            plan->is_of_all == key->is_of_all && plan->is_dealt == key->is_dealt &&
            octavo_split_equal(&plan->parts, &key->parts))
            return i;
    }
    if (program->n_plans == OCTAVO_MAX_PLANS) return -1;
    program->plans[program->n_plans] = *key;
    return program->n_plans++;
}

/* A key or value, or none, is as the cache wants it. */
static bool fits_cache(const octavo_tensor *x, const octavo_tensor *cache) {
    if (!x) return true;
    return octavo_is_activation(x, false) && x->extent[1] == cache->extent[1] &&
           x->extent[2] == cache->extent[2];
}

int octavo_build_attention(octavo_builder *builder, const char *name,
                           const octavo_attention_desc *desc) {
    const octavo_tensor *q = octavo_built_tensor(builder, desc->query),
                        *k = octavo_built_tensor(builder, desc->key);
    const octavo_tensor *v = octavo_built_tensor(builder, desc->value),
                        *cache = octavo_built_tensor(builder, desc->cache);
    const bool has_value = k && desc->value_lanes == 0;
    if (!octavo_is_activation(q, false) || !cache || cache->kind != OCTAVO_TENSOR_CACHE ||
        (v != NULL) != has_value || (!k && cache->layer == builder->layer))
        return octavo_build_reject(builder, name, "attention without query, key, value or cache");
    if (!fits_cache(k, cache) || !fits_cache(v, cache) || q->extent[2] != cache->extent[2] ||
        q->extent[1] % cache->extent[1] != 0 || desc->value_lanes > cache->extent[2])
        return octavo_build_reject(builder, name,
                                   "heads or head widths of query, key, value and cache differ");
    const octavo_tensor *sink = octavo_built_tensor(builder, desc->sink);
    if (sink && sink->extent[0] != q->extent[1])
        return octavo_build_reject(builder, name, "not one sink for each head");
    int plan =
        octavo_find_plan(builder->program, &(octavo_plan_key){.n_heads = q->extent[1],
                                                              .n_kv_heads = cache->extent[1],
                                                              .head_dim = q->extent[2],
                                                              .value_lanes = desc->value_lanes,
                                                              .window = desc->window,
                                                              .chunk = desc->chunk,
                                                              .is_encoder = desc->is_encoder});
    if (plan < 0)
        return octavo_build_reject(builder, name, "too many kinds of attention in one program");
    octavo_op_params params = {.scale = desc->scale, .soft_cap = desc->soft_cap, .plan = plan};
    const int64_t width = desc->value_lanes > 0 ? desc->value_lanes : q->extent[2];
    const int64_t extent[] = {0, q->extent[1], width};
    int out = octavo_add_activation(builder, name, "tnh", extent, false);
    octavo_add_op(builder, OCTAVO_OP_CACHE_UPDATE, desc->cache, params, desc->key, desc->value,
                  desc->cache, OCTAVO_NO_TENSOR);
    octavo_add_op(builder, OCTAVO_OP_ATTENTION, out, params, desc->query, desc->cache, desc->sink,
                  OCTAVO_NO_TENSOR);
    return octavo_add_op(builder, OCTAVO_OP_ATTENTION_MERGE, out, params, desc->query, desc->cache,
                         desc->sink, out);
}

/* a and b (which may be none) are rows of the same width: a new tensor like a. */
static int add_elementwise(octavo_builder *builder, octavo_op_kind kind, const char *name, int a,
                           int b, octavo_op_params params) {
    const octavo_tensor *x = octavo_built_tensor(builder, a), *y = octavo_built_tensor(builder, b);
    if (!octavo_is_activation(x, false) ||
        (b != OCTAVO_NO_TENSOR && !octavo_is_activation(y, false)))
        return octavo_build_reject(builder, name, "an operand that is not rows of f32");
    if (y && octavo_width_of(x) != octavo_width_of(y))
        return octavo_build_reject(builder, name, "operands differ in width");
    int out = octavo_add_activation(builder, name, x->axes, x->extent, false);
    return octavo_add_op(builder, kind, out, params, a, b, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}

int octavo_build_gate(octavo_builder *builder, const char *name, int gate, int up,
                      octavo_activation act, float limit) {
    if (act == OCTAVO_ACTIVATION_SWIGLU && (up == OCTAVO_NO_TENSOR || !(limit > 0.0f)))
        return octavo_build_reject(builder, name, "a limited gate without up or limit");
    return add_elementwise(builder, OCTAVO_OP_GATE, name, gate, up,
                           (octavo_op_params){.act = act, .limit = limit});
}

int octavo_build_add(octavo_builder *builder, const char *name, int a, int b, float scale) {
    if (b == OCTAVO_NO_TENSOR) return octavo_build_reject(builder, name, "a sum of one operand");
    return add_elementwise(builder, OCTAVO_OP_ADD, name, a, b, (octavo_op_params){.scale = scale});
}

int octavo_build_scale(octavo_builder *builder, int x, float scale, float soft_cap) {
    if (!octavo_is_activation(octavo_built_tensor(builder, x), false))
        return octavo_build_reject(builder, "scale", "input is not rows of f32");
    return octavo_add_op(builder, OCTAVO_OP_SCALE, x,
                         (octavo_op_params){.scale = scale, .soft_cap = soft_cap}, x,
                         OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}

void octavo_build_trace(octavo_builder *builder, int x) {
    octavo_program *program = builder->program;
    void *array = program->traces;
    if (!octavo_is_activation(octavo_built_tensor(builder, x), false)) {
        octavo_build_reject(builder, "trace", "not rows of f32");
        return;
    }
    if (!octavo_build_grow(builder, &array, program->n_traces, &program->capacity_traces,
                           sizeof *program->traces))
        return;
    program->traces = array;
    program->traces[program->n_traces++] =
        (octavo_trace){program->n_ops, x, octavo_width_of(octavo_built_tensor(builder, x))};
}

void octavo_build_hidden(octavo_builder *builder, int x) {
    const octavo_tensor *in = octavo_built_tensor(builder, x);
    if (!octavo_is_activation(in, false) || in->axes[0] != 'r')
        octavo_build_reject(builder, "hidden", "not rows of f32 of the head");
    builder->program->hidden = x;
    builder->program->logits_begin = builder->program->n_ops;
}

int octavo_build_select(octavo_builder *builder, const char *name, int x) {
    const octavo_tensor *in = octavo_built_tensor(builder, x);
    if (!octavo_is_activation(in, false) || strlen(in->axes) != 2)
        return octavo_build_reject(builder, name, "selection from something that is not [t, d]");
    builder->program->head_begin = builder->program->n_ops;
    int out = octavo_add_activation(builder, name, "rd", in->extent, false);
    return octavo_add_op(builder, OCTAVO_OP_SELECT, out, (octavo_op_params){0}, x, OCTAVO_NO_TENSOR,
                         OCTAVO_NO_TENSOR, OCTAVO_NO_TENSOR);
}

octavo_status octavo_build_finish(octavo_builder *builder, int logits, octavo_error *error) {
    octavo_program *program = builder->program;
    const int last = logits == OCTAVO_NO_TENSOR ? program->hidden : logits;
    const octavo_tensor *result = octavo_built_tensor(builder, last);
    if (builder->status == OCTAVO_OK && (!result || result->axes[0] != 'r'))
        octavo_build_reject(builder, "logits_tv", "not a result of the head");
    program->logits = logits;
    if (builder->status == OCTAVO_OK && !octavo_program_plan_memory(program))
        builder->status =
            octavo_fail_memory(&builder->error, "memory plan", (uint64_t)program->n_tensors);
    if (builder->status != OCTAVO_OK) {
        octavo_program_deinit(program);
        if (error) *error = builder->error;
    }
    return builder->status;
}
