/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing safetensors models and looking up tensors. The bytes of a file are the
 * parser's business, those of an index safetensors_index.c's.
 */
#include "formats/safetensors.h"

#include "base/compiler.h"
#include "base/error.h"
#include "formats/hf_folder_file.h"
#include "formats/safetensors_internal.h"

#include <stdlib.h>
#include <string.h>

/* A model without parts. */
static octavo_status create(const char *path, octavo_safetensors **safetensors,
                            octavo_error *error) {
    octavo_safetensors *created = octavo_alloc_zero(1, sizeof(*created));
    if (created == NULL) return octavo_fail_memory(error, path, sizeof(*created));
    created->path = octavo_arena_strndup(&created->arena, path, strlen(path));
    if (created->path == NULL) {
        octavo_safetensors_close(&created);
        return octavo_fail_memory(error, octavo_hf_shown_path(path), strlen(path) + 1);
    }
    created->shown = octavo_hf_shown_path(created->path);
    *safetensors = created;
    return OCTAVO_OK;
}

void octavo_safetensors_close(octavo_safetensors **safetensors) {
    octavo_safetensors *closed = *safetensors;
    if (closed == NULL) return;
    *safetensors = NULL;
    for (size_t i = 0; i < closed->n_parts; i++) {
        octavo_map_close(&closed->parts[i].map);
    }
    octavo_free(closed->parts);
    octavo_free(closed->tensors);
    octavo_free(closed->by_name);
    octavo_arena_deinit(&closed->arena);
    octavo_free(closed);
}

/* -- names ------------------------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b) {
    const octavo_safetensors_tensor *x = *(const octavo_safetensors_tensor *const *)a;
    const octavo_safetensors_tensor *y = *(const octavo_safetensors_tensor *const *)b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->part > y->part) - (x->part < y->part);
}

octavo_status octavo_safetensors_sort_names(octavo_safetensors *safetensors, octavo_error *error) {
    size_t count = safetensors->n_tensors;
    const octavo_safetensors_tensor **sorted = octavo_alloc_zero(count, sizeof(*sorted));
    if (sorted == NULL) {
        return octavo_fail_memory(error, safetensors->shown, count * sizeof(*sorted));
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &safetensors->tensors[i];
    }
    if (count > 1) qsort(sorted, count, sizeof(*sorted), compare_names);
    octavo_free(safetensors->by_name);
    safetensors->by_name = sorted;
    return OCTAVO_OK;
}

/* Place in by_name of the first whose name, and then part, is not before these. */
static size_t lower_bound(const octavo_safetensors *safetensors, const char *name, size_t part) {
    const octavo_safetensors_tensor key = {.name = name, .part = part}, *sought = &key;
    size_t low = 0, high = safetensors->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_names(&safetensors->by_name[middle], &sought) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Index of the tensor at a place in by_name, if it has that name; else -1. */
static ptrdiff_t index_at(const octavo_safetensors *safetensors, size_t place, const char *name) {
    if (place == safetensors->n_tensors) return -1;
    const octavo_safetensors_tensor *tensor = safetensors->by_name[place];
    return strcmp(tensor->name, name) == 0 ? tensor - safetensors->tensors : -1;
}

ptrdiff_t octavo_safetensors_find_in_part(const octavo_safetensors *safetensors, const char *name,
                                          size_t part) {
    ptrdiff_t index = index_at(safetensors, lower_bound(safetensors, name, part), name);
    return index >= 0 && safetensors->tensors[index].part == part ? index : -1;
}

/* -- opening ---------------------------------------------------------------------------------- */

octavo_status octavo_safetensors_part_load(octavo_safetensors *safetensors, size_t part_index,
                                           const char *path, octavo_error *error) {
    octavo_safetensors_part *part = &safetensors->parts[part_index];
    part->path = octavo_arena_strndup(&safetensors->arena, path, strlen(path));
    if (part->path == NULL) {
        return octavo_fail_memory(error, octavo_hf_shown_path(path), strlen(path) + 1);
    }
    part->shown = octavo_hf_shown_path(part->path);
    octavo_status status = octavo_map_open(&part->map, path, error);
    if (status != OCTAVO_OK) return status;
    part->data = part->map.data;
    part->size = part->map.size;
    return octavo_safetensors_part_parse(safetensors, part_index, error);
}

static octavo_status create_part(octavo_safetensors *safetensors, octavo_error *error) {
    safetensors->parts = octavo_alloc_zero(1, sizeof(*safetensors->parts));
    if (safetensors->parts == NULL) {
        return octavo_fail_memory(error, safetensors->shown, sizeof(*safetensors->parts));
    }
    safetensors->n_parts = 1;
    return OCTAVO_OK;
}

static octavo_status open_file(octavo_safetensors *safetensors, octavo_error *error) {
    octavo_status status = create_part(safetensors, error);
    if (status == OCTAVO_OK) {
        status = octavo_safetensors_part_load(safetensors, 0, safetensors->path, error);
    }
    if (status == OCTAVO_OK) status = octavo_safetensors_sort_names(safetensors, error);
    return status;
}

static bool is_index(const char *path) {
    static const char suffix[] = ".json";
    size_t length = strlen(path), end = sizeof(suffix) - 1;
    return length >= end && strcmp(path + length - end, suffix) == 0;
}

octavo_status octavo_safetensors_open(const char *path, octavo_safetensors **safetensors,
                                      octavo_error *error) {
    octavo_safetensors *opened = NULL;
    octavo_status status = create(path, &opened, error);
    if (status == OCTAVO_OK) {
        status = is_index(path) ? octavo_safetensors_open_shards(opened, error)
                                : open_file(opened, error);
    }
    if (status != OCTAVO_OK) {
        octavo_safetensors_close(&opened);
        return status;
    }
    *safetensors = opened;
    return OCTAVO_OK;
}

static octavo_status parse_borrowed(octavo_safetensors *safetensors, const void *data, size_t size,
                                    octavo_error *error) {
    octavo_status status = create_part(safetensors, error);
    if (status != OCTAVO_OK) return status;
    octavo_safetensors_part *part = &safetensors->parts[0];
    part->path = safetensors->path;
    part->shown = safetensors->shown;
    part->data = data;
    part->size = size;
    status = octavo_safetensors_part_parse(safetensors, 0, error);
    if (status == OCTAVO_OK) status = octavo_safetensors_sort_names(safetensors, error);
    return status;
}

octavo_status octavo_safetensors_parse(const void *data, size_t size, const char *name,
                                       octavo_safetensors **safetensors, octavo_error *error) {
    octavo_safetensors *parsed = NULL;
    octavo_status status = create(name, &parsed, error);
    if (status == OCTAVO_OK) status = parse_borrowed(parsed, data, size, error);
    if (status != OCTAVO_OK) {
        octavo_safetensors_close(&parsed);
        return status;
    }
    *safetensors = parsed;
    return OCTAVO_OK;
}

const char *octavo_safetensors_path(const octavo_safetensors *safetensors) {
    return safetensors->path;
}

size_t octavo_safetensors_n_parts(const octavo_safetensors *safetensors) {
    return safetensors->n_parts;
}

const char *octavo_safetensors_part_path(const octavo_safetensors *safetensors, size_t part) {
    octavo_assert(part < safetensors->n_parts);
    return safetensors->parts[part].path;
}

/* -- tensors ---------------------------------------------------------------------------------- */

size_t octavo_safetensors_n_tensors(const octavo_safetensors *safetensors) {
    return safetensors->n_tensors;
}

const octavo_safetensors_tensor *octavo_safetensors_tensor_at(const octavo_safetensors *safetensors,
                                                              size_t index) {
    octavo_assert(index < safetensors->n_tensors);
    return &safetensors->tensors[index];
}

ptrdiff_t octavo_safetensors_tensor_find(const octavo_safetensors *safetensors, const char *name) {
    return index_at(safetensors, lower_bound(safetensors, name, 0), name);
}

octavo_status octavo_safetensors_get_tensor(const octavo_safetensors *safetensors, const char *name,
                                            const octavo_safetensors_tensor **tensor,
                                            octavo_error *error) {
    ptrdiff_t index = octavo_safetensors_tensor_find(safetensors, name);
    if (index < 0) {
        return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                           "tensor \"%.120s\" (%s): missing; the model is incomplete, fetch or "
                           "convert it again",
                           name, safetensors->shown);
    }
    const octavo_safetensors_tensor *found = &safetensors->tensors[index];
    if (found->dtype == OCTAVO_SAFETENSORS_UNKNOWN) {
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "tensor \"%.120s\" (%s): its dtype \"%.40s\" is not known; convert the "
                           "model to another such as BF16",
                           name, safetensors->parts[found->part].shown, found->dtype_name);
    }
    *tensor = found;
    return OCTAVO_OK;
}

