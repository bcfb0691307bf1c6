/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing. The file's pages are given back to the system strip by strip as they are packed, so
 * nothing is twice in memory for longer than a strip.
 */
#include "model/weights_load.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"
#include "model/weights_mxfp4.h"

#include <stdio.h>
#include <string.h>

/* ---- matrices ---- */

bool octavo_weight_type_of(octavo_ggml_type type, octavo_weight_type *packed) {
    static const struct {
        octavo_ggml_type source;
        octavo_weight_type packed;
    } table[] = {
        {OCTAVO_GGML_F32, OCTAVO_WEIGHT_F32},         {OCTAVO_GGML_F16, OCTAVO_WEIGHT_F16},
        {OCTAVO_GGML_BF16, OCTAVO_WEIGHT_BF16},       {OCTAVO_GGML_Q8_0, OCTAVO_WEIGHT_Q8_0},
        {OCTAVO_GGML_Q4_0, OCTAVO_WEIGHT_Q4_0},       {OCTAVO_GGML_Q4_1, OCTAVO_WEIGHT_Q4_1},
        {OCTAVO_GGML_Q5_0, OCTAVO_WEIGHT_Q5_0},       {OCTAVO_GGML_Q5_1, OCTAVO_WEIGHT_Q5_1},
        {OCTAVO_GGML_Q1_0, OCTAVO_WEIGHT_Q1_0},       {OCTAVO_GGML_IQ4_NL, OCTAVO_WEIGHT_IQ4_NL},
        {OCTAVO_GGML_MXFP4, OCTAVO_WEIGHT_MXFP4},     {OCTAVO_GGML_NVFP4, OCTAVO_WEIGHT_NVFP4},
        {OCTAVO_GGML_Q2_K, OCTAVO_WEIGHT_Q2_K},       {OCTAVO_GGML_Q3_K, OCTAVO_WEIGHT_Q3_K},
        {OCTAVO_GGML_Q4_K, OCTAVO_WEIGHT_Q4_K},       {OCTAVO_GGML_Q5_K, OCTAVO_WEIGHT_Q5_K},
        {OCTAVO_GGML_Q6_K, OCTAVO_WEIGHT_Q6_K},       {OCTAVO_GGML_IQ4_XS, OCTAVO_WEIGHT_IQ4_XS},
        {OCTAVO_GGML_TQ1_0, OCTAVO_WEIGHT_TQ1_0},     {OCTAVO_GGML_TQ2_0, OCTAVO_WEIGHT_TQ2_0},
        {OCTAVO_GGML_IQ2_XXS, OCTAVO_WEIGHT_IQ2_XXS}, {OCTAVO_GGML_IQ2_XS, OCTAVO_WEIGHT_IQ2_XS},
        {OCTAVO_GGML_IQ2_S, OCTAVO_WEIGHT_IQ2_S},     {OCTAVO_GGML_IQ3_XXS, OCTAVO_WEIGHT_IQ3_XXS},
        {OCTAVO_GGML_IQ3_S, OCTAVO_WEIGHT_IQ3_S},     {OCTAVO_GGML_IQ1_S, OCTAVO_WEIGHT_IQ1_S},
        {OCTAVO_GGML_IQ1_M, OCTAVO_WEIGHT_IQ1_M},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(table); i++) {
        if (table[i].source == type) {
            *packed = table[i].packed;
            return true;
        }
    }
    return false;
}

/* Source bytes that are packed, by all threads, before their pages are given back. */
enum { STRIP_BYTES = 8 << 20 };

typedef struct pack_job {
    const octavo_weight *weight;
    uint8_t *to;
    const uint8_t *from;
    size_t begin; /* of the matrix in the tensor */
    size_t row_bytes;
    octavo_row_map rows;
    octavo_column_map columns;
    const uint8_t *scales;          /* of MXFP4 where they lie apart: the columns' */
    uint8_t *scratch;               /* [threads][panel of rows], where rows are scattered */
    int64_t panel_begin, panel_end; /* of the strip */
} pack_job;

/* Rows of panels that are neighbours in the file need no copy. */
static bool is_scattered(const octavo_row_map *rows) {
    return rows->stride > 0 && rows->group % OCTAVO_PANEL != 0;
}

static int64_t source_row(const octavo_row_map *rows, int64_t row) {
    if (rows->all == 0) return row;
    return rows->first + row / rows->group * rows->stride + row % rows->group;
}

