/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding tensors, checking them, and vectors; matrices are packed in weights_pack.c.
 */
#include "model/weights_load.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "model/weights_find.h"
#include "model/weights_mxfp4.h"
#include "model/weights_place.h"
#include "model/weights_type.h"

#include <stdio.h>
#include <string.h>

/* ---- matrices ---- */

octavo_status octavo_load_report(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                                 uint64_t bytes) {
    load->done += bytes;
    load->weights->source_bytes += bytes;
    if (load->options->progress &&
        load->options->progress(load->options->cookie, load->done, load->total))
        return octavo_fail(load->error, OCTAVO_ERROR_CANCELLED,
                           "loading (%s): stopped by the caller", tensor->path);
    return OCTAVO_OK;
}

/* [n, k], or for vectors [k]; axes of 1 before are none. */
static bool has_shape(const octavo_checkpoint_tensor *tensor, int64_t n, int64_t k) {
    const int last = tensor->n_dims - 1;
    if (last < 0 || tensor->extent[last] != (uint64_t)k) return false;
    if ((last > 0 ? tensor->extent[last - 1] : 1) != (uint64_t)n) return false;
    for (int i = 0; i < last - 1; i++)
        if (tensor->extent[i] != 1) return false;
    return true;
}

octavo_status octavo_load_fail_shape(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                                     int n, const int64_t *wanted) {
    char shape[OCTAVO_SAFETENSORS_MAX_DIMS * 24] = "", other[sizeof shape] = "";
    size_t used = 0, used_other = 0;
    for (int i = 0; i < tensor->n_dims; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%llu", i ? ", " : "",
                                 (unsigned long long)tensor->extent[i]);
    for (int i = 0; i < n; i++)
        used_other += (size_t)snprintf(other + used_other, sizeof other - used_other, "%s%lld",
                                       i ? ", " : "", (long long)wanted[i]);
    return octavo_fail_at(load->error, OCTAVO_ERROR_FORMAT, tensor->offset,
                          "tensor \"%s\" (%s): shape [%s] where the %s asks for [%s]; the "
                          "file is damaged or of another model",
                          tensor->name, tensor->path, shape,
                          load->checkpoint->gguf ? "metadata" : "config.json", other);
}

static octavo_status check_shape(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                                 int64_t n, int64_t k) {
    const int64_t wanted[] = {n, k};
    return has_shape(tensor, n, k) ? OCTAVO_OK : octavo_load_fail_shape(load, tensor, 2, wanted);
}

static octavo_status find(octavo_loader *load, octavo_weight_role role, int layer, int expert,
                          octavo_checkpoint_tensor *tensor) {
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_weight_name_make(load->checkpoint, load->config->names, role, layer, expert, name);
    return octavo_checkpoint_get(load->checkpoint, name, tensor, load->error);
}

static octavo_status fail_vector_type(octavo_loader *load, const octavo_checkpoint_tensor *tensor) {
    return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor->offset,
                          "tensor \"%s\" (%s): type %s for a vector; F32, F16 and BF16 are read",
                          tensor->name, tensor->path, tensor->type_name);
}

/* values[i] = the tensor's [first + i] + offset */
static octavo_status widen(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                           octavo_row_map rows, int64_t first, int64_t extent, float offset,
                           float *values) {
    if (!tensor->has_type) return fail_vector_type(load, tensor);
    for (int64_t i = 0; i < extent; i++) {
        const size_t from = (size_t)octavo_source_row(&rows, first + i);
        uint16_t half;
        switch (tensor->type) {
        case OCTAVO_GGML_F32:
            memcpy(&values[i], tensor->data + from * 4, 4);
            break;
        case OCTAVO_GGML_F16:
            memcpy(&half, tensor->data + from * 2, 2);
            values[i] = octavo_f16_to_f32(half);
            break;
        case OCTAVO_GGML_BF16:
            memcpy(&half, tensor->data + from * 2, 2);
            values[i] = octavo_bf16_to_f32(half);
            break;
        default:
            return fail_vector_type(load, tensor);
        }
        if (offset != 0.0f) values[i] += offset;
    }
    return OCTAVO_OK;
}

/* "NAME.scale" beside "NAME.weight": a factor for the whole product, in stacks one for each matrix,
 * as GGUF files of NVFP4 and of BitNet have it. */
