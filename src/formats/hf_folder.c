/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the files of a Hugging Face checkpoint. A link counts as the file of its name even when it
 * leads nowhere: opening it then says so, where calling it absent would mislead.
 */
#include "formats/hf_folder.h"

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "formats/hf_folder_file.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

static const char MODEL[] = "model.safetensors";
static const char MODEL_INDEX[] = "model.safetensors.index.json";

/* What a folder holds, as far as it matters. */
typedef struct listing {
    bool has_model, has_model_index;
    bool has_config, has_tokenizer, has_tekken, has_sentencepiece, has_tokenizer_config;
    bool has_generation_config, has_chat_template, has_chat_template_json;
    size_t n_files, n_indexes;      /* other *.safetensors and *.safetensors.index.json */
    char *file, *index;             /* the first of each by name */
    char *other_file, *other_index; /* some other of each, if there are several */
    bool has_pickle, has_gguf;
} listing;

static void listing_deinit(listing *list) {
    octavo_free(list->file);
    octavo_free(list->index);
    octavo_free(list->other_file);
    octavo_free(list->other_index);
}

static bool ends_in(const char *name, const char *suffix) {
    size_t length = strlen(name), end = strlen(suffix);
    return length > end && strcmp(name + length - end, suffix) == 0;
}

/* Counts a candidate: *first becomes the least name, so that messages do not depend on the order in
 * which the system lists them. False without memory. */
static bool count_candidate(const char *name, size_t *count, char **first, char **other) {
    char *copy = octavo_strdup(name);
    if (copy == NULL) return false;
    (*count)++;
    if (*first == NULL) {
        *first = copy;
        return true;
    }
    char *later = copy;
    if (strcmp(copy, *first) < 0) {
        later = *first;
        *first = copy;
    }
    if (*other == NULL || strcmp(later, *other) < 0) {
        octavo_free(*other);
        *other = later;
    } else {
        octavo_free(later);
    }
    return true;
}

/* Such a name could reach the terminal in a message, and no tool writes one. */
static bool has_controls(const char *name) {
    for (; *name != 0; name++) {
        if ((unsigned char)*name < 0x20 || *name == 0x7f) return true;
    }
    return false;
}

/* False without memory. */
static bool list_name(listing *list, const char *name) {
    const struct {
        const char *name;
        bool *found;
    } known[] = {
        {MODEL, &list->has_model},
        {MODEL_INDEX, &list->has_model_index},
        {"config.json", &list->has_config},
        {"tokenizer.json", &list->has_tokenizer},
        {"tekken.json", &list->has_tekken},
        {"tokenizer.model", &list->has_sentencepiece},
        {"tokenizer_config.json", &list->has_tokenizer_config},
        {"generation_config.json", &list->has_generation_config},
        {"chat_template.jinja", &list->has_chat_template},
        {"chat_template.json", &list->has_chat_template_json},
    };
    for (size_t i = 0; i < OCTAVO_COUNT(known); i++) {
        if (strcmp(name, known[i].name) != 0) continue;
        *known[i].found = true;
        return true;
    }
    if (ends_in(name, ".safetensors")) {
        return count_candidate(name, &list->n_files, &list->file, &list->other_file);
    }
    if (ends_in(name, ".safetensors.index.json")) {
        return count_candidate(name, &list->n_indexes, &list->index, &list->other_index);
    }
    if (ends_in(name, ".bin") || ends_in(name, ".pth") || ends_in(name, ".pt")) {
        list->has_pickle = true;
    }
    if (ends_in(name, ".gguf")) list->has_gguf = true;
    return true;
}

static octavo_status fail_open(const char *path, int code, octavo_error *error) {
    const char *shown = octavo_hf_shown_path(path);
    if (code == ENOENT) {
        return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                           "model folder (%s): it does not exist; check the path", shown);
    }
    if (code == ENOTDIR) {
        return octavo_fail(error, OCTAVO_ERROR_IO,
                           "model folder (%s): it is no folder; give the folder of config.json",
                           shown);
    }
    return octavo_fail(error, OCTAVO_ERROR_IO, "model folder (%s): cannot be read: %s%s", shown,
                       strerror(code), code == EACCES ? "; check its permissions" : "");
}

/* On failure too the caller ends *list. */
static octavo_status read_listing(const char *path, listing *list, octavo_error *error) {
    DIR *directory = opendir(path);
    if (directory == NULL) return fail_open(path, errno, error);
    octavo_status status = OCTAVO_OK;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) {
            if (errno != 0) status = fail_open(path, errno, error);
            break;
        }
        if (has_controls(entry->d_name)) continue;
        if (!list_name(list, entry->d_name)) {
            status = octavo_fail_memory(error, octavo_hf_shown_path(path), strlen(entry->d_name));
            break;
        }
    }
    (void)closedir(directory);
    return status;
}

