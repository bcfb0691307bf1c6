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
    const octavo_gguf *gguf;
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

static octavo_status report(loader *load, const octavo_gguf_tensor *tensor) {
    load->done += tensor->bytes;
    load->weights->source_bytes += tensor->bytes;
    if (load->options->progress &&
        load->options->progress(load->options->cookie, load->done, load->total))
        return octavo_fail(load->error, OCTAVO_ERROR_CANCELLED,
                           "loading (%s): stopped by the caller",
                           octavo_gguf_part_path(load->gguf, tensor->part));
    return OCTAVO_OK;
}

static void pack_strips(loader *load, const octavo_weight *weight, uint8_t *to,
                        const octavo_gguf_tensor *tensor) {
    const int64_t n_panels = (weight->n + OCTAVO_PANEL - 1) / OCTAVO_PANEL;
    pack_job job = {.weight = weight,
                    .to = to,
                    .from = tensor->data,
                    .row_bytes = tensor->bytes / (size_t)weight->n};
    const size_t panel_bytes = job.row_bytes * OCTAVO_PANEL;
    const int64_t strip = panel_bytes < STRIP_BYTES ? (int64_t)(STRIP_BYTES / panel_bytes) : 1;
    octavo_gguf_will_need(load->gguf, tensor);
    for (int64_t p = 0; p < n_panels; p += strip) {
        job.panel_begin = p;
        job.panel_end = p + strip < n_panels ? p + strip : n_panels;
        octavo_pool_run(load->options->pool, pack_thread, &job);
        size_t begin = (size_t)p * panel_bytes, end = (size_t)job.panel_end * panel_bytes;
        octavo_gguf_drop(load->gguf, tensor, begin,
                         (end < tensor->bytes ? end : tensor->bytes) - begin);
    }
}

static octavo_status pack_matrix(loader *load, octavo_weight *weight,
                                 const octavo_gguf_tensor *tensor) {
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

static octavo_status check_shape(loader *load, const octavo_gguf_tensor *tensor, int64_t n,
                                 int64_t k) {
    if (tensor->extent[0] == (uint64_t)k && tensor->extent[1] == (uint64_t)n &&
        tensor->extent[2] == 1 && tensor->extent[3] == 1)
        return OCTAVO_OK;
    return octavo_fail_at(
        load->error, OCTAVO_ERROR_FORMAT, (int64_t)tensor->entry_offset,
        "tensor \"%s\" (%s): shape [%llu, %llu] where the metadata asks for [%lld, %lld]; the "
        "file is damaged or of another model",
        tensor->name, octavo_gguf_part_path(load->gguf, tensor->part),
        (unsigned long long)tensor->extent[1], (unsigned long long)tensor->extent[0], (long long)n,
        (long long)k);
}

static octavo_status load_matrix(loader *load, octavo_weight *weight, int64_t n, int64_t k,
                                 const char *name) {
    const octavo_gguf_tensor *tensor;
    octavo_status status = octavo_gguf_get_tensor(load->gguf, name, &tensor, load->error);
    if (status || (status = check_shape(load, tensor, n, k))) return status;
    *weight = (octavo_weight){.n = n, .k = k};
    if (!packed_type_of(tensor->type, &weight->type))
        return octavo_fail_at(
            load->error, OCTAVO_ERROR_UNSUPPORTED, (int64_t)tensor->entry_offset,
            "tensor \"%s\" (%s): type %s cannot be run by this version; requantise the model "
            "to Q8_0, Q4_0, Q4_K or Q6_K",
            name, octavo_gguf_part_path(load->gguf, tensor->part),
            octavo_ggml_type_name(tensor->type));
    return pack_matrix(load, weight, tensor);
}

/* ---- vectors ---- */

static octavo_status load_vector(loader *load, const float **vector, int64_t extent, bool is_needed,
                                 const char *name) {
    const octavo_gguf_tensor *tensor;
    *vector = NULL;
    if (!is_needed && octavo_gguf_tensor_find(load->gguf, name) < 0) return OCTAVO_OK;
    octavo_status status = octavo_gguf_get_tensor(load->gguf, name, &tensor, load->error);
    if (status || (status = check_shape(load, tensor, 1, extent))) return status;
    float *values = octavo_arena_alloc(&load->weights->arena, (size_t)extent * sizeof *values);
    if (!values) return octavo_fail_memory(load->error, name, (uint64_t)extent * sizeof *values);
    *vector = values;
    load->weights->packed_bytes += (uint64_t)extent * sizeof *values;
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
            return octavo_fail_at(
                load->error, OCTAVO_ERROR_UNSUPPORTED, (int64_t)tensor->entry_offset,
                "tensor \"%s\" (%s): type %s for a vector; F32, F16 and BF16 are read", name,
                octavo_gguf_part_path(load->gguf, tensor->part),
                octavo_ggml_type_name(tensor->type));
        }
    }
    return report(load, tensor);
}

