/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding out what a path is.
 */
#include "engine/source.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <sys/stat.h>

static octavo_status refuse_folder(const char *path, octavo_error *error) {
    char config[4096];
    struct stat info;
    int length = snprintf(config, sizeof config, "%s/config.json", path);
    if (length > 0 && (size_t)length < sizeof config && stat(config, &info) == 0)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "model folder (%s): Hugging Face folders are not read by this version; "
                           "give a .gguf file",
                           path);
    return octavo_fail(
        error, OCTAVO_ERROR_NOT_FOUND,
        "model folder (%s): no config.json in it; give a .gguf file or a model's folder", path);
}

octavo_status octavo_source_open(const char *path, octavo_gguf **gguf, octavo_error *error) {
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return refuse_folder(path, error);
    return octavo_gguf_open(path, gguf, error);
}

octavo_status octavo_gguf_chat_template(const octavo_gguf *gguf, char **text, octavo_error *error) {
    octavo_gguf_string value;
    octavo_status status =
        octavo_gguf_get_string_or(gguf, "tokenizer.chat_template", NULL, &value, error);
    if (status) return status;
    char *copy = value.data ? octavo_strndup(value.data, value.size) : NULL;
    if (value.data && !copy) return octavo_fail_memory(error, "chat template", value.size);
    *text = copy;
    return OCTAVO_OK;
}
