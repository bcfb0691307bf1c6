/* SPDX-License-Identifier: Apache-2.0
 *
 * A tokenizer straight from a model: a GGUF file, or a folder with a tokenizer's file, or that file
 * alone. What a file is shows in what it holds, not in its name.
 */
#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "engine/vocab_gguf.h"
#include "formats/hf_folder_file.h"
#include "text/sentencepiece.h"
#include "text/tekken.h"
#include "text/tokenizer_json.h"
#include "text/vocab.h"

#include <string.h>
#include <sys/stat.h>

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* Whether a file is JSON, as far as its first letter goes; an empty one may have been. */
static bool starts_object(const octavo_map *map) {
    const char *text = (const char *)map->data;
    size_t at = 0;
    while (at < map->size && memchr(" \t\r\n", text[at], 4) != NULL)
        at++;
    return map->size == 0 || (at < map->size && text[at] == '{');
}

/* The kinds of JSON have different keys at the top. */
static octavo_status open_json(const char *path, const octavo_map *map,
                               const octavo_vocab_source *source, octavo_tokenizer **tokenizer,
                               octavo_error *error) {
    json_t *root = NULL;
    if (!starts_object(map))
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "tokenizer (%s): neither JSON nor a file of SentencePiece (a list of "
                           "tiktoken does not say how text is cut); fetch the model's "
                           "tokenizer.json",
                           source->name);
    octavo_status status =
        octavo_hf_json_parse(map->data, map->size, "JSON file", path, &root, error);
    if (status == OCTAVO_OK && json_is_array(json_object_get(root, "vocab"))) {
        status = octavo_tokenizer_from_tekken(source, root, tokenizer, error);
    } else if (status == OCTAVO_OK) {
        octavo_tokenizer_json json = {.name = source->name,
                                      .config_name = source->config_name,
                                      .tokenizer = root,
                                      .config = source->config};
        status = octavo_tokenizer_from_json(&json, tokenizer, error);
    }
    json_decref(root);
    return status;
}

/* Marks the ids under "eos_token_id": one, or a list of them. */
static octavo_status mark_ends(octavo_tokenizer *tokenizer, const json_t *config, const char *path,
                               octavo_error *error) {
    const json_t *ends = json_object_get(config, "eos_token_id");
    size_t n = json_is_array(ends) ? json_array_size(ends) : ends != NULL && !json_is_null(ends);
    for (size_t i = 0; i < n; i++) {
        const json_t *end = json_is_array(ends) ? json_array_get(ends, i) : ends;
        json_int_t id = json_is_integer(end) ? json_integer_value(end) : -1;
        if (id < 0 || id >= octavo_tokenizer_size(tokenizer))
            return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                               "%s: \"eos_token_id\" %lld is no token of the tokenizer; the two "
                               "files do not belong together",
                               octavo_hf_shown_path(path), (long long)id);
        octavo_tokenizer_mark_end(tokenizer, (int32_t)id);
    }
    return OCTAVO_OK;
}

/* What else ends an answer: generation_config.json says so, or where there is none config.json. */
static octavo_status read_ends(octavo_tokenizer *tokenizer, const char *path, octavo_error *error) {
    static const char *const names[] = {"generation_config.json", "config.json"};
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++) {
        json_t *config = NULL;
        char *config_path = octavo_hf_path_beside(path, names[i]);
        if (config_path == NULL) return octavo_fail_memory(error, "path", 0);
        octavo_status status = OCTAVO_OK;
        if (exists(config_path)) status = octavo_hf_json_read(config_path, &config, error);
        bool is_last = json_object_get(config, "eos_token_id") != NULL;
        if (status == OCTAVO_OK) status = mark_ends(tokenizer, config, config_path, error);
        json_decref(config);
        octavo_free(config_path);
        if (status != OCTAVO_OK || is_last) return status;
    }
    return OCTAVO_OK;
}

/* A file of a tokenizer that is no GGUF, with the configuration beside it. */
static octavo_status open_file(const char *path, const octavo_map *map,
                               octavo_tokenizer **tokenizer, octavo_error *error) {
    octavo_tokenizer *made = NULL;
    octavo_vocab_source source = {.name = octavo_hf_shown_path(path)};
    char *config_path = octavo_hf_path_beside(path, "tokenizer_config.json");
    if (config_path == NULL) return octavo_fail_memory(error, "path", 0);
    source.config_name = octavo_hf_shown_path(config_path);
    octavo_status status = OCTAVO_OK;
    if (exists(config_path)) status = octavo_hf_json_read(config_path, &source.config, error);
    if (status == OCTAVO_OK && octavo_is_sentencepiece(map->data, map->size))
        status = octavo_tokenizer_from_sentencepiece(&source, map->data, map->size, &made, error);
    else if (status == OCTAVO_OK)
        status = open_json(path, map, &source, &made, error);
    if (status == OCTAVO_OK) status = read_ends(made, path, error);
    if (status == OCTAVO_OK) {
        *tokenizer = made;
        made = NULL;
    }
    octavo_tokenizer_destroy(&made);
    json_decref(source.config);
    octavo_free(config_path);
    return status;
}

static octavo_status open_folder(const char *folder, octavo_tokenizer **tokenizer,
                                 octavo_error *error) {
    static const char *const names[] = {"tokenizer.json", "tekken.json", "tokenizer.model"};
    char *path = NULL;
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++) {
        octavo_free(path);
        path = octavo_hf_path_in(folder, names[i]);
        if (path == NULL) return octavo_fail_memory(error, "path", 0);
        if (exists(path)) break;
    }
    octavo_map map = {0};
    octavo_status status;
    if (!exists(path))
        status = octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                             "tokenizer (%s): the folder has no tokenizer.json, tekken.json or "
                             "tokenizer.model; copy one from where the model comes from",
                             octavo_hf_shown_path(folder));
    else
        status = octavo_map_open(&map, path, error);
    if (status == OCTAVO_OK) status = open_file(path, &map, tokenizer, error);
    octavo_map_close(&map);
    octavo_free(path);
    return status;
}

static octavo_status open_gguf(const char *path, octavo_tokenizer **tokenizer,
                               octavo_error *error) {
    octavo_gguf *gguf = NULL;
    octavo_status status = octavo_gguf_open(path, &gguf, error);
    if (status == OCTAVO_OK) status = octavo_tokenizer_from_gguf(gguf, tokenizer, error);
    octavo_gguf_close(&gguf);
    return status;
}

/* Whether a file is one of those that folders have: JSON, or SentencePiece's. */
static bool is_tokenizer_file(const octavo_map *map) {
    return starts_object(map) || octavo_is_sentencepiece(map->data, map->size);
}

octavo_status octavo_tokenizer_open(const char *path, octavo_tokenizer **tokenizer,
                                    octavo_error *error) {
    if (path == NULL || tokenizer == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "tokenizer: an argument is NULL");
    if (is_folder(path)) return open_folder(path, tokenizer, error);
    octavo_map map = {0};
    octavo_status status = octavo_map_open(&map, path, error);
    if (status != OCTAVO_OK) return status;
    bool is_gguf = !is_tokenizer_file(&map);
    if (!is_gguf) status = open_file(path, &map, tokenizer, error);
    octavo_map_close(&map);
    return is_gguf ? open_gguf(path, tokenizer, error) : status;
}
