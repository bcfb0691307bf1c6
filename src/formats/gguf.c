/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing GGUF models, gathering the parts of split ones, and looking up tensors. The
 * bytes of a file are the parser's business.
 */
#include "formats/gguf.h"

#include "base/compiler.h"
#include "base/error.h"
#include "formats/gguf_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PARTS = 65535,
    MAX_PATH_SHOWN = 200, /* leaves room for the reason in a message */
};

/* The path as messages show it: the end of a very long one. */
static char *shown_path(const char *path) {
    size_t length = strlen(path);
    if (length <= MAX_PATH_SHOWN) return octavo_strdup(path);
    char text[MAX_PATH_SHOWN + 4];
    snprintf(text, sizeof(text), "...%s", path + length - MAX_PATH_SHOWN);
    return octavo_strdup(text);
}

static octavo_status create(const char *path, octavo_gguf **gguf, octavo_error *error) {
    octavo_gguf *created = octavo_alloc_zero(1, sizeof(*created));
    if (created == NULL) return octavo_fail_memory(error, path, sizeof(*created));
    created->parts = octavo_alloc_zero(1, sizeof(*created->parts));
    if (created->parts == NULL) {
        octavo_free(created);
        return octavo_fail_memory(error, path, sizeof(*created->parts));
    }
    created->n_parts = 1;
    *gguf = created;
    return OCTAVO_OK;
}

void octavo_gguf_close(octavo_gguf **gguf) {
    octavo_gguf *closed = *gguf;
    if (closed == NULL) return;
    *gguf = NULL;
    for (size_t i = 0; i < closed->n_parts; i++) {
        octavo_gguf_part *part = &closed->parts[i];
        octavo_map_close(&part->map);
        octavo_free(part->path);
        octavo_free(part->entries);
        octavo_free(part->by_key);
    }
    octavo_free(closed->parts);
    octavo_free(closed->tensors);
    octavo_free(closed->by_name);
    octavo_arena_deinit(&closed->arena);
    octavo_free(closed);
}

static int compare_names(const void *a, const void *b) {
    const octavo_gguf_tensor *x = *(const octavo_gguf_tensor *const *)a;
    const octavo_gguf_tensor *y = *(const octavo_gguf_tensor *const *)b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y); /* both in one array */
}

/* Builds by_name once all parts are read. */
static octavo_status index_tensors(octavo_gguf *gguf, octavo_error *error) {
    const octavo_gguf_tensor **sorted = octavo_alloc_zero(gguf->n_tensors, sizeof(*sorted));
    if (sorted == NULL) {
        return octavo_fail_memory(error, gguf->parts[0].path, gguf->n_tensors * sizeof(*sorted));
    }
    gguf->by_name = sorted;
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        sorted[i] = &gguf->tensors[i];
    }
    qsort(sorted, gguf->n_tensors, sizeof(*sorted), compare_names);
    for (size_t i = 1; i < gguf->n_tensors; i++) {
        const octavo_gguf_tensor *tensor = sorted[i];
        if (strcmp(sorted[i - 1]->name, tensor->name) != 0) continue;
        return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, (int64_t)tensor->entry_offset,
                              "tensor \"%.120s\" (%s): appears more than once; the file is damaged",
                              tensor->name, gguf->parts[tensor->part].path);
    }
    return OCTAVO_OK;
}

/* -- split files ------------------------------------------------------------------------------ */

typedef struct split {
    uint64_t part; /* from 0 */
    uint64_t count;
    uint64_t n_tensors; /* in all parts; UINT64_MAX when the file does not say */
} split;

static octavo_status read_split(const octavo_gguf_part *part, split *value, octavo_error *error) {
    split found = {0};
    octavo_status status = octavo_gguf_part_u64_or(part, "split.no", 0, &found.part, error);
    if (status == OCTAVO_OK) {
        status = octavo_gguf_part_u64_or(part, "split.count", 1, &found.count, error);
    }
    if (status == OCTAVO_OK) {
        status = octavo_gguf_part_u64_or(part, "split.tensors.count", UINT64_MAX, &found.n_tensors,
                                         error);
    }
    if (status != OCTAVO_OK) return status;
    if (found.count < 1 || found.count > MAX_PARTS || found.part >= found.count) {
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "metadata key \"split.count\" (%s): part %llu of %llu cannot be; the "
                           "file is damaged",
                           part->path, (unsigned long long)found.part,
                           (unsigned long long)found.count);
    }
    *value = found;
    return OCTAVO_OK;
}

/* "-00002-of-00003.gguf" for index 1 of 3. Both are at most MAX_PARTS. */
#define SPLIT_SUFFIX_BYTES 20
static void split_suffix(uint64_t index, uint64_t count, char text[SPLIT_SUFFIX_BYTES + 1]) {
    snprintf(text, SPLIT_SUFFIX_BYTES + 1, "-%05u-of-%05u.gguf", (unsigned)(index + 1) & 0xffffu,
             (unsigned)count & 0xffffu);
}

