/* SPDX-License-Identifier: Apache-2.0
 *
 * From MODEL, as a user names it, to an open file.
 */
#ifndef OCTAVO_ENGINE_SOURCE_H
#define OCTAVO_ENGINE_SOURCE_H

#include "formats/gguf.h"

/* Opens a model file. A folder is told apart: with config.json it is a Hugging Face checkpoint
 * (OCTAVO_ERROR_UNSUPPORTED in this version), without it no model at all (OCTAVO_ERROR_NOT_FOUND).
 */
OCTAVO_MUST_CHECK octavo_status octavo_source_open(const char *path, octavo_gguf **gguf,
                                                   octavo_error *error);

/* A terminated copy of the file's chat template, freed with octavo_free; *text is NULL when it has
 * none. */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_chat_template(const octavo_gguf *gguf, char **text,
                                                          octavo_error *error);

#endif
