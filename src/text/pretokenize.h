/* SPDX-License-Identifier: Apache-2.0
 *
 * Cutting text into the pieces that byte-level BPE never merges across, by the names that GGUF
 * files give to the ways of cutting (tokenizer.ggml.pre).
 */
#ifndef OCTAVO_TEXT_PRETOKENIZE_H
#define OCTAVO_TEXT_PRETOKENIZE_H

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>

/* One way of cutting: immutable, any thread. */
typedef struct octavo_pretokenizer octavo_pretokenizer;

/* What a name of tokenizer.ggml.pre says beside the cutting itself. */
typedef struct octavo_pretokenizer_traits {
    bool nfc;           /* the text is normalised to NFC first */
    bool ignore_merges; /* a piece that is a token as a whole becomes that token */
    bool ranked;        /* merges follow from the order of the tokens where none are listed */
    bool adds_bos;      /* a text begins with bos where the file does not say */
    bool adds_eos;      /* and ends with eos */
} octavo_pretokenizer_traits;

/* Finds what a name says. UNSUPPORTED for one that is not known; the message says what may be done.
 */
OCTAVO_MUST_CHECK octavo_status octavo_pretokenizer_find(const char *name,
                                                         octavo_pretokenizer_traits *traits,
                                                         octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_pretokenizer_create(const char *name,
                                                           octavo_pretokenizer **pretokenizer,
                                                           octavo_pretokenizer_traits *traits,
                                                           octavo_error *error);
/* A name of way i of cutting; false beyond the last. */
enum { OCTAVO_PRETOKENIZER_NAME_SIZE = 32 };
bool octavo_pretokenizer_name(size_t i, char name[OCTAVO_PRETOKENIZER_NAME_SIZE]);
void octavo_pretokenizer_destroy(octavo_pretokenizer **pretokenizer);

/* Takes the pieces, front to back. Another status than OCTAVO_OK ends the run with it. */
typedef octavo_status octavo_piece_sink(void *cookie, const char *piece, size_t length,
                                        octavo_error *error);

/* Cuts `text`, which must be valid UTF-8; the pieces joined are the text. */
OCTAVO_MUST_CHECK octavo_status octavo_pretokenizer_run(const octavo_pretokenizer *pretokenizer,
                                                        const char *text, size_t length,
                                                        octavo_piece_sink *sink, void *cookie,
                                                        octavo_error *error);

#endif