/* Length of the path without the suffix of part `index`, or -1 if it does not end in it. */
static ptrdiff_t split_stem(const char *path, uint64_t index, uint64_t count) {
    char suffix[SPLIT_SUFFIX_BYTES + 1];
    split_suffix(index, count, suffix);
    size_t length = strlen(path);
    if (length < SPLIT_SUFFIX_BYTES) return -1;
    size_t stem = length - SPLIT_SUFFIX_BYTES;
    return strcmp(path + stem, suffix) == 0 ? (ptrdiff_t)stem : -1;
}

/* The first file must be the first part, under a name from which the others' names follow. */
static octavo_status check_first(const octavo_gguf_part *part, const char *path, const split *first,
                                 octavo_error *error) {
    char suffix[SPLIT_SUFFIX_BYTES + 1];
    split_suffix(0, first->count, suffix);
    if (first->part != 0) {
        return octavo_fail(
            error, OCTAVO_ERROR_INVALID,
            "split model (%s): this is part %llu of %llu; give the first part, whose "
            "name ends in %s",
            part->path, (unsigned long long)first->part + 1, (unsigned long long)first->count,
            suffix);
    }
    if (split_stem(path, 0, first->count) < 0) {
        return octavo_fail(
            error, OCTAVO_ERROR_INVALID,
            "split model (%s): the first of %llu parts must have a name that ends in "
            "%s, else the others cannot be found; rename it",
            part->path, (unsigned long long)first->count, suffix);
    }
    return OCTAVO_OK;
}

static octavo_status load_part(octavo_gguf *gguf, size_t index, const char *path,
                               octavo_error *error) {
    octavo_gguf_part *part = &gguf->parts[index];
    part->path = shown_path(path);
    if (part->path == NULL) return octavo_fail_memory(error, path, strlen(path) + 1);
    octavo_status status = octavo_map_open(&part->map, path, error);
    if (status != OCTAVO_OK) return status;
    part->data = part->map.data;
    part->size = part->map.size;
    return octavo_gguf_part_parse(gguf, index, error);
}

static octavo_status load_other_part(octavo_gguf *gguf, size_t index, const char *path,
                                     const split *first, octavo_error *error) {
    octavo_error cause = {0};
    octavo_status status = load_part(gguf, index, path, &cause);
    const octavo_gguf_part *part = &gguf->parts[index];
    if (status == OCTAVO_ERROR_NOT_FOUND) {
        return octavo_fail(
            error, status,
            "split model (%s): part %zu of %llu is missing; fetch it into the folder "
            "of the first part",
            part->path, index + 1, (unsigned long long)first->count);
    }
    if (status != OCTAVO_OK) {
        return octavo_fail_at(error, status, cause.offset, "%s", cause.message);
    }
    split own;
    status = read_split(part, &own, error);
    if (status != OCTAVO_OK) return status;
    if (own.part != index || own.count != first->count) {
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "split model (%s): by its metadata this is part %llu of %llu, not part "
                           "%zu of %llu; fetch the parts of one model again",
                           part->path, (unsigned long long)own.part + 1,
                           (unsigned long long)own.count, index + 1,
                           (unsigned long long)first->count);
    }
    return OCTAVO_OK;
}

/* Opens parts 1.. after the first; `path` is the first's. */
static octavo_status load_other_parts(octavo_gguf *gguf, const char *path, const split *first,
                                      octavo_error *error) {
    octavo_status status = check_first(&gguf->parts[0], path, first, error);
    if (status != OCTAVO_OK) return status;
    size_t count = (size_t)first->count;
    octavo_gguf_part *grown = octavo_realloc(gguf->parts, count * sizeof(*grown));
    char *name = octavo_strdup(path);
    if (grown != NULL) gguf->parts = grown;
    if (grown == NULL || name == NULL) {
        octavo_free(name);
        return octavo_fail_memory(error, path, count * sizeof(*grown));
    }
    memset(grown + 1, 0, (count - 1) * sizeof(*grown));
    gguf->n_parts = count;

    ptrdiff_t stem = split_stem(path, 0, first->count);
    for (size_t i = 1; i < count && status == OCTAVO_OK; i++) {
        split_suffix(i, first->count, name + stem);
        status = load_other_part(gguf, i, name, first, error);
    }
    octavo_free(name);
    if (status == OCTAVO_OK && first->n_tensors != UINT64_MAX &&
        first->n_tensors != gguf->n_tensors) {
        status =
            octavo_fail(error, OCTAVO_ERROR_FORMAT,
                        "split model (%s): its parts hold %zu tensors, its metadata says %llu; "
                        "fetch the parts of one model again",
                        gguf->parts[0].path, gguf->n_tensors, (unsigned long long)first->n_tensors);
    }
    return status;
}

