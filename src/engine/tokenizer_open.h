/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer of a Hugging Face folder, for those who know already that it is one.
 */
#ifndef OCTAVO_ENGINE_TOKENIZER_OPEN_H
#define OCTAVO_ENGINE_TOKENIZER_OPEN_H

#include "octavo/tokenizer.h"

/* Reads tokenizer.json and, where the folder has it, tokenizer_config.json. Statuses as
 * octavo_tokenizer_open; NOT_FOUND where there is no tokenizer.json. */
OCTAVO_MUST_CHECK octavo_status octavo_tokenizer_open_folder(const char *folder,
                                                             octavo_tokenizer **tokenizer,
                                                             octavo_error *error);

#endif