static octavo_status fail_missing(const char *path, const listing *list, octavo_error *error) {
    const char *shown = octavo_hf_shown_path(path);
    const char *hint = "fetch the weights, or give another folder";
    if (list->has_pickle) {
        hint = "its PyTorch weights are not read, convert them to safetensors";
    } else if (list->has_gguf) {
        hint = "give its .gguf file instead";
    }
    return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                       "model folder (%s): it has no %s, no %s and no other *.safetensors; %s",
                       shown, MODEL, MODEL_INDEX, hint);
}

/* *name: of the weights, in the listing or constant. */
static octavo_status choose_weights(const char *path, const listing *list, const char **name,
                                    bool *sharded, octavo_error *error) {
    const char *shown = octavo_hf_shown_path(path);
    *sharded = !list->has_model && (list->has_model_index || list->n_indexes > 0);
    if (list->has_model) {
        *name = MODEL;
    } else if (list->has_model_index) {
        *name = MODEL_INDEX;
    } else if (list->n_indexes > 1) {
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "model folder (%s): it has %zu indexes, such as %.60s and %.60s; name "
                           "that of the model %s",
                           shown, list->n_indexes, list->index, list->other_index, MODEL_INDEX);
    } else if (list->n_indexes == 1) {
        *name = list->index;
    } else if (list->n_files > 1) {
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "model folder (%s): it has %zu *.safetensors, such as %.60s and %.60s, "
                           "and no index; fetch %s, or leave one file",
                           shown, list->n_files, list->file, list->other_file, MODEL_INDEX);
    } else if (list->n_files == 1) {
        *name = list->file;
    } else {
        return fail_missing(path, list, error);
    }
    return OCTAVO_OK;
}

void octavo_hf_folder_deinit(octavo_hf_folder *folder) {
    octavo_free(folder->path);
    octavo_free(folder->config);
    octavo_free(folder->weights);
    octavo_free(folder->tokenizer);
    octavo_free(folder->tokenizer_config);
    octavo_free(folder->generation_config);
    octavo_free(folder->chat_template);
    octavo_free(folder->chat_template_json);
    *folder = (octavo_hf_folder){0};
}

static octavo_status fill(const char *path, const listing *list, const char *weights,
                          octavo_hf_folder *folder, octavo_error *error) {
    const char *tokenizer = list->has_tokenizer       ? "tokenizer.json"
                            : list->has_tekken        ? "tekken.json"
                            : list->has_sentencepiece ? "tokenizer.model"
                                                      : NULL;
    const struct {
        bool wanted;
        const char *name;
        char **path;
    } files[] = {
        {true, "config.json", &folder->config},
        {true, weights, &folder->weights},
        {tokenizer != NULL, tokenizer, &folder->tokenizer},
        {list->has_tokenizer_config, "tokenizer_config.json", &folder->tokenizer_config},
        {list->has_generation_config, "generation_config.json", &folder->generation_config},
        {list->has_chat_template, "chat_template.jinja", &folder->chat_template},
        {list->has_chat_template_json, "chat_template.json", &folder->chat_template_json},
    };
    bool failed = (folder->path = octavo_strdup(path)) == NULL;
    for (size_t i = 0; i < OCTAVO_COUNT(files); i++) {
        if (!files[i].wanted || failed) continue;
        *files[i].path = octavo_hf_path_in(path, files[i].name);
        failed = *files[i].path == NULL;
    }
    return failed ? octavo_fail_memory(error, octavo_hf_shown_path(path), strlen(path) + 1)
                  : OCTAVO_OK;
}

octavo_status octavo_hf_folder_read(const char *path, octavo_hf_folder *folder,
                                    octavo_error *error) {
    listing list = {0};
    octavo_hf_folder found = {0};
    const char *weights = NULL;
    octavo_status status = read_listing(path, &list, error);
    if (status == OCTAVO_OK && !list.has_config) {
        status =
            octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                        "model folder (%s): it has no config.json; %s", octavo_hf_shown_path(path),
                        list.has_gguf ? "give its .gguf file instead"
                                      : "fetch it, or give the folder of a model");
    }
    if (status == OCTAVO_OK) {
        status = choose_weights(path, &list, &weights, &found.sharded, error);
    }
    if (status == OCTAVO_OK) status = fill(path, &list, weights, &found, error);
    if (status == OCTAVO_OK) {
        *folder = found;
    } else {
        octavo_hf_folder_deinit(&found);
    }
    listing_deinit(&list);
    return status;
}