octavo_status octavo_load_factors(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                                  octavo_weight *weight) {
    const int64_t n = weight->stack ? weight->stack : 1;
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_checkpoint_tensor found;
    const char *suffix = strstr(tensor->name, ".weight");
    if (!load->checkpoint->gguf || !suffix || strcmp(suffix, ".weight") != 0) return OCTAVO_OK;
    snprintf(name, sizeof name, "%.*s.scale", (int)(suffix - tensor->name), tensor->name);
    if (octavo_checkpoint_find(load->checkpoint, name) < 0) return OCTAVO_OK;
    octavo_status status = octavo_checkpoint_get(load->checkpoint, name, &found, load->error);
    if (status || (status = check_shape(load, &found, 1, n))) return status;
    float *factors = octavo_arena_alloc(&load->weights->arena, (size_t)n * sizeof *factors);
    if (!factors) return octavo_fail_memory(load->error, name, (uint64_t)n * sizeof *factors);
    if ((status = widen(load, &found, (octavo_row_map){0}, 0, n, 0.0f, factors))) return status;
    weight->factors = factors;
    return octavo_load_report(load, &found, found.bytes);
}

static octavo_status find_type(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                               octavo_weight_type *type) {
    if (tensor->has_type && octavo_weight_type_of(tensor->type, type)) return OCTAVO_OK;
    return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor->offset,
                          "tensor \"%s\" (%s): type %s cannot be run by this version; %s",
                          tensor->name, tensor->path, tensor->type_name,
                          load->checkpoint->gguf
                              ? "requantise the model to Q8_0, Q4_0, Q4_K or Q6_K"
                              : "convert the model to F32, F16 or BF16");
}

/* The part of a tensor's bytes that n of its rows are. */
static size_t share_of(size_t bytes, int64_t n, const octavo_row_map *rows) {
    return rows->all ? bytes / (size_t)rows->all * (size_t)n : bytes;
}

static octavo_status find_groups(octavo_loader *load, const octavo_weight *weight, const char *name,
                                 octavo_row_map rows, octavo_found_matrix *found) {
    octavo_groups_source *groups = &found->groups;
    octavo_status status = octavo_groups_find(load, name, weight, rows, groups);
    if (status) return status;
    const size_t beside = groups->zeros.bytes + groups->scales.bytes;
    found->source = (octavo_pack_source){
        .tensor = &groups->codes,
        .n = weight->n,
        .k = weight->k,
        .type = groups->type,
        .row_bytes = groups->codes.bytes / (size_t)groups->n,
        .rows = {.all = groups->n, .first = rows.first, .group = groups->n},
        .fill = octavo_groups_fill,
        .cookie = groups,
        .order = groups->order,
        .cookie_bytes = sizeof *groups,
        .beside_bytes = share_of(beside, weight->n, &rows),
    };
    return OCTAVO_OK;
}

octavo_status octavo_load_find(octavo_loader *load, const octavo_weight *weight,
                               octavo_row_map rows, octavo_weight_role role, int layer, int expert,
                               octavo_found_matrix *found) {
    const octavo_quant_kind quant = load->config->quant.kind;
    const octavo_column_map none = {0};
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_status status;
    load->role = role;
    load->layer = layer;
    octavo_weight_name_make(load->checkpoint, load->config->names, role, layer, expert, name);
    const bool has_groups =
        quant == OCTAVO_QUANT_GPTQ || quant == OCTAVO_QUANT_AWQ || quant == OCTAVO_QUANT_PACKED;
    if (has_groups && role != OCTAVO_ROLE_EMBED &&
        octavo_checkpoint_find(load->checkpoint, name) < 0)
        return find_groups(load, weight, name, rows, found);
    const int64_t all = rows.all ? rows.all : weight->n;
    if ((status = octavo_checkpoint_get(load->checkpoint, name, &found->tensor, load->error)) ||
        (status = check_shape(load, &found->tensor, all, weight->k)))
        return status;
    found->source = (octavo_pack_source){
        .tensor = &found->tensor,
        .n = weight->n,
        .k = weight->k,
        .row_bytes = found->tensor.bytes / (size_t)all,
        .rows = rows,
    };
    if (!octavo_f8_is(load, &found->tensor))
        return find_type(load, &found->tensor, &found->source.type);
    if ((status = octavo_f8_find(load, &found->tensor, weight, rows, none, &found->f8)))
        return status;
    found->source.type = found->f8.type;
    found->source.fill = octavo_f8_fill;
    found->source.cookie = &found->f8;
    found->source.cookie_bytes = sizeof found->f8;
    found->source.beside_bytes = share_of(found->f8.scale.tensor->bytes, weight->n, &rows);
    return OCTAVO_OK;
}

