/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files safetensors*.c share: the open model and its parts, and the index of a sharded
 * one. Whatever is in these structs has been validated.
 */
#ifndef OCTAVO_FORMATS_SAFETENSORS_INTERNAL_H
#define OCTAVO_FORMATS_SAFETENSORS_INTERNAL_H

#include "base/map.h"
#include "base/memory.h"
#include "formats/safetensors.h"

typedef struct octavo_safetensors_part {
    octavo_map map;      /* empty for borrowed bytes */
    const uint8_t *data; /* [size] */
    size_t size;
    const char *path;  /* in the arena */
    const char *shown; /* the path in messages: its end */
    size_t n_metadata;
    octavo_safetensors_text *metadata; /* [n_metadata], in the arena */
} octavo_safetensors_part;

struct octavo_safetensors {
    const char *path; /* as opened, in the arena */
    const char *shown;
    size_t n_parts;
    octavo_safetensors_part *parts; /* [n_parts] */
    size_t n_tensors;
    octavo_safetensors_tensor *tensors; /* [n_tensors], by part, then by offset */
    /* [n_tensors], ascending names; while shards are being read, names may be in several parts and
     * then ascend by part */
    const octavo_safetensors_tensor **by_name;
    octavo_arena arena; /* names, texts, paths */
};

/* Parses parts[part], whose data, size and paths are set, and appends its tensors. */
OCTAVO_MUST_CHECK octavo_status octavo_safetensors_part_parse(octavo_safetensors *safetensors,
                                                              size_t part, octavo_error *error);

/* Maps and parses parts[part]. `path` is copied. */
OCTAVO_MUST_CHECK octavo_status octavo_safetensors_part_load(octavo_safetensors *safetensors,
                                                             size_t part, const char *path,
                                                             octavo_error *error);

/* Builds by_name anew. */
OCTAVO_MUST_CHECK octavo_status octavo_safetensors_sort_names(octavo_safetensors *safetensors,
                                                              octavo_error *error);

/* Index of the tensor of a name in a part, or -1. */
ptrdiff_t octavo_safetensors_find_in_part(const octavo_safetensors *safetensors, const char *name,
                                          size_t part);

/* False, with *wrong the reason, for a name that is empty, too long or holds control characters:
 * those would reach the terminal in a message. */
bool octavo_safetensors_name_is_legal(const char *name, const char **wrong);

/* -- the index of a sharded model ------------------------------------------------------------- */

typedef struct octavo_safetensors_place {
    const char *tensor;
    const char *file; /* a name without folders */
    size_t part;      /* of its file among `files` */
} octavo_safetensors_place;

typedef struct octavo_safetensors_index {
    size_t n_places;
    octavo_safetensors_place *places; /* [n_places], by ascending file */
    size_t n_files;
    const char **files; /* [n_files], ascending and distinct */
    octavo_arena arena; /* all of the above */
} octavo_safetensors_index;

/* Reads the bytes of an index; `name` stands for its path in messages. On success the caller ends
 * *index with octavo_safetensors_index_deinit. */
OCTAVO_MUST_CHECK octavo_status octavo_safetensors_index_parse(const void *data, size_t size,
                                                               const char *name,
                                                               octavo_safetensors_index *index,
                                                               octavo_error *error);
void octavo_safetensors_index_deinit(octavo_safetensors_index *index); /* takes a zeroed one too */

/* Opens the index safetensors->path and all its shards. */
OCTAVO_MUST_CHECK octavo_status octavo_safetensors_open_shards(octavo_safetensors *safetensors,
                                                               octavo_error *error);

#endif
