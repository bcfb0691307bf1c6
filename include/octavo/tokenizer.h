/* SPDX-License-Identifier: Apache-2.0
 *
 * Text to token ids and back.
 *
 * A tokenizer is immutable once it exists: every function that takes it as const may be called from
 * any thread, at the same time. It belongs to whoever created it and must outlive the detokenizers
 * made from it. Ids are 0 .. size - 1; "no id" is -1.
 */
#ifndef OCTAVO_TOKENIZER_H
#define OCTAVO_TOKENIZER_H

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octavo_tokenizer octavo_tokenizer;

/* What octavo_tokenizer_encode does beside splitting text. */
enum {
    /* Put in front and behind what the model's tokenizer adds by itself (begin, end of text). */
    OCTAVO_ENCODE_BEGIN_END = 1 << 0,
    /* The text of a special token (such as "<|im_end|>") becomes that token. Without this flag
     * it is ordinary text: use that for text from users. Tokens which a vocabulary lists as
     * user-defined but not as special are recognised either way. */
    OCTAVO_ENCODE_SPECIAL_TEXT = 1 << 1,
    /* Text from users stands in the text, with a mark behind the first character of every special
     * token that it spells: there the token is ordinary text all the same. Marks are no part of
     * the text, wherever they stand. */
    OCTAVO_ENCODE_MARKED = 1 << 2,
};

/* The mark: U+FDD0, which is no character. */
#define OCTAVO_ENCODE_MARK "\xef\xb7\x90"

/* How ids become text, in octavo_tokenizer_decode and in a detokenizer. */
enum {
    /* Special tokens give no text. */
    OCTAVO_DECODE_SKIP_SPECIAL = 1 << 0,
    /* The ids continue a text that is already there. Without it, a vocabulary that puts a space
     * in front of every text loses that one space again. */
    OCTAVO_DECODE_CONTINUE = 1 << 1,
};

/* Reads the tokenizer of a model, and nothing else of it.
 *   path       a GGUF file, or a Hugging Face folder: of that tokenizer.json, else tekken.json,
 * else tokenizer.model, and where there is one tokenizer_config.json; or such a file itself
 *   tokenizer  receives the handle; the caller destroys it. Untouched on failure
 *
 * Statuses: NOT_FOUND (no such file, or no tokenizer in it), IO (unreadable), FORMAT (not such a
 * file, no JSON, or its vocabulary is malformed), UNSUPPORTED (a kind of tokenizer or a step that
 * this build does not know; the message lists those it knows), INVALID (a NULL; a part of a split
 * file other than the first), MEMORY. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_tokenizer_open(const char *path,
                                                                 octavo_tokenizer **tokenizer,
                                                                 octavo_error *error);

/* Frees the tokenizer and sets the handle to NULL. Takes NULL and a handle that is NULL. No other
 * thread may be using it. */
OCTAVO_API void octavo_tokenizer_destroy(octavo_tokenizer **tokenizer);

/* Text to ids.
 *   text, length  UTF-8, any bytes, zeros included; need not be terminated. Every maximal
 *                 ill-formed part of it is read as one U+FFFD
 *   flags         OCTAVO_ENCODE_...
 *   ids           [capacity], receives the ids; may be NULL when capacity is 0
 *   n_ids         receives how many ids the text has. When that is more than `capacity`, the
 *                 first `capacity` ids were written and the call still succeeds: compare the
 *                 two. Room for length + 8 ids is enough for nearly every text, but not for all
 *
 * Time grows as length * log(length), whatever the text.
 * Statuses: INVALID (a NULL), LIMIT (text over 1 GiB), MEMORY. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_tokenizer_encode(
    const octavo_tokenizer *tokenizer, const char *text, size_t length, unsigned flags,
    int32_t *ids, size_t capacity, size_t *n_ids, octavo_error *error);

/* Ids to text.
 *   ids, n_ids  the ids
 *   flags       OCTAVO_DECODE_...
 *   text        [capacity], receives valid UTF-8, not terminated: bytes that form no character
 *               become U+FFFD, one for each maximal ill-formed part. May be NULL when capacity
 *               is 0
 *   length      receives the bytes of the whole text. When that is more than `capacity`, the
 *               first `capacity` bytes were written and the call still succeeds
 *
 * Statuses: INVALID (a NULL, an id that does not exist), MEMORY. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_tokenizer_decode(
    const octavo_tokenizer *tokenizer, const int32_t *ids, size_t n_ids, unsigned flags, char *text,
    size_t capacity, size_t *length, octavo_error *error);

/* How many tokens there are. Any thread. */
OCTAVO_API int32_t octavo_tokenizer_size(const octavo_tokenizer *tokenizer);