octavo_status octavo_load_matrix(octavo_loader *load, octavo_weight *weight, int64_t n, int64_t k,
                                 octavo_row_map rows, octavo_weight_role role, int layer) {
    octavo_found_matrix found;
    octavo_weight_part part;
    *weight = (octavo_weight){.n = n, .k = k};
    octavo_status status = octavo_load_find(load, weight, rows, role, layer, 0, &found);
    if (status || (status = octavo_load_factors(load, found.source.tensor, weight))) return status;
    weight->order = found.source.order;
    weight->type = octavo_weights_choose(load->options->weights, role, found.source.type,
                                         (rows.all ? rows.all : n) * k, k);
    if ((status = octavo_pack_place(load, weight, found.source.tensor, &part))) return status;
    return octavo_pack_matrix(load, weight, &part, 0, &found.source);
}

/* ---- experts ---- */

static bool has_stack_shape(const octavo_checkpoint_tensor *tensor, int64_t stack, int64_t rows,
                            int64_t columns) {
    return tensor->n_dims == 3 && tensor->extent[0] == (uint64_t)stack &&
           tensor->extent[1] == (uint64_t)rows && tensor->extent[2] == (uint64_t)columns;
}

static void choose_stack_type(const octavo_loader *load, octavo_weight *stack,
                              octavo_weight_type from, octavo_weight_role role) {
    stack->type = octavo_weights_choose(load->options->weights, role, from,
                                        stack->stack * stack->n * stack->k, stack->k);
}

octavo_status octavo_load_stack(octavo_loader *load, octavo_weight *weight, octavo_row_map map,
                                octavo_column_map columns, octavo_weight_role role, int layer) {
    const octavo_weight whole = *weight;
    const bool is_columns = columns.columns > 0;
    const int64_t rows = is_columns ? whole.k : map.all ? map.all : whole.n;
    const int64_t width = is_columns ? columns.columns : whole.k;
    octavo_checkpoint_tensor tensor;
    octavo_weight_part part;
    load->role = role;
    load->layer = layer;
    octavo_status status = find(load, role, layer, 0, &tensor);
    if (status) return status;
    if (!has_stack_shape(&tensor, weight->stack, rows, width)) {
        const int64_t wanted[] = {weight->stack, rows, width};
        return octavo_load_fail_shape(load, &tensor, 3, wanted);
    }
    octavo_f8_source f8;
    octavo_weight_type type;
    const bool is_f8 = octavo_f8_is(load, &tensor);
    if ((status = is_f8 ? octavo_f8_find(load, &tensor, weight, map, columns, &f8)
                        : find_type(load, &tensor, &type)))
        return status;
    if (is_f8) type = f8.type;
    if (!is_f8 && is_columns && octavo_weight_info_of(type)->source_inputs > 1)
        return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor.offset,
                              "tensor \"%s\" (%s): type %s with outputs in columns cannot be run",
                              tensor.name, tensor.path, tensor.type_name);
    choose_stack_type(load, weight, type, role);
    if ((status = octavo_load_factors(load, &tensor, weight)) ||
        (status = octavo_pack_place(load, weight, &tensor, &part)))
        return status;
    const size_t bytes = tensor.bytes / (size_t)whole.stack;
    octavo_pack_ask(load, &tensor, bytes, &whole, &part);
    for (int64_t e = part.e0; e < part.e1 && !status; e++) {
        octavo_pack_source source = {
            .tensor = &tensor,
            .n = whole.n,
            .k = whole.k,
            .type = type,
            .begin = (size_t)e * bytes,
            .row_bytes = bytes / (size_t)(is_columns ? width : rows),
            .rows = map,
            .columns = columns,
        };
        if (is_f8) {
            f8.codes = tensor.data + source.begin;
            f8.matrix = (uint64_t)e;
            source.fill = octavo_f8_fill;
            source.cookie = &f8;
            source.cookie_bytes = sizeof f8;
            source.beside_bytes = f8.scale.tensor->bytes / (size_t)whole.stack;
        }
        status = octavo_pack_matrix(load, weight, &part, e, &source);
        if (is_columns && load->options->pool)
            octavo_checkpoint_drop(load->checkpoint, &tensor, source.begin, bytes);
    }
    return status;
}