/* Columns [row, row + n) of a matrix of floats as rows. */
static void transpose(const pack_job *job, uint8_t *copy, int64_t row, int n) {
    const size_t size = job->row_bytes / (size_t)job->weight->k;
    for (int64_t k = 0; k < job->weight->k; k++) {
        const octavo_column_map *map = &job->columns;
        const uint8_t *from =
            job->from + (size_t)(k * map->columns + map->first + row * map->step) * size;
        for (int i = 0; i < n; i++)
            memcpy(copy + (size_t)i * job->row_bytes + (size_t)k * size,
                   from + (size_t)(i * map->step) * size, size);
    }
}

/* Columns [row, row + n) of MXFP4 as rows: of these, unlike floats, each lies in one piece. */
static void join(const pack_job *job, uint8_t *copy, int64_t row, int n) {
    const octavo_weight_info *info = octavo_weight_info_of(job->weight->type);
    const int64_t blocks = job->weight->k / info->source_inputs;
    for (int i = 0; i < n; i++) {
        const int64_t first = (job->columns.first + (row + i) * job->columns.step) * blocks;
        octavo_mxfp4_join(copy + (size_t)i * job->row_bytes,
                          job->from + first * (info->source_bytes - 1), job->scales + first,
                          blocks);
    }
}

/* Rows [row, row + n) of the matrix, one behind the other. */
static const uint8_t *rows_of_panel(const pack_job *job, int thread, int64_t row, int n) {
    if (!job->scratch) return job->from + (size_t)source_row(&job->rows, row) * job->row_bytes;
    uint8_t *copy = job->scratch + (size_t)thread * OCTAVO_PANEL * job->row_bytes;
    if (job->columns.columns > 0) {
        (job->scales ? join : transpose)(job, copy, row, n);
        return copy;
    }
    for (int i = 0; i < n; i++)
        memcpy(copy + (size_t)i * job->row_bytes,
               job->from + (size_t)source_row(&job->rows, row + i) * job->row_bytes,
               job->row_bytes);
    return copy;
}

static void pack_thread(void *arg, int thread, int n_threads) {
    const pack_job *job = arg;
    const octavo_weight *weight = job->weight;
    const size_t panel_bytes = octavo_weight_panel_bytes(weight->type, weight->k);
    int64_t begin, end;
    octavo_pool_share(job->panel_end - job->panel_begin, 1, thread, n_threads, &begin, &end);
    for (int64_t p = job->panel_begin + begin; p < job->panel_begin + end; p++) {
        int64_t left = weight->n - p * OCTAVO_PANEL;
        int n = left < OCTAVO_PANEL ? (int)left : OCTAVO_PANEL;
        octavo_weight_pack(weight->type, job->to + (size_t)p * panel_bytes,
                           rows_of_panel(job, thread, p * OCTAVO_PANEL, n), job->row_bytes, n,
                           weight->k);
    }
}

static octavo_status keep_matrix(octavo_loader *load, void *matrix) {
    octavo_model_weights *weights = load->weights;
    if (weights->n_matrices == weights->capacity_matrices) {
        int wanted = weights->capacity_matrices ? weights->capacity_matrices * 2 : 64;
        void **moved = octavo_realloc(weights->matrices, (size_t)wanted * sizeof *moved);
        if (!moved)
            return octavo_fail_memory(load->error, "list of matrices",
                                      (uint64_t)wanted * sizeof *moved);
        weights->matrices = moved;
        weights->capacity_matrices = wanted;
    }
    weights->matrices[weights->n_matrices++] = matrix;
    return OCTAVO_OK;
}

static octavo_status report(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                            uint64_t bytes) {
    load->done += bytes;
    load->weights->source_bytes += bytes;
    if (load->options->progress &&
        load->options->progress(load->options->cookie, load->done, load->total))
        return octavo_fail(load->error, OCTAVO_ERROR_CANCELLED,
                           "loading (%s): stopped by the caller", tensor->path);
    return OCTAVO_OK;
}

