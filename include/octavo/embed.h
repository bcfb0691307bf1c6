/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts to vectors: the hidden states of each text, made into one by a pooling. For encoders (BERT
 * and what follows it) and for models that write text alike: of those it is the state behind the
 * last norm. The vector of a text is the same bits whatever other texts are beside it and however
 * many threads run.
 *
 *     octavo_embedder *embedder = NULL;
 *     octavo_embedder_create(model, NULL, &embedder, &error);
 *     octavo_embedder_run(embedder, texts, n_texts, &error);
 *     octavo_embedder_destroy(&embedder);
 */
#ifndef OCTAVO_EMBED_H
#define OCTAVO_EMBED_H

#include "octavo/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octavo_embedder octavo_embedder;

typedef struct octavo_embedder_options {
    size_t size;            /* sizeof(octavo_embedder_options) */
    octavo_pooling pooling; /* AUTO: the model's own, else mean for encoders and last for others */
    bool normalize;         /* false: divide each vector by its length; one of length 0 stays */
} octavo_embedder_options;

/* Fills in the defaults named above. */
OCTAVO_API void octavo_embedder_options_init(octavo_embedder_options *options);

/* Makes an embedder for a model, which must outlive it; they have one owner together. It holds
 * sequences of the model, which are empty but during a run.
 *   options   NULL: the defaults; not kept
 *   embedder  receives the handle; the caller destroys it. Untouched on failure
 * Statuses: INVALID (an option out of range), UNSUPPORTED (POOLER without one; AUTO where the model
 * names a pooling that this version does not have), MEMORY. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status
octavo_embedder_create(octavo_model *model, const octavo_embedder_options *options,
                       octavo_embedder **embedder, octavo_error *error);

/* Frees it and sets the handle to NULL; takes NULL. */
OCTAVO_API void octavo_embedder_destroy(octavo_embedder **embedder);

typedef struct octavo_embed_text {
    const int32_t *ids;   /* [n_ids], at least 1, each in 0..vocabulary - 1 */
    const int32_t *types; /* [n_ids] token types; NULL: 0 */
    size_t n_ids;
    float *out; /* receives [width]; with POOLING_NONE [n_ids, width] */
} octavo_embed_text;

/* Embeds texts, as many in a step as fit. Allocates nothing. On failure some vectors may have been
 * written. Statuses: INVALID (a bad id or type, a text without ids), LIMIT (a text longer than the
 * context or than the cache has room for); the message names the text by its index. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_embedder_run(octavo_embedder *embedder,
                                                               const octavo_embed_text *texts,
                                                               size_t n_texts, octavo_error *error);

#ifdef __cplusplus
}
#endif
#endif