static octavo_status load_mxfp4_stack(octavo_loader *load, octavo_weight *weight,
                                      octavo_column_map columns, octavo_weight_role role,
                                      int layer) {
    const octavo_weight whole = *weight;
    octavo_mxfp4 found;
    octavo_weight_part part;
    octavo_status status =
        octavo_mxfp4_find(load, weight->stack, columns.columns, weight->k, role, layer, &found);
    if (status) return status;
    choose_stack_type(load, weight, OCTAVO_WEIGHT_MXFP4, role);
    if ((status = octavo_pack_place(load, weight, &found.blocks, &part))) return status;
    const size_t bytes = found.blocks.bytes / (size_t)whole.stack;
    const size_t scale_bytes = found.scales.bytes / (size_t)whole.stack;
    octavo_pack_ask(load, &found.blocks, bytes, &whole, &part);
    for (int64_t e = part.e0; e < part.e1 && !status; e++) {
        const octavo_mxfp4_source parts = {
            .blocks = found.blocks.data + (size_t)e * bytes,
            .scales = found.scales.data + (size_t)e * scale_bytes,
            .n_blocks = (int64_t)scale_bytes / columns.columns,
            .columns = columns,
        };
        const octavo_pack_source source = {
            .tensor = &found.blocks,
            .n = whole.n,
            .k = whole.k,
            .type = OCTAVO_WEIGHT_MXFP4,
            .begin = (size_t)e * bytes,
            .row_bytes = bytes / (size_t)columns.columns,
            .columns = columns,
            .fill = octavo_mxfp4_fill,
            .cookie = &parts,
            .cookie_bytes = sizeof parts,
            .beside_bytes = scale_bytes / (size_t)columns.columns * (size_t)whole.n,
        };
        status = octavo_pack_matrix(load, weight, &part, e, &source);
        if (load->options->pool)
            octavo_checkpoint_drop(load->checkpoint, &found.blocks, source.begin, bytes);
    }
    if (load->options->pool)
        octavo_checkpoint_drop(load->checkpoint, &found.scales, 0, found.scales.bytes);
    return status;
}

/* Keeps the order of an expert's inputs, so far as they are the part's; if one has one all have,
 * held or not. */
static octavo_status keep_order(octavo_loader *load, octavo_weight *weight,
                                const octavo_weight_part *part, int64_t expert,
                                const int32_t *order, int32_t **orders) {
    const size_t n = (size_t)(weight->stack * weight->k);
    if (!order) return OCTAVO_OK;
    if (!*orders) {
        *orders = octavo_arena_alloc(&load->weights->arena, n * sizeof **orders);
        if (!*orders) return octavo_fail_memory(load->error, "orders of inputs", n * sizeof *order);
        for (size_t i = 0; i < n; i++)
            (*orders)[i] = (int32_t)(part->k0 + (int64_t)(i % (size_t)weight->k));
        weight->order = *orders;
    }
    if (expert >= part->e0 && expert < part->e1)
        memcpy(*orders + (expert - part->e0) * weight->k, order + part->k0,
               (size_t)weight->k * sizeof *order);
    return OCTAVO_OK;
}

/* All are checked, so that all ranks find the same faults. */
static octavo_status load_apart(octavo_loader *load, octavo_weight *weight, octavo_weight_role role,
                                int layer) {
    const octavo_row_map all = {0};
    const octavo_weight whole = *weight;
    octavo_weight_type first = OCTAVO_WEIGHT_F32;
    octavo_weight_part part = {0};
    int32_t *orders = NULL;
    octavo_status status = OCTAVO_OK;
    for (int e = 0; e < whole.stack && !status; e++) {
        octavo_found_matrix found;
        if ((status = octavo_load_find(load, &whole, all, role, layer, e, &found))) return status;
        const octavo_checkpoint_tensor *tensor = found.source.tensor;
        if (e == 0) {
            first = found.source.type;
            choose_stack_type(load, weight, first, role);
            if ((status = octavo_pack_place(load, weight, tensor, &part))) return status;
        }
        if (found.source.type != first)
            return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor->offset,
                                  "tensor \"%s\" (%s): type %s, but that of expert 0 is another; "
                                  "experts of one layer must be of one type",
                                  tensor->name, tensor->path, tensor->type_name);
        status = keep_order(load, weight, &part, e, found.source.order, &orders);
        if (!status && e >= part.e0 && e < part.e1)
            status = octavo_pack_matrix(load, weight, &part, e, &found.source);
    }
    return status;
}

static bool has_role(const octavo_loader *load, octavo_weight_role role, int layer) {
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_weight_name_make(load->checkpoint, load->config->names, role, layer, 0, name);
    return octavo_checkpoint_find(load->checkpoint, name) >= 0;
}

/* GGUF files have a stack, or one of gate and then up, or as they were once written a matrix for
 * each expert. */