/* The bytes that a token stands for, not terminated, possibly part of a character or none at all;
 * NULL for an id that does not exist. They live as long as the tokenizer. Any thread. */
OCTAVO_API const char *octavo_tokenizer_piece(const octavo_tokenizer *tokenizer, int32_t id,
                                              size_t *length);

/* The token that stands for exactly these bytes, or -1. Where a special token and a piece of text
 * are spelled alike, the piece is found. Any thread. */
OCTAVO_API int32_t octavo_tokenizer_find(const octavo_tokenizer *tokenizer, const char *text,
                                         size_t length);

/* Begin of text, end of text; -1 when the vocabulary names none. Any thread. */
OCTAVO_API int32_t octavo_tokenizer_bos(const octavo_tokenizer *tokenizer);
OCTAVO_API int32_t octavo_tokenizer_eos(const octavo_tokenizer *tokenizer);

/* Whether OCTAVO_ENCODE_BEGIN_END puts bos in front. Any thread. */
OCTAVO_API bool octavo_tokenizer_adds_bos(const octavo_tokenizer *tokenizer);

/* Whether the token steers the model instead of being text; false for an id that does not exist.
 * Any thread. */
OCTAVO_API bool octavo_tokenizer_is_special(const octavo_tokenizer *tokenizer, int32_t id);

/* Whether an answer ends with this token: eos, end of turn, or a special token of a name that is
 * used for those; false for an id that does not exist. Any thread. */
OCTAVO_API bool octavo_tokenizer_is_eog(const octavo_tokenizer *tokenizer, int32_t id);

/* Turns ids into text one after another. What it gives is always whole characters: bytes of a
 * character that is not complete yet are held back. All texts joined are what
 * octavo_tokenizer_decode gives for all ids. One thread at a time. */
typedef struct octavo_detokenizer octavo_detokenizer;

/* Makes a detokenizer of `tokenizer`, which must outlive it; `flags` are OCTAVO_DECODE_.... The
 * caller destroys it. Statuses: INVALID (a NULL), MEMORY; the handle is untouched on failure. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status
octavo_detokenizer_create(const octavo_tokenizer *tokenizer, unsigned flags,
                          octavo_detokenizer **detokenizer, octavo_error *error);

/* Frees it and sets the handle to NULL. Takes NULL and a handle that is NULL. */
OCTAVO_API void octavo_detokenizer_destroy(octavo_detokenizer **detokenizer);

/* The next id. `text` receives the characters that are complete now, terminated, possibly none;
 * they live until the next call on this detokenizer. Allocates nothing.
 * Statuses: INVALID (a NULL, an id that does not exist: nothing changes). */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_detokenizer_feed(octavo_detokenizer *detokenizer,
                                                                   int32_t id, const char **text,
                                                                   size_t *length,
                                                                   octavo_error *error);

/* The end: U+FFFD when a character was cut off, else nothing. The detokenizer is as new afterwards.
 * The text, terminated, lives until the next call on this detokenizer. */
OCTAVO_API const char *octavo_detokenizer_finish(octavo_detokenizer *detokenizer, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