static void pack_strips(octavo_loader *load, pack_job *job,
                        const octavo_checkpoint_tensor *tensor) {
    const int64_t n_panels = (job->weight->n + OCTAVO_PANEL - 1) / OCTAVO_PANEL;
    const size_t panel_bytes = job->row_bytes * OCTAVO_PANEL;
    const int64_t strip = panel_bytes < STRIP_BYTES ? (int64_t)(STRIP_BYTES / panel_bytes) : 1;
    const bool is_plain = job->rows.all == 0 && job->columns.columns == 0;
    const size_t bytes = job->row_bytes * (size_t)job->weight->n;
    if (job->begin == 0) octavo_checkpoint_will_need(load->checkpoint, tensor);
    for (int64_t p = 0; p < n_panels; p += strip) {
        job->panel_begin = p;
        job->panel_end = p + strip < n_panels ? p + strip : n_panels;
        octavo_pool_run(load->options->pool, pack_thread, job);
        if (!is_plain) continue;
        size_t begin = (size_t)p * panel_bytes, end = (size_t)job->panel_end * panel_bytes;
        octavo_checkpoint_drop(load->checkpoint, tensor, job->begin + begin,
                               (end < bytes ? end : bytes) - begin);
    }
    if (job->rows.all > 0) octavo_checkpoint_drop(load->checkpoint, tensor, 0, tensor->bytes);
}

static octavo_status alloc_matrix(octavo_loader *load, octavo_weight *weight, const char *name) {
    size_t bytes = octavo_weight_bytes(weight->type, weight->n, weight->k);
    if (weight->stack > 0 && bytes > SIZE_MAX / (size_t)weight->stack)
        return octavo_fail_memory(load->error, name, UINT64_MAX);
    if (weight->stack > 0) bytes *= (size_t)weight->stack;
    uint8_t *data = octavo_alloc_aligned(bytes);
    if (!data) return octavo_fail_memory(load->error, name, bytes);
    octavo_status status = keep_matrix(load, data);
    if (status) {
        octavo_free_aligned(data);
        return status;
    }
    weight->data = data;
    return OCTAVO_OK;
}

static octavo_status alloc_scratch(octavo_loader *load, pack_job *job, const char *name) {
    const size_t rows = (size_t)octavo_pool_threads(load->options->pool) * OCTAVO_PANEL;
    job->scratch = octavo_alloc_zero(rows, job->row_bytes);
    return job->scratch ? OCTAVO_OK : octavo_fail_memory(load->error, name, rows * job->row_bytes);
}

static octavo_status pack_matrix(octavo_loader *load, octavo_weight *weight, octavo_row_map rows,
                                 const octavo_checkpoint_tensor *tensor) {
    const int64_t all = rows.all ? rows.all : weight->n;
    load->weights->packed_bytes += octavo_weight_bytes(weight->type, weight->n, weight->k);
    if (!load->options->pool) return OCTAVO_OK;
    octavo_status status = alloc_matrix(load, weight, tensor->name);
    if (status) return status;
    pack_job job = {.weight = weight,
                    .to = (uint8_t *)(uintptr_t)weight->data,
                    .from = tensor->data,
                    .row_bytes = tensor->bytes / (size_t)all,
                    .rows = rows};
    if (is_scattered(&rows) && (status = alloc_scratch(load, &job, tensor->name))) return status;
    pack_strips(load, &job, tensor);
    octavo_free(job.scratch);
    return report(load, tensor, (uint64_t)weight->n * job.row_bytes);
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

/* "NAME.scale" beside "NAME.weight": a factor for the whole product, as files of NVFP4 and of
 * BitNet have it. To ignore it would be to run another model. */
static octavo_status refuse_scale(octavo_loader *load, const octavo_checkpoint_tensor *tensor) {
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    const char *suffix = strstr(tensor->name, ".weight");
    if (!suffix || strcmp(suffix, ".weight") != 0) return OCTAVO_OK;
    snprintf(name, sizeof name, "%.*s.scale", (int)(suffix - tensor->name), tensor->name);
    if (octavo_checkpoint_find(load->checkpoint, name) < 0) return OCTAVO_OK;
    return octavo_fail_at(
        load->error, OCTAVO_ERROR_UNSUPPORTED, tensor->offset,
        "tensor \"%s\" (%s): its factor \"%s\" cannot be applied by this version; "
        "requantise the model to Q8_0, Q4_0, Q4_K or Q6_K",
        tensor->name, tensor->path, name);
}

static octavo_status find_type(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                               octavo_weight_type *type) {
    if (tensor->has_type && octavo_weight_type_of(tensor->type, type))
        return load->checkpoint->gguf ? refuse_scale(load, tensor) : OCTAVO_OK;
    return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor->offset,
                          "tensor \"%s\" (%s): type %s cannot be run by this version; %s",
                          tensor->name, tensor->path, tensor->type_name,
                          load->checkpoint->gguf
                              ? "requantise the model to Q8_0, Q4_0, Q4_K or Q6_K"
                              : "convert the model to F32, F16 or BF16");
}