static octavo_status load_gguf_experts(octavo_loader *load, octavo_weight *weight,
                                       octavo_weight_role role, int layer) {
    const octavo_column_map none = {0};
    const octavo_weight_role apart = role == OCTAVO_ROLE_EXPERT_GATE ? OCTAVO_ROLE_EXPERT_GATE_APART
                                     : role == OCTAVO_ROLE_EXPERT_UP
                                         ? OCTAVO_ROLE_EXPERT_UP_APART
                                         : OCTAVO_ROLE_EXPERT_DOWN_APART;
    octavo_row_map rows = {0};
    if (!has_role(load, role, layer)) {
        if (has_role(load, apart, layer)) return load_apart(load, weight, apart, layer);
        if (role != OCTAVO_ROLE_EXPERT_DOWN && has_role(load, OCTAVO_ROLE_EXPERT_GATE_UP, layer)) {
            rows = (octavo_row_map){.all = 2 * weight->n, .group = weight->n};
            if (role == OCTAVO_ROLE_EXPERT_UP) rows.first = weight->n;
            role = OCTAVO_ROLE_EXPERT_GATE_UP;
        }
    }
    return octavo_load_stack(load, weight, rows, none, role, layer);
}

octavo_status octavo_load_experts(octavo_loader *load, octavo_weight *weight, int64_t n, int64_t k,
                                  octavo_column_map columns, octavo_weight_role role, int layer) {
    const octavo_row_map whole = {0};
    *weight = (octavo_weight){.n = n, .k = k, .stack = load->config->n_experts};
    load->role = role;
    load->layer = layer;
    if (columns.columns > 0 && octavo_mxfp4_is_there(load, role, layer))
        return load_mxfp4_stack(load, weight, columns, role, layer);
    if (columns.columns > 0) return octavo_load_stack(load, weight, whole, columns, role, layer);
    if (load->checkpoint->gguf) return load_gguf_experts(load, weight, role, layer);
    return load_apart(load, weight, role, layer);
}

/* ---- vectors ---- */

octavo_status octavo_load_vector(octavo_loader *load, const float **vector, int64_t extent,
                                 float offset, octavo_row_map rows, octavo_weight_role role,
                                 int layer) {
    const int64_t all = rows.all ? rows.all : extent;
    octavo_checkpoint_tensor tensor;
    octavo_status status = find(load, role, layer, 0, &tensor);
    *vector = NULL;
    const int64_t lines = rows.lines ? rows.lines : 1, line = all / lines;
    const int64_t width = extent / lines; /* of a line, of those in the tensor's */
    octavo_weight_part part = {.n1 = width, .e1 = rows.lines};
    if (status || (status = check_shape(load, &tensor, lines, line)) ||
        (status = octavo_load_place(load, vector, &tensor, OCTAVO_WEIGHT_F32, &part)))
        return status;
    const int64_t n = part.n1 - part.n0, held = rows.lines ? part.e1 - part.e0 : 1;
    const uint64_t bytes = (uint64_t)(held * n) * sizeof(float);
    float *values = octavo_arena_alloc(&load->weights->arena, (size_t)bytes);
    if (!values) return octavo_fail_memory(load->error, tensor.name, bytes);
    for (int64_t i = 0; i < held && !status; i++)
        status =
            widen(load, &tensor, rows, (part.e0 + i) * width + part.n0, n, offset, values + i * n);
    if (status) return status;
    *vector = values;
    if (load->options->visit) {
        const octavo_bound bound = {.role = role,
                                    .layer = layer,
                                    .is_second = rows.first > 0,
                                    .n = held,
                                    .k = n,
                                    .values = values,
                                    .error = load->error};
        if ((status = load->options->visit(load->options->cookie, &bound))) return status;
    }
    load->weights->packed_bytes += bytes;
    return octavo_load_report(load, &tensor, tensor.bytes / (uint64_t)all * (uint64_t)(held * n));
}

octavo_status octavo_load_bias(octavo_loader *load, const float **vector, int64_t extent,
                               octavo_bias kind, octavo_row_map rows, octavo_weight_role role,
                               int layer) {
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    *vector = NULL;
    if (kind == OCTAVO_BIAS_NONE) return OCTAVO_OK;
    octavo_weight_name_make(load->checkpoint, load->config->names, role, layer, 0, name);
    if (kind == OCTAVO_BIAS_OPTIONAL && octavo_checkpoint_find(load->checkpoint, name) < 0)
        return OCTAVO_OK;
    return octavo_load_vector(load, vector, extent, 0.0f, rows, role, layer);
}