/* -- opening ---------------------------------------------------------------------------------- */

octavo_status octavo_gguf_open(const char *path, octavo_gguf **gguf, octavo_error *error) {
    octavo_gguf *opened = NULL;
    split first;
    octavo_status status = create(path, &opened, error);
    if (status == OCTAVO_OK) status = load_part(opened, 0, path, error);
    if (status == OCTAVO_OK) status = read_split(&opened->parts[0], &first, error);
    if (status == OCTAVO_OK && first.count > 1) {
        status = load_other_parts(opened, path, &first, error);
    }
    if (status == OCTAVO_OK) status = index_tensors(opened, error);
    if (status != OCTAVO_OK) {
        octavo_gguf_close(&opened);
        return status;
    }
    *gguf = opened;
    return OCTAVO_OK;
}

static octavo_status parse_borrowed(octavo_gguf *gguf, const void *data, size_t size,
                                    const char *name, octavo_error *error) {
    octavo_gguf_part *part = &gguf->parts[0];
    part->path = shown_path(name);
    if (part->path == NULL) return octavo_fail_memory(error, name, strlen(name) + 1);
    part->data = data;
    part->size = size;
    octavo_status status = octavo_gguf_part_parse(gguf, 0, error);
    split own;
    if (status == OCTAVO_OK) status = read_split(part, &own, error);
    if (status != OCTAVO_OK) return status;
    if (own.count > 1) {
        return octavo_fail(
            error, OCTAVO_ERROR_UNSUPPORTED,
            "split model (%s): one part of %llu cannot be read from memory; open the "
            "files by name",
            part->path, (unsigned long long)own.count);
    }
    return index_tensors(gguf, error);
}

octavo_status octavo_gguf_parse(const void *data, size_t size, const char *name, octavo_gguf **gguf,
                                octavo_error *error) {
    octavo_gguf *parsed = NULL;
    octavo_status status = create(name, &parsed, error);
    if (status == OCTAVO_OK) status = parse_borrowed(parsed, data, size, name, error);
    if (status != OCTAVO_OK) {
        octavo_gguf_close(&parsed);
        return status;
    }
    *gguf = parsed;
    return OCTAVO_OK;
}

uint32_t octavo_gguf_version(const octavo_gguf *gguf) {
    return gguf->parts[0].version;
}

size_t octavo_gguf_n_parts(const octavo_gguf *gguf) {
    return gguf->n_parts;
}

const char *octavo_gguf_part_path(const octavo_gguf *gguf, size_t part) {
    octavo_assert(part < gguf->n_parts);
    return gguf->parts[part].path;
}

/* -- tensors ---------------------------------------------------------------------------------- */

size_t octavo_gguf_n_tensors(const octavo_gguf *gguf) {
    return gguf->n_tensors;
}

const octavo_gguf_tensor *octavo_gguf_tensor_at(const octavo_gguf *gguf, size_t index) {
    octavo_assert(index < gguf->n_tensors);
    return &gguf->tensors[index];
}

ptrdiff_t octavo_gguf_tensor_find(const octavo_gguf *gguf, const char *name) {
    size_t low = 0, high = gguf->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(gguf->by_name[middle]->name, name);
        if (order == 0) return gguf->by_name[middle] - gguf->tensors;
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

octavo_status octavo_gguf_get_tensor(const octavo_gguf *gguf, const char *name,
                                     const octavo_gguf_tensor **tensor, octavo_error *error) {
    ptrdiff_t index = octavo_gguf_tensor_find(gguf, name);
    if (index < 0) {
        return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                           "tensor \"%.120s\" (%s): missing; the model is incomplete, fetch or "
                           "convert it again",
                           name, gguf->parts[0].path);
    }
    *tensor = &gguf->tensors[index];
    return OCTAVO_OK;
}

void octavo_gguf_will_need(const octavo_gguf *gguf, const octavo_gguf_tensor *tensor, size_t offset,
                           size_t bytes) {
    octavo_assert(offset <= tensor->bytes && bytes <= tensor->bytes - offset);
    octavo_map_will_need(&gguf->parts[tensor->part].map, (size_t)tensor->offset + offset, bytes);
}

void octavo_gguf_drop(const octavo_gguf *gguf, const octavo_gguf_tensor *tensor, size_t offset,
                      size_t bytes) {
    octavo_assert(offset <= tensor->bytes && bytes <= tensor->bytes - offset);
    octavo_map_drop(&gguf->parts[tensor->part].map, (size_t)tensor->offset + offset, bytes);
}
