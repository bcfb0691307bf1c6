/* SPDX-License-Identifier: Apache-2.0
 *
 * Two file formats behind one view of tensors.
 */
#include "model/checkpoint.h"

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "formats/hf_folder_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

octavo_status octavo_checkpoint_open_gguf(const char *path, octavo_checkpoint *checkpoint,
                                          octavo_error *error) {
    octavo_gguf *gguf = NULL;
    octavo_status status = octavo_gguf_open(path, &gguf, error);
    if (status) return status;
    *checkpoint = (octavo_checkpoint){.gguf = gguf};
    return OCTAVO_OK;
}

/* A text model saved for itself, inside a multimodal one (older and newer spelling), or without its
 * head. The embedding, which every model has, tells which; where it is missing the last norm, so
 * that messages name what is meant. */
static void find_prefixes(octavo_checkpoint *checkpoint) {
    static const struct {
        const char *body, *head;
        const char *probes[2];
    } known[] = {
        {"model.", "", {"embed_tokens.weight", "norm.weight"}},
        {"language_model.model.", "language_model.", {"embed_tokens.weight", "norm.weight"}},
        {"model.language_model.", "", {"embed_tokens.weight", "norm.weight"}},
        {"", "", {"embed_tokens.weight", "norm.weight"}},
        {"gpt_neox.", "", {"embed_in.weight", "final_layer_norm.weight"}},
        {"", "", {"embed_in.weight", "final_layer_norm.weight"}},
        {"model.", "", {"embeddings.tok_embeddings.weight", "final_norm.weight"}},
        {"", "", {"embeddings.tok_embeddings.weight", "final_norm.weight"}},
        {"bert.", "", {"embeddings.word_embeddings.weight", "embeddings.LayerNorm.weight"}},
        {"roberta.", "", {"embeddings.word_embeddings.weight", "embeddings.LayerNorm.weight"}},
        {"distilbert.", "", {"embeddings.word_embeddings.weight", "embeddings.LayerNorm.weight"}},
        {"", "", {"embeddings.word_embeddings.weight", "embeddings.LayerNorm.weight"}},
    };
    char name[64];
    checkpoint->body_prefix = known[0].body;
    checkpoint->head_prefix = known[0].head;
    for (size_t p = 0; p < 2; p++) {
        for (size_t i = 0; i < OCTAVO_COUNT(known); i++) {
            snprintf(name, sizeof name, "%s%s", known[i].body, known[i].probes[p]);
            if (octavo_safetensors_tensor_find(checkpoint->safetensors, name) < 0) continue;
            checkpoint->body_prefix = known[i].body;
            checkpoint->head_prefix = known[i].head;
            return;
        }
    }
}

octavo_status octavo_checkpoint_open_folder(const char *path, octavo_checkpoint *checkpoint,
                                            octavo_error *error) {
    octavo_checkpoint opened = {0};
    octavo_status status;
    if ((status = octavo_hf_folder_read(path, &opened.folder, error)) ||
        (status = octavo_hf_json_read(opened.folder.config, &opened.config, error)) ||
        (status = octavo_safetensors_open(opened.folder.weights, &opened.safetensors, error))) {
        octavo_checkpoint_close(&opened);
        return status;
    }
    find_prefixes(&opened);
    *checkpoint = opened;
    return OCTAVO_OK;
}

octavo_status octavo_checkpoint_open_config(const char *path, octavo_checkpoint *checkpoint,
                                            octavo_error *error) {
    octavo_checkpoint opened = {.body_prefix = "model.", .head_prefix = ""};
    struct stat info;
    const bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    opened.folder.config =
        is_folder ? octavo_hf_path_in(path, "config.json") : octavo_strndup(path, strlen(path));
    if (!opened.folder.config) return octavo_fail_memory(error, "path", strlen(path));
    octavo_status status = octavo_hf_json_read(opened.folder.config, &opened.config, error);
    if (status) {
        octavo_checkpoint_close(&opened);
        return status;
    }
    *checkpoint = opened;
    return OCTAVO_OK;
}

void octavo_checkpoint_close(octavo_checkpoint *checkpoint) {
    octavo_gguf_close(&checkpoint->gguf);
    octavo_safetensors_close(&checkpoint->safetensors);
    json_decref(checkpoint->config);
    octavo_hf_folder_deinit(&checkpoint->folder);
    *checkpoint = (octavo_checkpoint){0};
}

const char *octavo_checkpoint_path(const octavo_checkpoint *checkpoint) {
    if (checkpoint->gguf) return octavo_gguf_part_path(checkpoint->gguf, 0);
    return octavo_hf_shown_path(checkpoint->folder.config);
}

size_t octavo_checkpoint_n_parts(const octavo_checkpoint *checkpoint) {
    if (checkpoint->gguf) return octavo_gguf_n_parts(checkpoint->gguf);
    return octavo_safetensors_n_parts(checkpoint->safetensors);
}

/* ---- tensors ---- */