octavo_status octavo_load_matrix(octavo_loader *load, octavo_weight *weight, int64_t n, int64_t k,
                                 octavo_row_map rows, octavo_weight_role role, int layer) {
    octavo_checkpoint_tensor tensor;
    octavo_status status = find(load, role, layer, 0, &tensor);
    if (status || (status = check_shape(load, &tensor, rows.all ? rows.all : n, k))) return status;
    *weight = (octavo_weight){.n = n, .k = k};
    if ((status = find_type(load, &tensor, &weight->type))) return status;
    return pack_matrix(load, weight, rows, &tensor);
}

/* ---- experts ---- */

/* Where the matrix of an expert lies. */
typedef struct expert_source {
    const octavo_checkpoint_tensor *tensor;
    size_t begin, bytes; /* in it; with scales apart the bytes of both */
    octavo_column_map columns;
    const uint8_t *scales; /* of this expert; or NULL */
} expert_source;

/* One matrix of a stack. */
static octavo_status pack_expert(octavo_loader *load, const octavo_weight *stack, int expert,
                                 const expert_source *source) {
    const size_t matrix_bytes = octavo_weight_bytes(stack->type, stack->n, stack->k);
    const bool is_columns = source->columns.columns > 0;
    const int64_t outputs = is_columns ? source->columns.columns : stack->n;
    octavo_status status = OCTAVO_OK;
    load->weights->packed_bytes += matrix_bytes;
    if (!load->options->pool) return OCTAVO_OK;
    pack_job job = {.weight = stack,
                    .to = (uint8_t *)(uintptr_t)stack->data + (size_t)expert * matrix_bytes,
                    .from = source->tensor->data + source->begin,
                    .begin = source->begin,
                    .row_bytes = source->bytes / (size_t)outputs,
                    .columns = source->columns,
                    .scales = source->scales};
    if (is_columns && (status = alloc_scratch(load, &job, source->tensor->name))) return status;
    pack_strips(load, &job, source->tensor);
    octavo_free(job.scratch);
    return report(load, source->tensor, job.row_bytes * (size_t)stack->n);
}

static bool has_stack_shape(const octavo_checkpoint_tensor *tensor, int64_t stack, int64_t rows,
                            int64_t columns) {
    return tensor->n_dims == 3 && tensor->extent[0] == (uint64_t)stack &&
           tensor->extent[1] == (uint64_t)rows && tensor->extent[2] == (uint64_t)columns;
}

static octavo_status load_whole_stack(octavo_loader *load, octavo_weight *weight,
                                      octavo_column_map columns, octavo_weight_role role,
                                      int layer) {
    const bool is_columns = columns.columns > 0;
    const int64_t rows = is_columns ? weight->k : weight->n;
    const int64_t width = is_columns ? columns.columns : weight->k;
    octavo_checkpoint_tensor tensor;
    octavo_status status = find(load, role, layer, 0, &tensor);
    if (status) return status;
    if (!has_stack_shape(&tensor, weight->stack, rows, width)) {
        const int64_t wanted[] = {weight->stack, rows, width};
        return octavo_load_fail_shape(load, &tensor, 3, wanted);
    }
    if ((status = find_type(load, &tensor, &weight->type))) return status;
    if (is_columns && octavo_weight_info_of(weight->type)->source_inputs > 1)
        return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor.offset,
                              "tensor \"%s\" (%s): type %s with outputs in columns cannot be run",
                              tensor.name, tensor.path, tensor.type_name);
    if (load->options->pool && (status = alloc_matrix(load, weight, tensor.name))) return status;
    const size_t bytes = tensor.bytes / (size_t)weight->stack;
    for (int e = 0; e < weight->stack && !status; e++) {
        const expert_source source = {&tensor, (size_t)e * bytes, bytes, columns, NULL};
        status = pack_expert(load, weight, e, &source);
        if (is_columns && load->options->pool)
            octavo_checkpoint_drop(load->checkpoint, &tensor, source.begin, bytes);
    }
    return status;
}

