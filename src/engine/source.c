/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding out what a path is, and where its chat template lies.
 */
#include "engine/source.h"

#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"
#include "formats/hf_folder_file.h"

#include <string.h>
#include <sys/stat.h>

octavo_status octavo_source_open(const char *path, octavo_checkpoint *checkpoint,
                                 octavo_error *error) {
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return octavo_checkpoint_open_folder(path, checkpoint, error);
    return octavo_checkpoint_open_gguf(path, checkpoint, error);
}

/* ---- chat template ---- */

static octavo_status copy(const char *data, size_t size, char **text, octavo_error *error) {
    char *made = octavo_strndup(data, size);
    if (!made) return octavo_fail_memory(error, "chat template", size);
    *text = made;
    return OCTAVO_OK;
}

static octavo_status template_of_gguf(const octavo_gguf *gguf, char **text, octavo_error *error) {
    octavo_gguf_string value;
    octavo_status status =
        octavo_gguf_get_string_or(gguf, "tokenizer.chat_template", NULL, &value, error);
    if (status || !value.data) return status;
    return copy(value.data, value.size, text, error);
}

static octavo_status template_of_file(const char *path, char **text, octavo_error *error) {
    octavo_map map = {0};
    octavo_status status = octavo_map_open(&map, path, error);
    if (status) return status;
    status = copy(map.size ? (const char *)map.data : "", map.size, text, error);
    octavo_map_close(&map);
    return status;
}

/* Of [{"name": "default", "template": "..."}, ...]. */
static const json_t *default_of(const json_t *list) {
    size_t i;
    json_t *entry;
    json_array_foreach(list, i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name && strcmp(name, "default") == 0) return json_object_get(entry, "template");
    }
    return NULL;
}

static octavo_status template_of_config(const char *path, char **text, octavo_error *error) {
    json_t *config = NULL;
    octavo_status status = octavo_hf_json_read(path, &config, error);
    if (status) return status;
    const json_t *value = json_object_get(config, "chat_template");
    if (json_is_array(value)) value = default_of(value);
    if (json_is_string(value))
        status = copy(json_string_value(value), json_string_length(value), text, error);
    else if (value && !json_is_null(value))
        status = octavo_fail(error, OCTAVO_ERROR_FORMAT,
                             "config \"chat_template\" (%s): neither a text nor a list of named "
                             "ones; the file is damaged",
                             octavo_hf_shown_path(path));
    json_decref(config);
    return status;
}

octavo_status octavo_source_chat_template(const octavo_checkpoint *checkpoint, char **text,
                                          octavo_error *error) {
    char *found = NULL;
    octavo_status status = OCTAVO_OK;
    if (checkpoint->gguf)
        status = template_of_gguf(checkpoint->gguf, &found, error);
    else if (checkpoint->folder.chat_template)
        status = template_of_file(checkpoint->folder.chat_template, &found, error);
    else if (checkpoint->folder.chat_template_json)
        status = template_of_config(checkpoint->folder.chat_template_json, &found, error);
    else if (checkpoint->folder.tokenizer_config)
        status = template_of_config(checkpoint->folder.tokenizer_config, &found, error);
    if (status == OCTAVO_OK) *text = found;
    return status;
}
