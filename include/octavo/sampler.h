/* SPDX-License-Identifier: Apache-2.0
 *
 * From logits to the next id.
 *
 * Random numbers come from a counter-based generator keyed by the seed and the position of the
 * token, so what is drawn depends on neither the batch nor on what was drawn before.
 */
#ifndef OCTAVO_SAMPLER_H
#define OCTAVO_SAMPLER_H

#include "octavo/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Applied in this order: repeat penalty, temperature, top-k, top-p, min-p. */
typedef struct octavo_sampling {
    size_t size;       /* sizeof(octavo_sampling) */
    float temperature; /* 0: always the most likely id (greedy); the lowest id of equal ones */
    int top_k;         /* 0: off. Keeps the k most likely ids */
    float top_p;       /* 1: off. Keeps the fewest most likely ids whose probabilities reach p */
    float min_p;       /* 0: off. Drops ids under min_p times the most likely one's probability */
    float repeat_penalty; /* 1: off. Logits of ids in the last `repeat_window` are divided by it
                             when positive, multiplied when negative */
    int repeat_window;    /* 64 */
    uint64_t seed;        /* 0 */
} octavo_sampling;

/* Fills in the defaults named above: greedy. */
OCTAVO_API void octavo_sampling_init(octavo_sampling *sampling);

/* OCTAVO_ERROR_INVALID names a value that is not a number or out of its range. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_sampling_check(const octavo_sampling *sampling,
                                                                 octavo_error *error);

typedef struct octavo_sampler octavo_sampler;

/* A sampler for rows of `vocabulary` logits. The caller destroys it. Statuses: INVALID, MEMORY. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_sampler_create(const octavo_sampling *sampling,
                                                                 int32_t vocabulary,
                                                                 octavo_sampler **sampler,
                                                                 octavo_error *error);
OCTAVO_API void octavo_sampler_destroy(octavo_sampler **sampler); /* takes NULL; nulls the handle */

/* Draws the id that follows `history` [n_history], the ids so far, prompt included. `logits`
 * [vocabulary] is not changed. A row without any number above -inf gives the first id. Allocates
 * nothing. One thread at a time. */
OCTAVO_API int32_t octavo_sampler_next(octavo_sampler *sampler, const float *logits,
                                       const int32_t *history, size_t n_history);

/* The k most likely ids of a row, most likely first (equal ones: lower id first), and the natural
 * logarithms of their probabilities: ids [k], logprobs [k]. k at most vocabulary. Any thread. */
OCTAVO_API void octavo_logprobs_top(const float *logits, int32_t vocabulary, int k, int32_t *ids,
                                    float *logprobs);

/* The natural logarithm of one id's probability. Any thread. */
OCTAVO_API double octavo_logprob_of(const float *logits, int32_t vocabulary, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