void octavo_safetensors_will_need(const octavo_safetensors *safetensors,
                                  const octavo_safetensors_tensor *tensor, size_t offset,
                                  size_t bytes) {
    octavo_assert(offset <= tensor->bytes && bytes <= tensor->bytes - offset);
    octavo_map_will_need(&safetensors->parts[tensor->part].map, (size_t)tensor->offset + offset,
                         bytes);
}

void octavo_safetensors_drop(const octavo_safetensors *safetensors,
                             const octavo_safetensors_tensor *tensor, size_t offset, size_t bytes) {
    octavo_assert(offset <= tensor->bytes && bytes <= tensor->bytes - offset);
    octavo_map_drop(&safetensors->parts[tensor->part].map, (size_t)tensor->offset + offset, bytes);
}

/* -- metadata --------------------------------------------------------------------------------- */

size_t octavo_safetensors_n_metadata(const octavo_safetensors *safetensors, size_t part) {
    octavo_assert(part < safetensors->n_parts);
    return safetensors->parts[part].n_metadata;
}

const octavo_safetensors_text *octavo_safetensors_metadata_at(const octavo_safetensors *safetensors,
                                                              size_t part, size_t index) {
    octavo_assert(index < octavo_safetensors_n_metadata(safetensors, part));
    return &safetensors->parts[part].metadata[index];
}

const char *octavo_safetensors_metadata(const octavo_safetensors *safetensors, size_t part,
                                        const char *key) {
    size_t count = octavo_safetensors_n_metadata(safetensors, part);
    for (size_t i = 0; i < count; i++) {
        const octavo_safetensors_text *text = &safetensors->parts[part].metadata[i];
        if (strcmp(text->key, key) == 0) return text->value;
    }
    return NULL;
}
