/* SPDX-License-Identifier: Apache-2.0
 *
 * From MODEL, as a user names it, to an open checkpoint.
 */
#ifndef OCTAVO_ENGINE_SOURCE_H
#define OCTAVO_ENGINE_SOURCE_H

#include "model/checkpoint.h"

/* Opens a GGUF file, or a folder as a Hugging Face checkpoint. The caller ends *checkpoint with
 * octavo_checkpoint_close. */
OCTAVO_MUST_CHECK octavo_status octavo_source_open(const char *path, octavo_checkpoint *checkpoint,
                                                   octavo_error *error);

/* A terminated copy of the model's chat template, freed with octavo_free; *text is NULL when it has
 * none. In a folder that is chat_template.jinja, else what tokenizer_config.json has: one template,
 * or of several the one named "default". */
OCTAVO_MUST_CHECK octavo_status octavo_source_chat_template(const octavo_checkpoint *checkpoint,
                                                            char **text, octavo_error *error);

#endif
