/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths and JSON files of a Hugging Face checkpoint. jansson parses, and bounds the depth; what it
 * says is worded as every other error.
 */
#include "formats/hf_folder_file.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/map.h"
#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_PATH_SHOWN = 150 }; /* messages may name two files */

const char *octavo_hf_shown_path(const char *path) {
    size_t length = strlen(path);
    return length > MAX_PATH_SHOWN ? path + (length - MAX_PATH_SHOWN) : path;
}

static char *join(const char *folder, size_t length, const char *name) {
    octavo_buffer path = {0};
    octavo_buffer_append(&path, folder, length);
    if (length > 0 && folder[length - 1] != '/') octavo_buffer_putc(&path, '/');
    octavo_buffer_puts(&path, name);
    return octavo_buffer_take(&path);
}

char *octavo_hf_path_in(const char *folder, const char *name) {
    return join(folder, strlen(folder), name);
}

char *octavo_hf_path_beside(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    return join(path, slash == NULL ? 0 : (size_t)(slash - path) + 1, name);
}

/* The message quotes the file: no control character of it may reach the terminal. */
static void blank_controls(char *text) {
    for (; *text != 0; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = ' ';
    }
}

octavo_status octavo_hf_json_parse(const void *data, size_t size, const char *what,
                                   const char *name, json_t **root, octavo_error *error) {
    const char *shown = octavo_hf_shown_path(name);
    if (size == 0) {
        return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, 0,
                              "%s (%s): the file is empty; fetch it again", what, shown);
    }
    if (size > OCTAVO_HF_MAX_JSON) {
        return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, 0,
                              "%s (%s): %zu bytes are more than such a file can have (%d); it is "
                              "something else, fetch it again",
                              what, shown, size, OCTAVO_HF_MAX_JSON);
    }
    json_error_t wrong;
    json_t *parsed = json_loadb(data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &wrong);
    /* memory that runs out before the first token leaves no text */
    bool no_memory = json_error_code(&wrong) == json_error_out_of_memory || wrong.text[0] == 0;
    if (parsed == NULL && no_memory) {
        return octavo_fail_memory(error, shown, size);
    }
    if (parsed == NULL) {
        blank_controls(wrong.text);
        return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, wrong.position,
                              "%s (%s): line %d is no legal JSON: %.160s; the file is damaged, "
                              "fetch it again",
                              what, shown, wrong.line, wrong.text);
    }
    if (!json_is_object(parsed)) {
        json_decref(parsed);
        return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, 0,
                              "%s (%s): it is no JSON object; the file is damaged, fetch it again",
                              what, shown);
    }
    *root = parsed;
    return OCTAVO_OK;
}

octavo_status octavo_hf_json_read(const char *path, json_t **root, octavo_error *error) {
    octavo_map map = {0};
    octavo_status status = octavo_map_open(&map, path, error);
    if (status != OCTAVO_OK) return status;
    status = octavo_hf_json_parse(map.data, map.size, "JSON file", path, root, error);
    octavo_map_close(&map);
    return status;
}
