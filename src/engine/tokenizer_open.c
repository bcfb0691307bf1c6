/* SPDX-License-Identifier: Apache-2.0
 *
 * A tokenizer straight from a model: a GGUF file, or a folder with tokenizer.json.
 */
#include "engine/tokenizer_open.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/vocab_gguf.h"
#include "formats/hf_folder_file.h"
#include "text/tokenizer_json.h"

#include <sys/stat.h>

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

octavo_status octavo_tokenizer_open_folder(const char *folder, octavo_tokenizer **tokenizer,
                                           octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    octavo_tokenizer_json source = {0};
    char *path = octavo_hf_path_in(folder, "tokenizer.json");
    char *config_path = octavo_hf_path_in(folder, "tokenizer_config.json");
    if (path == NULL || config_path == NULL) {
        status = octavo_fail_memory(error, "path", 0);
        goto cleanup;
    }
    if (!exists(path)) {
        status =
            octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                        "tokenizer (%s): there is no such file; copy it from where the model's "
                        "folder comes from",
                        octavo_hf_shown_path(path));
        goto cleanup;
    }
    source.name = octavo_hf_shown_path(path);
    source.config_name = octavo_hf_shown_path(config_path);
    status = octavo_hf_json_read(path, &source.tokenizer, error);
    if (status == OCTAVO_OK && exists(config_path))
        status = octavo_hf_json_read(config_path, &source.config, error);
    if (status == OCTAVO_OK) status = octavo_tokenizer_from_json(&source, tokenizer, error);
cleanup:
    json_decref(source.tokenizer);
    json_decref(source.config);
    octavo_free(path);
    octavo_free(config_path);
    return status;
}

static octavo_status open_gguf(const char *path, octavo_tokenizer **tokenizer,
                               octavo_error *error) {
    octavo_gguf *gguf = NULL;
    octavo_arena arena = {0};
    octavo_vocab vocab = OCTAVO_VOCAB_INIT;
    octavo_status status = octavo_gguf_open(path, &gguf, error);
    if (status == OCTAVO_OK) status = octavo_vocab_from_gguf(gguf, &arena, &vocab, error);
    if (status == OCTAVO_OK) status = octavo_tokenizer_create(&vocab, tokenizer, error);
    octavo_arena_deinit(&arena);
    octavo_gguf_close(&gguf);
    return status;
}

octavo_status octavo_tokenizer_open(const char *path, octavo_tokenizer **tokenizer,
                                    octavo_error *error) {
    if (path == NULL || tokenizer == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "tokenizer: an argument is NULL");
    if (is_folder(path)) return octavo_tokenizer_open_folder(path, tokenizer, error);
    return open_gguf(path, tokenizer, error);
}
