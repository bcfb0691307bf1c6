/* SPDX-License-Identifier: Apache-2.0
 *
 * Sharded safetensors models: reads the index, opens each file that it names once, and keeps of
 * their tensors those that it names. File names come from the index and are hostile: only plain
 * names are taken, so that no index reaches beyond its folder.
 */
#include "base/error.h"
#include "formats/hf_folder_file.h"
#include "formats/safetensors_internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_NAME = 255 };

/* -- reading the index ------------------------------------------------------------------------ */

/* Why a legal text is no file name to be taken, or NULL. */
static const char *wrong_file_name(const char *file) {
    size_t length = strlen(file);
    if (length > MAX_FILE_NAME) return "is longer than 255 bytes";
    if (strpbrk(file, "/\\") != NULL) return "may lead out of the folder of the index";
    static const char suffix[] = ".safetensors";
    size_t end = sizeof(suffix) - 1;
    if (length <= end || strcmp(file + length - end, suffix) != 0) {
        return "does not end in .safetensors";
    }
    return NULL;
}

static octavo_status read_place(const char *shown, const char *tensor, const json_t *value,
                                octavo_safetensors_index *index, octavo_error *error) {
    const char *file = json_string_value(value), *wrong;
    if (!octavo_safetensors_name_is_legal(tensor, &wrong)) {
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "model index (%s): the name of a tensor %s; the index is damaged", shown,
                           wrong);
    }
    if (file == NULL || !octavo_safetensors_name_is_legal(file, &wrong)) {
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "model index (%s): the file name for tensor \"%.120s\" %s; the index is "
                           "damaged, fetch it again",
                           shown, tensor, file == NULL ? "is no text" : wrong);
    }
    wrong = wrong_file_name(file);
    if (wrong != NULL) {
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "model index (%s): the file name \"%.60s\" for tensor \"%.120s\" %s; "
                           "give a *.safetensors beside the index",
                           shown, file, tensor, wrong);
    }
    octavo_safetensors_place *place = &index->places[index->n_places];
    place->tensor = octavo_arena_strndup(&index->arena, tensor, strlen(tensor));
    place->file = octavo_arena_strndup(&index->arena, file, strlen(file));
    if (place->tensor == NULL || place->file == NULL) {
        return octavo_fail_memory(error, shown, strlen(tensor) + strlen(file) + 2);
    }
    index->n_places++;
    return OCTAVO_OK;
}

static int compare_files(const void *a, const void *b) {
    const octavo_safetensors_place *x = a, *y = b;
    int order = strcmp(x->file, y->file);
    return order != 0 ? order : strcmp(x->tensor, y->tensor);
}

/* Gathers the distinct files once all places are read. */
static octavo_status gather_files(const char *shown, octavo_safetensors_index *index,
                                  octavo_error *error) {
    octavo_safetensors_place *places = index->places;
    qsort(places, index->n_places, sizeof(*places), compare_files);
    size_t n_files = 0;
    for (size_t i = 0; i < index->n_places; i++) {
        if (i == 0 || strcmp(places[i].file, places[i - 1].file) != 0) n_files++;
        places[i].part = n_files - 1;
    }
    if (n_files > OCTAVO_SAFETENSORS_MAX_PARTS) {
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "model index (%s): it names %zu files, the most is %d; it is damaged",
                           shown, n_files, OCTAVO_SAFETENSORS_MAX_PARTS);
    }
    index->files = octavo_arena_alloc(&index->arena, n_files * sizeof(*index->files));
    if (index->files == NULL) return octavo_fail_memory(error, shown, n_files * sizeof(char *));
    for (size_t i = 0; i < index->n_places; i++) {
        index->files[places[i].part] = places[i].file;
    }
    index->n_files = n_files;
    return OCTAVO_OK;
}

static octavo_status read_places(const char *shown, json_t *root, octavo_safetensors_index *index,
                                 octavo_error *error) {
    json_t *map = json_object_get(root, "weight_map");
    size_t count = json_object_size(map); /* 0 for what is no object */
    if (!json_is_object(map) || count == 0) {
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "model index (%s): its \"weight_map\" is missing, empty or no object; "
                           "the index is damaged, fetch it again",
                           shown);
    }
    size_t bytes = 0;
    if (octavo_size_mul(count, sizeof(*index->places), &bytes)) {
        index->places = octavo_arena_alloc(&index->arena, bytes);
    }
    if (index->places == NULL) return octavo_fail_memory(error, shown, bytes);
    for (void *it = json_object_iter(map); it != NULL; it = json_object_iter_next(map, it)) {
        octavo_status status =
            read_place(shown, json_object_iter_key(it), json_object_iter_value(it), index, error);
        if (status != OCTAVO_OK) return status;
    }
    return gather_files(shown, index, error);
}