/* ---- the model ---- */

static const char *layer_name(char *name, size_t size, int layer, const char *suffix) {
    snprintf(name, size, "blk.%d.%s", layer, suffix);
    return name;
}

static octavo_status load_layer(loader *load, const octavo_model_config *config, int layer) {
    octavo_layer_weights *w = &load->weights->layers[layer];
    const int64_t d = config->d, nh = config->n_heads * config->head_dim;
    const int64_t kh = config->n_kv_heads * config->head_dim;
    const struct {
        const char *suffix;
        octavo_weight *weight;
        int64_t n, k;
    } matrices[] = {
        {"attn_q.weight", &w->attn_q, nh, d},
        {"attn_k.weight", &w->attn_k, kh, d},
        {"attn_v.weight", &w->attn_v, kh, d},
        {"attn_output.weight", &w->attn_o, d, nh},
        {"ffn_gate.weight", &w->ffw_gate, config->ffw, d},
        {"ffn_up.weight", &w->ffw_up, config->ffw, d},
        {"ffn_down.weight", &w->ffw_down, d, config->ffw},
    };
    const struct {
        const char *suffix;
        const float **vector;
        int64_t extent;
        bool is_wanted, is_needed;
    } vectors[] = {
        {"attn_norm.weight", &w->attn_norm, d, true, true},
        {"ffn_norm.weight", &w->ffw_norm, d, true, true},
        {"attn_q.bias", &w->attn_q_bias, nh, true, config->needs_qkv_bias},
        {"attn_k.bias", &w->attn_k_bias, kh, true, config->needs_qkv_bias},
        {"attn_v.bias", &w->attn_v_bias, kh, true, config->needs_qkv_bias},
        {"attn_q_norm.weight", &w->q_norm, config->head_dim, config->has_qk_norm, true},
        {"attn_k_norm.weight", &w->k_norm, config->head_dim, config->has_qk_norm, true},
        {"post_attention_norm.weight", &w->post_attn_norm, d, config->has_post_norms, true},
        {"post_ffw_norm.weight", &w->post_ffw_norm, d, config->has_post_norms, true},
    };
    char name[64];
    octavo_status status;
    for (size_t i = 0; i < OCTAVO_COUNT(matrices); i++) {
        layer_name(name, sizeof name, layer, matrices[i].suffix);
        status = load_matrix(load, matrices[i].weight, matrices[i].n, matrices[i].k, name);
        if (status) return status;
    }
    for (size_t i = 0; i < OCTAVO_COUNT(vectors); i++) {
        if (!vectors[i].is_wanted) continue;
        layer_name(name, sizeof name, layer, vectors[i].suffix);
        status =
            load_vector(load, vectors[i].vector, vectors[i].extent, vectors[i].is_needed, name);
        if (status) return status;
    }
    return OCTAVO_OK;
}

static octavo_status load_all(loader *load, const octavo_model_config *config) {
    octavo_model_weights *weights = load->weights;
    octavo_status status;
    weights->layers =
        octavo_arena_alloc(&weights->arena, (size_t)config->n_layers * sizeof *weights->layers);
    if (!weights->layers)
        return octavo_fail_memory(load->error, "layers",
                                  (uint64_t)config->n_layers * sizeof *weights->layers);
    status = load_matrix(load, &weights->embed, config->vocab, config->d, "token_embd.weight");
    if (status) return status;
    for (int i = 0; i < config->n_layers; i++) {
        status = load_layer(load, config, i);
        if (status) return status;
    }
    status = load_vector(load, &weights->output_norm, config->d, true, "output_norm.weight");
    if (status) return status;
    weights->is_tied = octavo_gguf_tensor_find(load->gguf, "output.weight") < 0;
    if (weights->is_tied) {
        weights->output = weights->embed;
        return OCTAVO_OK;
    }
    return load_matrix(load, &weights->output, config->vocab, config->d, "output.weight");
}

octavo_status octavo_weights_load(octavo_model_weights *weights, const octavo_gguf *gguf,
                                  const octavo_model_config *config,
                                  const octavo_weights_options *options, octavo_error *error) {
    *weights = (octavo_model_weights){0};
    loader load = {.weights = weights, .gguf = gguf, .options = options, .error = error};
    for (size_t i = 0; i < octavo_gguf_n_tensors(gguf); i++)
        load.total += octavo_gguf_tensor_at(gguf, i)->bytes;
    octavo_status status = load_all(&load, config);
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
