/* SPDX-License-Identifier: Apache-2.0
 *
 * Binding and packing. The file's pages are given back to the system strip by strip as they are
 * packed, so nothing is twice in memory for longer than a strip.
 */
#include "model/weights.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>

typedef struct loader {
    octavo_model_weights *weights;
    const octavo_checkpoint *checkpoint;
    const octavo_model_config *config;
    const octavo_weights_options *options;
    octavo_error *error;
    uint64_t done, total; /* source bytes */
} loader;

/* ---- matrices ---- */

static bool packed_type_of(octavo_ggml_type type, octavo_weight_type *packed) {
    static const struct {
        octavo_ggml_type source;
        octavo_weight_type packed;
    } table[] = {
        {OCTAVO_GGML_F32, OCTAVO_WEIGHT_F32},   {OCTAVO_GGML_F16, OCTAVO_WEIGHT_F16},
        {OCTAVO_GGML_BF16, OCTAVO_WEIGHT_BF16}, {OCTAVO_GGML_Q8_0, OCTAVO_WEIGHT_Q8_0},
        {OCTAVO_GGML_Q4_0, OCTAVO_WEIGHT_Q4_0}, {OCTAVO_GGML_Q4_1, OCTAVO_WEIGHT_Q4_1},
        {OCTAVO_GGML_Q5_0, OCTAVO_WEIGHT_Q5_0}, {OCTAVO_GGML_Q4_K, OCTAVO_WEIGHT_Q4_K},
        {OCTAVO_GGML_Q6_K, OCTAVO_WEIGHT_Q6_K},
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
    size_t row_bytes;
    int64_t panel_begin, panel_end; /* of the strip */
} pack_job;

static void pack_thread(void *arg, int thread, int n_threads) {
    const pack_job *job = arg;
    const octavo_weight *weight = job->weight;
    const size_t panel_bytes = octavo_weight_panel_bytes(weight->type, weight->k);
    int64_t begin, end;
    octavo_pool_share(job->panel_end - job->panel_begin, 1, thread, n_threads, &begin, &end);
    for (int64_t p = job->panel_begin + begin; p < job->panel_begin + end; p++) {
        int64_t left = weight->n - p * OCTAVO_PANEL;
        octavo_weight_pack(weight->type, job->to + (size_t)p * panel_bytes,
                           job->from + (size_t)p * OCTAVO_PANEL * job->row_bytes, job->row_bytes,
                           left < OCTAVO_PANEL ? (int)left : OCTAVO_PANEL, weight->k);
    }
}

static octavo_status keep_matrix(loader *load, void *matrix) {
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

static octavo_status report(loader *load, const octavo_checkpoint_tensor *tensor) {
    load->done += tensor->bytes;
    load->weights->source_bytes += tensor->bytes;
    if (load->options->progress &&
        load->options->progress(load->options->cookie, load->done, load->total))
        return octavo_fail(load->error, OCTAVO_ERROR_CANCELLED,
                           "loading (%s): stopped by the caller", tensor->path);
    return OCTAVO_OK;
}

static void pack_strips(loader *load, const octavo_weight *weight, uint8_t *to,
                        const octavo_checkpoint_tensor *tensor) {
    const int64_t n_panels = (weight->n + OCTAVO_PANEL - 1) / OCTAVO_PANEL;
    pack_job job = {.weight = weight,
                    .to = to,
                    .from = tensor->data,
                    .row_bytes = tensor->bytes / (size_t)weight->n};
    const size_t panel_bytes = job.row_bytes * OCTAVO_PANEL;
    const int64_t strip = panel_bytes < STRIP_BYTES ? (int64_t)(STRIP_BYTES / panel_bytes) : 1;
    octavo_checkpoint_will_need(load->checkpoint, tensor);
    for (int64_t p = 0; p < n_panels; p += strip) {
        job.panel_begin = p;
        job.panel_end = p + strip < n_panels ? p + strip : n_panels;
        octavo_pool_run(load->options->pool, pack_thread, &job);
        size_t begin = (size_t)p * panel_bytes, end = (size_t)job.panel_end * panel_bytes;
        octavo_checkpoint_drop(load->checkpoint, tensor, begin,
                               (end < tensor->bytes ? end : tensor->bytes) - begin);
    }
}

static octavo_status pack_matrix(loader *load, octavo_weight *weight,
                                 const octavo_checkpoint_tensor *tensor) {
    size_t bytes = octavo_weight_bytes(weight->type, weight->n, weight->k);
    load->weights->packed_bytes += bytes;
    if (!load->options->pool) return OCTAVO_OK;
    uint8_t *data = octavo_alloc_aligned(bytes);
    if (!data) return octavo_fail_memory(load->error, tensor->name, bytes);
    octavo_status status = keep_matrix(load, data);
    if (status) {
        octavo_free_aligned(data);
        return status;
    }
    weight->data = data;
    pack_strips(load, weight, data, tensor);
    return report(load, tensor);
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

static octavo_status check_shape(loader *load, const octavo_checkpoint_tensor *tensor, int64_t n,
                                 int64_t k) {
    char shape[OCTAVO_SAFETENSORS_MAX_DIMS * 24] = "";
    size_t used = 0;
    if (has_shape(tensor, n, k)) return OCTAVO_OK;
    for (int i = 0; i < tensor->n_dims; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%llu", i ? ", " : "",
                                 (unsigned long long)tensor->extent[i]);
    return octavo_fail_at(load->error, OCTAVO_ERROR_FORMAT, tensor->offset,
                          "tensor \"%s\" (%s): shape [%s] where the %s asks for [%lld, %lld]; the "
                          "file is damaged or of another model",
                          tensor->name, tensor->path, shape,
                          load->checkpoint->gguf ? "metadata" : "config.json", (long long)n,
                          (long long)k);
}

static octavo_status find(loader *load, octavo_weight_role role, int layer,
                          octavo_checkpoint_tensor *tensor) {
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    octavo_weight_name_make(load->checkpoint, load->config->names, role, layer, name);
    return octavo_checkpoint_get(load->checkpoint, name, tensor, load->error);
}

static octavo_status load_matrix(loader *load, octavo_weight *weight, int64_t n, int64_t k,
                                 octavo_weight_role role, int layer) {
    octavo_checkpoint_tensor tensor;
    octavo_status status = find(load, role, layer, &tensor);
    if (status || (status = check_shape(load, &tensor, n, k))) return status;
    *weight = (octavo_weight){.n = n, .k = k};
    if (!tensor.has_type || !packed_type_of(tensor.type, &weight->type))
        return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor.offset,
                              "tensor \"%s\" (%s): type %s cannot be run by this version; %s",
                              tensor.name, tensor.path, tensor.type_name,
                              load->checkpoint->gguf
                                  ? "requantise the model to Q8_0, Q4_0, Q4_K or Q6_K"
                                  : "convert the model to F32, F16 or BF16");
    return pack_matrix(load, weight, &tensor);
}

/* ---- vectors ---- */

static octavo_status fail_vector_type(loader *load, const octavo_checkpoint_tensor *tensor) {
    return octavo_fail_at(load->error, OCTAVO_ERROR_UNSUPPORTED, tensor->offset,
                          "tensor \"%s\" (%s): type %s for a vector; F32, F16 and BF16 are read",
                          tensor->name, tensor->path, tensor->type_name);
}

/* values[i] = the tensor's + offset */
static octavo_status widen(loader *load, const octavo_checkpoint_tensor *tensor, int64_t extent,
                           float offset, float *values) {
    if (!tensor->has_type) return fail_vector_type(load, tensor);
    for (int64_t i = 0; i < extent; i++) {
        uint16_t half;
        switch (tensor->type) {
        case OCTAVO_GGML_F32:
            memcpy(&values[i], tensor->data + (size_t)i * 4, 4);
            break;
        case OCTAVO_GGML_F16:
            memcpy(&half, tensor->data + (size_t)i * 2, 2);
            values[i] = octavo_f16_to_f32(half);
            break;
        case OCTAVO_GGML_BF16:
            memcpy(&half, tensor->data + (size_t)i * 2, 2);
            values[i] = octavo_bf16_to_f32(half);
            break;
        default:
            return fail_vector_type(load, tensor);
        }
        if (offset != 0.0f) values[i] += offset;
    }
    return OCTAVO_OK;
}

static octavo_status load_vector(loader *load, const float **vector, int64_t extent, float offset,
                                 octavo_weight_role role, int layer) {
    octavo_checkpoint_tensor tensor;
    octavo_status status = find(load, role, layer, &tensor);
    *vector = NULL;
    if (status || (status = check_shape(load, &tensor, 1, extent))) return status;
    float *values = octavo_arena_alloc(&load->weights->arena, (size_t)extent * sizeof *values);
    if (!values)
        return octavo_fail_memory(load->error, tensor.name, (uint64_t)extent * sizeof *values);
    if ((status = widen(load, &tensor, extent, offset, values))) return status;
    *vector = values;
    load->weights->packed_bytes += (uint64_t)extent * sizeof *values;
    return report(load, &tensor);
}

static octavo_status load_norm(loader *load, const float **vector, int64_t extent,
                               octavo_weight_role role, int layer) {
    return load_vector(load, vector, extent, load->config->norm_offset, role, layer);
}

static octavo_status load_bias(loader *load, const float **vector, int64_t extent, octavo_bias kind,
                               octavo_weight_role role, int layer) {
    char name[OCTAVO_WEIGHT_NAME_SIZE];
    *vector = NULL;
    if (kind == OCTAVO_BIAS_NONE) return OCTAVO_OK;
    octavo_weight_name_make(load->checkpoint, load->config->names, role, layer, name);
    if (kind == OCTAVO_BIAS_OPTIONAL && octavo_checkpoint_find(load->checkpoint, name) < 0)
        return OCTAVO_OK;
    return load_vector(load, vector, extent, 0.0f, role, layer);
}

/* ---- the model ---- */

static octavo_status load_matrices(loader *load, int layer) {
    octavo_layer_weights *w = &load->weights->layers[layer];
    const octavo_model_config *c = load->config;
    const int64_t nh = c->n_heads * c->head_dim, kh = c->n_kv_heads * c->head_dim;
    const struct {
        octavo_weight_role role;
        octavo_weight *weight;
        int64_t n, k;
    } list[] = {
        {OCTAVO_ROLE_ATTN_Q, &w->attn_q, nh, c->d},
        {OCTAVO_ROLE_ATTN_K, &w->attn_k, kh, c->d},
        {OCTAVO_ROLE_ATTN_V, &w->attn_v, kh, c->d},
        {OCTAVO_ROLE_ATTN_O, &w->attn_o, c->d, nh},
        {OCTAVO_ROLE_FFW_GATE, &w->ffw_gate, c->ffw, c->d},
        {OCTAVO_ROLE_FFW_UP, &w->ffw_up, c->ffw, c->d},
        {OCTAVO_ROLE_FFW_DOWN, &w->ffw_down, c->d, c->ffw},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        octavo_status status =
            load_matrix(load, list[i].weight, list[i].n, list[i].k, list[i].role, layer);
        if (status) return status;
    }
    return OCTAVO_OK;
}

static octavo_status load_norms(loader *load, int layer) {
    octavo_layer_weights *w = &load->weights->layers[layer];
    const octavo_model_config *c = load->config;
    const struct {
        octavo_weight_role role;
        const float **vector;
        int64_t extent;
        bool is_wanted;
    } list[] = {
        {OCTAVO_ROLE_ATTN_NORM, &w->attn_norm, c->d, true},
        {OCTAVO_ROLE_FFW_NORM, &w->ffw_norm, c->d, true},
        {OCTAVO_ROLE_Q_NORM, &w->q_norm, c->head_dim, c->has_qk_norm},
        {OCTAVO_ROLE_K_NORM, &w->k_norm, c->head_dim, c->has_qk_norm},
        {OCTAVO_ROLE_POST_ATTN_NORM, &w->post_attn_norm, c->d, c->has_post_norms},
        {OCTAVO_ROLE_POST_FFW_NORM, &w->post_ffw_norm, c->d, c->has_post_norms},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        *list[i].vector = NULL;
        if (!list[i].is_wanted) continue;
        octavo_status status = load_norm(load, list[i].vector, list[i].extent, list[i].role, layer);
        if (status) return status;
    }
    return OCTAVO_OK;
}

static octavo_status load_biases(loader *load, int layer) {
    octavo_layer_weights *w = &load->weights->layers[layer];
    const octavo_model_config *c = load->config;
    const int64_t nh = c->n_heads * c->head_dim, kh = c->n_kv_heads * c->head_dim;
    const struct {
        octavo_weight_role role;
        octavo_bias kind;
        const float **vector;
        int64_t extent;
    } list[] = {
        {OCTAVO_ROLE_ATTN_Q_BIAS, c->qkv_bias, &w->attn_q_bias, nh},
        {OCTAVO_ROLE_ATTN_K_BIAS, c->qkv_bias, &w->attn_k_bias, kh},
        {OCTAVO_ROLE_ATTN_V_BIAS, c->qkv_bias, &w->attn_v_bias, kh},
        {OCTAVO_ROLE_ATTN_O_BIAS, c->attn_o_bias, &w->attn_o_bias, c->d},
        {OCTAVO_ROLE_FFW_GATE_BIAS, c->ffw_bias, &w->ffw_gate_bias, c->ffw},
        {OCTAVO_ROLE_FFW_UP_BIAS, c->ffw_bias, &w->ffw_up_bias, c->ffw},
        {OCTAVO_ROLE_FFW_DOWN_BIAS, c->ffw_bias, &w->ffw_down_bias, c->d},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        octavo_status status =
            load_bias(load, list[i].vector, list[i].extent, list[i].kind, list[i].role, layer);
        if (status) return status;
    }
    return OCTAVO_OK;
}

static octavo_status load_all(loader *load) {
    octavo_model_weights *weights = load->weights;
    const octavo_model_config *config = load->config;
    octavo_status status;
    weights->layers =
        octavo_arena_alloc(&weights->arena, (size_t)config->n_layers * sizeof *weights->layers);
    if (!weights->layers)
        return octavo_fail_memory(load->error, "layers",
                                  (uint64_t)config->n_layers * sizeof *weights->layers);
    status = load_matrix(load, &weights->embed, config->vocab, config->d, OCTAVO_ROLE_EMBED, 0);
    if (status) return status;
    for (int i = 0; i < config->n_layers; i++) {
        if ((status = load_matrices(load, i)) || (status = load_norms(load, i)) ||
            (status = load_biases(load, i)))
            return status;
    }
    status = load_norm(load, &weights->output_norm, config->d, OCTAVO_ROLE_OUTPUT_NORM, 0);
    if (status) return status;
    weights->is_tied = config->is_tied;
    if (weights->is_tied) {
        weights->output = weights->embed;
        return OCTAVO_OK;
    }
    return load_matrix(load, &weights->output, config->vocab, config->d, OCTAVO_ROLE_OUTPUT, 0);
}

octavo_status octavo_weights_load(octavo_model_weights *weights,
                                  const octavo_checkpoint *checkpoint,
                                  const octavo_model_config *config,
                                  const octavo_weights_options *options, octavo_error *error) {
    *weights = (octavo_model_weights){0};
    loader load = {.weights = weights,
                   .checkpoint = checkpoint,
                   .config = config,
                   .options = options,
                   .error = error};
    for (size_t i = 0; i < octavo_checkpoint_n_tensors(checkpoint); i++)
        load.total += octavo_checkpoint_tensor_at(checkpoint, i).bytes;
    octavo_status status = load_all(&load);
    if (status) octavo_weights_deinit(weights);
    return status;
}

void octavo_weights_deinit(octavo_model_weights *weights) {
    for (int i = 0; i < weights->n_matrices; i++)
        octavo_free_aligned(weights->matrices[i]);
    octavo_free(weights->matrices);
    octavo_arena_deinit(&weights->arena);
    *weights = (octavo_model_weights){0};
}
