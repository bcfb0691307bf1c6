/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder's tokenizer as tokenizer.ggml.* metadata.
 */
#ifndef OCTAVO_ENGINE_VOCAB_EXPORT_H
#define OCTAVO_ENGINE_VOCAB_EXPORT_H

#include "formats/gguf_write.h"
#include "formats/hf_folder.h"

/* Puts the vocabulary, filled up to n_tokens, into the writer; for a folder without a tokenizer the
 * model "none". What is put makes the same ids of a set of texts as the folder's tokenizer, or it
 * is UNSUPPORTED. Other statuses as octavo_tokenizer_open. */
OCTAVO_MUST_CHECK octavo_status octavo_vocab_export(const octavo_hf_folder *folder,
                                                    int64_t n_tokens, octavo_gguf_writer *writer,
                                                    octavo_error *error);

#endif
