/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model is loaded from: a GGUF file, or a Hugging Face folder (config.json and safetensors).
 * From here on a tensor is a tensor; only names and the meaning of keys differ (weight_name.h,
 * config_read.h).
 *
 * Threads: an open checkpoint never changes; any function but open and close may run on any thread.
 */
#ifndef OCTAVO_MODEL_CHECKPOINT_H
#define OCTAVO_MODEL_CHECKPOINT_H

#include "formats/gguf.h"
#include "formats/hf_folder.h"
#include "formats/safetensors.h"

#include <jansson.h>

typedef struct octavo_checkpoint {
    octavo_gguf *gguf; /* NULL: a folder, which the rest is about */

    octavo_hf_folder folder;
    json_t *config;                  /* config.json */
    octavo_safetensors *safetensors; /* NULL: a description alone */
    const char *body_prefix;         /* of the names of tensors: "model."; lives forever */
    const char *head_prefix;         /* of lm_head */
} octavo_checkpoint;

/* Opens one or the other. On success the caller ends *checkpoint with octavo_checkpoint_close; on
 * failure it is untouched. Statuses as octavo_gguf_open; as octavo_hf_folder_read,
 * octavo_hf_json_read and octavo_safetensors_open. */
OCTAVO_MUST_CHECK octavo_status octavo_checkpoint_open_gguf(const char *path,
                                                            octavo_checkpoint *checkpoint,
                                                            octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_checkpoint_open_folder(const char *path,
                                                              octavo_checkpoint *checkpoint,
                                                              octavo_error *error);
/* A description alone, a config.json or the folder of one: there are no tensors, and no names of
 * tensors are found. */
OCTAVO_MUST_CHECK octavo_status octavo_checkpoint_open_config(const char *path,
                                                              octavo_checkpoint *checkpoint,
                                                              octavo_error *error);
void octavo_checkpoint_close(octavo_checkpoint *checkpoint); /* takes a zeroed one too */

/* The file that says what the model is, for messages. */
const char *octavo_checkpoint_path(const octavo_checkpoint *checkpoint);
/* Files that hold tensors. */
size_t octavo_checkpoint_n_parts(const octavo_checkpoint *checkpoint);

/* A view; what it points to lives as long as the checkpoint. */
typedef struct octavo_checkpoint_tensor {
    const char *name;
    const char *path; /* of the file that holds it, for messages */
    const char *type_name;
    bool has_type;         /* of no other type can anything be computed here */
    octavo_ggml_type type; /* where has_type */
    int n_dims;
    uint64_t extent[OCTAVO_SAFETENSORS_MAX_DIMS]; /* [n_dims] outermost first */
    const uint8_t *data;                          /* row-major; unaligned in old safetensors */
    size_t bytes;
    int64_t offset; /* in that file: of its description (GGUF) or its data (safetensors) */
    size_t index;
} octavo_checkpoint_tensor;

/* In the files' order. */
size_t octavo_checkpoint_n_tensors(const octavo_checkpoint *checkpoint);
octavo_checkpoint_tensor octavo_checkpoint_tensor_at(const octavo_checkpoint *checkpoint,
                                                     size_t index);
/* Index of a tensor, or -1. */
ptrdiff_t octavo_checkpoint_find(const octavo_checkpoint *checkpoint, const char *name);

/* OCTAVO_ERROR_NOT_FOUND names it and the file. */
OCTAVO_MUST_CHECK octavo_status octavo_checkpoint_get(const octavo_checkpoint *checkpoint,
                                                      const char *name,
                                                      octavo_checkpoint_tensor *tensor,
                                                      octavo_error *error);

/* Pages of bytes [offset, offset + bytes) of a tensor: asks the system to start reading them; gives
 * those wholly inside back after use (another that reads them gets them again). */
void octavo_checkpoint_will_need(const octavo_checkpoint *checkpoint,
                                 const octavo_checkpoint_tensor *tensor, size_t offset,
                                 size_t bytes);
void octavo_checkpoint_drop(const octavo_checkpoint *checkpoint,
                            const octavo_checkpoint_tensor *tensor, size_t offset, size_t bytes);

#endif