size_t octavo_checkpoint_n_tensors(const octavo_checkpoint *checkpoint) {
    if (checkpoint->gguf) return octavo_gguf_n_tensors(checkpoint->gguf);
    return checkpoint->safetensors ? octavo_safetensors_n_tensors(checkpoint->safetensors) : 0;
}

static octavo_checkpoint_tensor view_gguf(const octavo_gguf *gguf, size_t index) {
    const octavo_gguf_tensor *from = octavo_gguf_tensor_at(gguf, index);
    octavo_checkpoint_tensor tensor = {
        .name = from->name,
        .path = octavo_gguf_part_path(gguf, from->part),
        .type_name = octavo_ggml_type_name(from->type),
        .has_type = true,
        .type = from->type,
        .n_dims = from->n_dims,
        .data = from->data,
        .bytes = from->bytes,
        .offset = (int64_t)from->entry_offset,
        .index = index,
    };
    for (int i = 0; i < from->n_dims; i++)
        tensor.extent[i] = from->extent[from->n_dims - 1 - i];
    return tensor;
}

static octavo_checkpoint_tensor view_safetensors(const octavo_safetensors *safetensors,
                                                 size_t index) {
    static const struct {
        octavo_safetensors_dtype dtype;
        octavo_ggml_type type;
    } types[] = {
        {OCTAVO_SAFETENSORS_F32, OCTAVO_GGML_F32},
        {OCTAVO_SAFETENSORS_F16, OCTAVO_GGML_F16},
        {OCTAVO_SAFETENSORS_BF16, OCTAVO_GGML_BF16},
    };
    const octavo_safetensors_tensor *from = octavo_safetensors_tensor_at(safetensors, index);
    octavo_checkpoint_tensor tensor = {
        .name = from->name,
        .path = octavo_hf_shown_path(octavo_safetensors_part_path(safetensors, from->part)),
        .type_name = from->dtype_name,
        .n_dims = from->n_dims,
        .data = from->data,
        .bytes = from->bytes,
        .offset = (int64_t)from->offset,
        .index = index,
    };
    memcpy(tensor.extent, from->extent, sizeof tensor.extent);
    for (size_t i = 0; i < OCTAVO_COUNT(types); i++) {
        if (types[i].dtype != from->dtype) continue;
        tensor.has_type = true;
        tensor.type = types[i].type;
    }
    return tensor;
}

octavo_checkpoint_tensor octavo_checkpoint_tensor_at(const octavo_checkpoint *checkpoint,
                                                     size_t index) {
    if (checkpoint->gguf) return view_gguf(checkpoint->gguf, index);
    return view_safetensors(checkpoint->safetensors, index);
}

ptrdiff_t octavo_checkpoint_find(const octavo_checkpoint *checkpoint, const char *name) {
    if (checkpoint->gguf) return octavo_gguf_tensor_find(checkpoint->gguf, name);
    if (!checkpoint->safetensors) return -1;
    return octavo_safetensors_tensor_find(checkpoint->safetensors, name);
}

octavo_status octavo_checkpoint_get(const octavo_checkpoint *checkpoint, const char *name,
                                    octavo_checkpoint_tensor *tensor, octavo_error *error) {
    ptrdiff_t index = octavo_checkpoint_find(checkpoint, name);
    if (index < 0) {
        /* The formats have the words for it. */
        const octavo_gguf_tensor *in_gguf;
        const octavo_safetensors_tensor *in_safetensors;
        if (checkpoint->gguf)
            return octavo_gguf_get_tensor(checkpoint->gguf, name, &in_gguf, error);
        if (!checkpoint->safetensors)
            return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                               "tensor \"%s\" (%s): a description alone has no tensors", name,
                               octavo_checkpoint_path(checkpoint));
        return octavo_safetensors_get_tensor(checkpoint->safetensors, name, &in_safetensors, error);
    }
    *tensor = octavo_checkpoint_tensor_at(checkpoint, (size_t)index);
    return OCTAVO_OK;
}

void octavo_checkpoint_will_need(const octavo_checkpoint *checkpoint,
                                 const octavo_checkpoint_tensor *tensor, size_t offset,
                                 size_t bytes) {
    if (checkpoint->gguf)
        octavo_gguf_will_need(checkpoint->gguf,
                              octavo_gguf_tensor_at(checkpoint->gguf, tensor->index), offset,
                              bytes);
    else
        octavo_safetensors_will_need(
            checkpoint->safetensors,
            octavo_safetensors_tensor_at(checkpoint->safetensors, tensor->index), offset, bytes);
}

void octavo_checkpoint_drop(const octavo_checkpoint *checkpoint,
                            const octavo_checkpoint_tensor *tensor, size_t offset, size_t bytes) {
    if (checkpoint->gguf)
        octavo_gguf_drop(checkpoint->gguf, octavo_gguf_tensor_at(checkpoint->gguf, tensor->index),
                         offset, bytes);
    else
        octavo_safetensors_drop(
            checkpoint->safetensors,
            octavo_safetensors_tensor_at(checkpoint->safetensors, tensor->index), offset, bytes);
}