octavo_status octavo_safetensors_index_parse(const void *data, size_t size, const char *name,
                                             octavo_safetensors_index *index, octavo_error *error) {
    octavo_safetensors_index read = {0};
    json_t *root = NULL;
    octavo_status status = octavo_hf_json_parse(data, size, "model index", name, &root, error);
    if (status == OCTAVO_OK) status = read_places(octavo_hf_shown_path(name), root, &read, error);
    json_decref(root);
    if (status != OCTAVO_OK) {
        octavo_safetensors_index_deinit(&read);
        return status;
    }
    *index = read;
    return OCTAVO_OK;
}

void octavo_safetensors_index_deinit(octavo_safetensors_index *index) {
    octavo_arena_deinit(&index->arena);
    *index = (octavo_safetensors_index){0};
}

/* -- the shards ------------------------------------------------------------------------------- */

static octavo_status load_shard(octavo_safetensors *safetensors, size_t part, const char *file,
                                octavo_error *error) {
    char *path = octavo_hf_path_beside(safetensors->path, file);
    if (path == NULL) return octavo_fail_memory(error, safetensors->shown, strlen(file) + 1);
    octavo_status status = octavo_safetensors_part_load(safetensors, part, path, error);
    octavo_free(path);
    if (status != OCTAVO_ERROR_NOT_FOUND) return status;
    return octavo_fail(error, status,
                       "sharded model (%s): its file %s (%zu of %zu) is missing; fetch it into the "
                       "folder of the index",
                       safetensors->shown, octavo_hf_shown_path(file), part + 1,
                       safetensors->n_parts);
}

static octavo_status load_shards(octavo_safetensors *safetensors,
                                 const octavo_safetensors_index *index, octavo_error *error) {
    safetensors->parts = octavo_alloc_zero(index->n_files, sizeof(*safetensors->parts));
    if (safetensors->parts == NULL) {
        return octavo_fail_memory(error, safetensors->shown,
                                  index->n_files * sizeof(*safetensors->parts));
    }
    safetensors->n_parts = index->n_files;
    for (size_t i = 0; i < index->n_files; i++) {
        octavo_status status = load_shard(safetensors, i, index->files[i], error);
        if (status != OCTAVO_OK) return status;
    }
    return octavo_safetensors_sort_names(safetensors, error);
}

/* Sets kept[t] for each tensor t that the index names; all of those must be there. */
static octavo_status mark_named(const octavo_safetensors *safetensors,
                                const octavo_safetensors_index *index, bool *kept,
                                octavo_error *error) {
    for (size_t i = 0; i < index->n_places; i++) {
        const octavo_safetensors_place *place = &index->places[i];
        ptrdiff_t found = octavo_safetensors_find_in_part(safetensors, place->tensor, place->part);
        if (found < 0) {
            return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                               "tensor \"%.120s\" (%s): the index places it in %s, which does not "
                               "hold it; fetch both again",
                               place->tensor, safetensors->shown,
                               octavo_hf_shown_path(place->file));
        }
        kept[found] = true;
    }
    return OCTAVO_OK;
}

static octavo_status keep_named(octavo_safetensors *safetensors,
                                const octavo_safetensors_index *index, octavo_error *error) {
    bool *kept = octavo_alloc_zero(safetensors->n_tensors, sizeof(*kept));
    if (kept == NULL) return octavo_fail_memory(error, safetensors->shown, safetensors->n_tensors);
    octavo_status status = mark_named(safetensors, index, kept, error);
    if (status == OCTAVO_OK) {
        size_t n = 0;
        for (size_t i = 0; i < safetensors->n_tensors; i++) {
            if (kept[i]) safetensors->tensors[n++] = safetensors->tensors[i];
        }
        safetensors->n_tensors = n;
        status = octavo_safetensors_sort_names(safetensors, error);
    }
    octavo_free(kept);
    return status;
}

octavo_status octavo_safetensors_open_shards(octavo_safetensors *safetensors, octavo_error *error) {
    octavo_map map = {0};
    octavo_safetensors_index index = {0};
    octavo_status status = octavo_map_open(&map, safetensors->path, error);
    if (status == OCTAVO_OK) {
        status =
            octavo_safetensors_index_parse(map.data, map.size, safetensors->path, &index, error);
    }
    if (status == OCTAVO_OK) status = load_shards(safetensors, &index, error);
    if (status == OCTAVO_OK) status = keep_named(safetensors, &index, error);
    octavo_safetensors_index_deinit(&index);
    octavo_map_close(&map);
    return status;
}
