/* SPDX-License-Identifier: Apache-2.0
 *
 * A session is a sequence that remembers which ids it was fed; an answer is what the model adds to
 * a prompt.
 */
#ifndef OCTAVO_CLI_ANSWER_H
#define OCTAVO_CLI_ANSWER_H

#include "cli/ids.h"
#include "cli/options.h"

#include "octavo/model.h"
#include "octavo/sampler.h"

#include <stdbool.h>

typedef struct octavo_session {
    octavo_model *model; /* not owned */
    octavo_model_facts facts;
    octavo_sequence *sequence;
    octavo_ids ids; /* fed so far: what the cache holds */
    float *logits;  /* [vocabulary] after the last of them */
    int64_t room;   /* most ids: the context, or what the cache holds if that is less */
} octavo_session;

OCTAVO_MUST_CHECK octavo_status octavo_session_init(octavo_session *session, octavo_model *model,
                                                    octavo_error *error);
void octavo_session_deinit(octavo_session *session);

typedef enum octavo_finish {
    OCTAVO_FINISH_STOP,      /* the model ended, or a stop text came */
    OCTAVO_FINISH_LENGTH,    /* max_tokens, or no room is left */
    OCTAVO_FINISH_CANCELLED, /* the caller asked, or the text could not be given away */
} octavo_finish;

/* "stop", "length", "cancelled" */
const char *octavo_finish_name(octavo_finish finish);

typedef struct octavo_answer_options {
    octavo_sampling sampling;
    int64_t max_tokens;         /* 0: as many as there is room for */
    const octavo_texts *stops;  /* may be NULL */
    int64_t logprobs;           /* -1: none; else how many alternatives */
    bool ignores_end;           /* go on after a token that ends answers */
    unsigned decode_flags;      /* OCTAVO_DECODE_... */
    const volatile int *cancel; /* may be NULL */
    /* Gets the text in parts, whole characters each; false stops. May be NULL. */
    bool (*emit)(void *cookie, const char *text, size_t length);
    void *cookie;
} octavo_answer_options;

/* Zero-initialised is empty. */
typedef struct octavo_answer {
    octavo_ids ids;         /* without the token that ended it */
    octavo_buffer text;     /* without the stop text */
    octavo_buffer logprobs; /* JSON objects, separated by commas */
    octavo_finish finish;
    const char *stop;                    /* the stop text, or NULL */
    size_t prompt_tokens, reused_tokens; /* of the prompt; of these, in the cache already */
    double prompt_s, generate_s;
} octavo_answer;

/* Brings the session to the prompt, keeping the beginning that it has already, and generates.
 * An answer that was cancelled is no failure. Statuses: LIMIT (the prompt does not fit), INVALID
 * (sampling), MEMORY, IO. On failure the answer holds what there is so far. */
OCTAVO_MUST_CHECK octavo_status octavo_session_answer(octavo_session *session,
                                                      const octavo_ids *prompt,
                                                      const octavo_answer_options *options,
                                                      octavo_answer *answer, octavo_error *error);
void octavo_answer_deinit(octavo_answer *answer);

#endif
