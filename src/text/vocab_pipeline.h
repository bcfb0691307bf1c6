/* SPDX-License-Identifier: Apache-2.0
 *
 * Vocabularies whose kind says the steps of a pipeline: WordPiece ("bert"), Unigram ("t5"),
 * SentencePiece BPE with normalisation ("spm") and byte-level BPE by rank ("tekken").
 */
#ifndef OCTAVO_TEXT_VOCAB_PIPELINE_H
#define OCTAVO_TEXT_VOCAB_PIPELINE_H

#include "text/pipeline.h"

/* Whether a vocabulary is of such a kind. */
bool octavo_vocab_is_piped(const octavo_vocab *vocab);

/* Makes the pipeline of a vocabulary that has been checked, and *piped: the vocabulary as the
 * pipeline wants it, with arrays of the vocabulary's and the pipeline's own. On success the caller
 * gives both to octavo_tokenizer_create_piped. FORMAT, UNSUPPORTED, MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_vocab_pipeline(const octavo_vocab *vocab,
                                                      octavo_pipeline **pipeline,
                                                      octavo_vocab *piped, octavo_error *error);

#endif