static octavo_status load_mxfp4_stack(octavo_loader *load, octavo_weight *weight,
                                      octavo_column_map columns, octavo_weight_role role,
                                      int layer) {
    octavo_mxfp4 found;
    octavo_status status =
        octavo_mxfp4_find(load, weight->stack, columns.columns, weight->k, role, layer, &found);
    if (status) return status;
    weight->type = OCTAVO_WEIGHT_MXFP4;
    if (load->options->pool && (status = alloc_matrix(load, weight, found.blocks.name)))
        return status;
    const size_t bytes = found.blocks.bytes / (size_t)weight->stack;
    const size_t scale_bytes = found.scales.bytes / (size_t)weight->stack;
    for (int e = 0; e < weight->stack && !status; e++) {
        const expert_source source = {&found.blocks, (size_t)e * bytes, bytes + scale_bytes,
                                      columns, found.scales.data + (size_t)e * scale_bytes};
        status = pack_expert(load, weight, e, &source);
        if (load->options->pool)
            octavo_checkpoint_drop(load->checkpoint, &found.blocks, source.begin, bytes);
    }
    if (load->options->pool)
        octavo_checkpoint_drop(load->checkpoint, &found.scales, 0, found.scales.bytes);
    return status;
}

octavo_status octavo_load_experts(octavo_loader *load, octavo_weight *weight, int64_t n, int64_t k,
                                  octavo_column_map columns, octavo_weight_role role, int layer) {
    octavo_weight_type type = OCTAVO_WEIGHT_F32;
    octavo_status status = OCTAVO_OK;
    *weight = (octavo_weight){.n = n, .k = k, .stack = load->config->n_experts};
    if (columns.columns > 0 && octavo_mxfp4_is_there(load, role, layer))
        return load_mxfp4_stack(load, weight, columns, role, layer);
    if (load->checkpoint->gguf || columns.columns > 0)
        return load_whole_stack(load, weight, columns, role, layer);
    for (int e = 0; e < weight->stack && !status; e++) {
        octavo_checkpoint_tensor tensor;
        if ((status = find(load, role, layer, e, &tensor)) ||
            (status = check_shape(load, &tensor, n, k)) ||
            (status = find_type(load, &tensor, &type)))
            return status;
        if (e == 0) {
            weight->type = type;
            if (load->options->pool && (status = alloc_matrix(load, weight, tensor.name)))
                return status;
        }
        if (type != weight->type)
            return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor.offset,
                                  "tensor \"%s\" (%s): type %s, but that of expert 0 is another; "
                                  "experts of one layer must be of one type",
                                  tensor.name, tensor.path, tensor.type_name);
        const expert_source source = {&tensor, 0, tensor.bytes, columns, NULL};
        status = pack_expert(load, weight, e, &source);
    }
    return status;
}

/* ---- vectors ---- */

static octavo_status fail_vector_type(octavo_loader *load, const octavo_checkpoint_tensor *tensor) {
    return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor->offset,
                          "tensor \"%s\" (%s): type %s for a vector; F32, F16 and BF16 are read",
                          tensor->name, tensor->path, tensor->type_name);
}

/* values[i] = the tensor's + offset */
static octavo_status widen(octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                           octavo_row_map rows, int64_t extent, float offset, float *values) {
    if (!tensor->has_type) return fail_vector_type(load, tensor);
    for (int64_t i = 0; i < extent; i++) {
        const size_t from = (size_t)source_row(&rows, i);
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

octavo_status octavo_load_vector(octavo_loader *load, const float **vector, int64_t extent,
                                 float offset, octavo_row_map rows, octavo_weight_role role,
                                 int layer) {
    const int64_t all = rows.all ? rows.all : extent;
    octavo_checkpoint_tensor tensor;
    octavo_status status = find(load, role, layer, 0, &tensor);
    *vector = NULL;
    const int64_t lines = rows.lines ? rows.lines : 1;
    if (status || (status = check_shape(load, &tensor, lines, all / lines))) return status;
    float *values = octavo_arena_alloc(&load->weights->arena, (size_t)extent * sizeof *values);
    if (!values)
        return octavo_fail_memory(load->error, tensor.name, (uint64_t)extent * sizeof *values);
    if ((status = widen(load, &tensor, rows, extent, offset, values))) return status;
    *vector = values;
    load->weights->packed_bytes += (uint64_t)extent * sizeof *values;
    return report(load, &tensor, tensor.bytes / (uint64_t)all * (uint64_t)extent);
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
