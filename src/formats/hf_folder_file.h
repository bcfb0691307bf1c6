/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a Hugging Face checkpoint: paths, and JSON read whole.
 */
#ifndef OCTAVO_FORMATS_HF_FOLDER_FILE_H
#define OCTAVO_FORMATS_HF_FOLDER_FILE_H

#include "octavo/status.h"

#include <jansson.h>
#include <stddef.h>

enum { OCTAVO_HF_MAX_JSON = 256 << 20 }; /* bytes; the largest tokenizer.json have 40 MB */

/* The path in messages: the end of a very long one, so that the reason has room. */
const char *octavo_hf_shown_path(const char *path);

/* FOLDER/NAME, and NAME in the folder of the file `path`. NULL without memory; the caller frees
 * with octavo_free. */
char *octavo_hf_path_in(const char *folder, const char *name);
char *octavo_hf_path_beside(const char *path, const char *name);

/* Reads a JSON file whose top is an object. *root is the caller's, who ends it with json_decref.
 * Duplicate keys are refused, and strings may hold "\u0000". Errors name the file, and where it is
 * not JSON the line: OCTAVO_ERROR_NOT_FOUND, OCTAVO_ERROR_IO, OCTAVO_ERROR_MEMORY
 *   OCTAVO_ERROR_FORMAT  empty, too large, no JSON, no object */
OCTAVO_MUST_CHECK octavo_status octavo_hf_json_read(const char *path, json_t **root,
                                                    octavo_error *error);

/* The same over bytes in memory; `what` is in messages before "(name)", as "model index". */
OCTAVO_MUST_CHECK octavo_status octavo_hf_json_parse(const void *data, size_t size,
                                                     const char *what, const char *name,
                                                     json_t **root, octavo_error *error);

#endif
