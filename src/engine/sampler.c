/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/sampler.h. Random numbers are Philox4x32-10 (Salmon et al., "Parallel random numbers: as
 * easy as 1, 2, 3", 2011), keyed by the seed, counted by the token's position.
 */
#include "octavo/sampler.h"

#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct candidate {
    int32_t id;
    float logit;
    float weight; /* exp(logit - largest logit), temperature applied */
} candidate;

struct octavo_sampler {
    octavo_sampling sampling;
    int32_t vocabulary;
    int32_t *seen; /* [vocabulary] call number in which the id was last in the window */
    int32_t call;
    candidate candidates[]; /* [vocabulary] */
};

void octavo_sampling_init(octavo_sampling *sampling) {
    *sampling = (octavo_sampling){
        .size = sizeof *sampling, .top_p = 1.0f, .repeat_penalty = 1.0f, .repeat_window = 64};
}

static octavo_status bad_value(octavo_error *error, const char *name, float value,
                               const char *legal) {
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       "sampling option %s (%g): out of range; give %s", name, (double)value,
                       legal);
}

octavo_status octavo_sampling_check(const octavo_sampling *s, octavo_error *error) {
    if (s->size != sizeof *s)
        return bad_value(error, "size", (float)s->size, "options filled by octavo_sampling_init");
    if (!(s->temperature >= 0.0f && s->temperature <= 100.0f))
        return bad_value(error, "temperature", s->temperature, "0 to 100");
    if (s->top_k < 0) return bad_value(error, "top_k", (float)s->top_k, "0 (off) or more");
    if (!(s->top_p > 0.0f && s->top_p <= 1.0f))
        return bad_value(error, "top_p", s->top_p, "more than 0, up to 1");
    if (!(s->min_p >= 0.0f && s->min_p <= 1.0f))
        return bad_value(error, "min_p", s->min_p, "0 to 1");
    if (!(s->repeat_penalty > 0.0f && s->repeat_penalty <= 100.0f))
        return bad_value(error, "repeat_penalty", s->repeat_penalty, "more than 0, up to 100");
    if (s->repeat_window < 0)
        return bad_value(error, "repeat_window", (float)s->repeat_window, "0 or more");
    return OCTAVO_OK;
}

octavo_status octavo_sampler_create(const octavo_sampling *sampling, int32_t vocabulary,
                                    octavo_sampler **out, octavo_error *error) {
    octavo_status status = octavo_sampling_check(sampling, error);
    if (status) return status;
    if (vocabulary < 1 || vocabulary > 1 << 24)
        return bad_value(error, "vocabulary", (float)vocabulary, "1 to 16777216");
    size_t bytes = sizeof(octavo_sampler) + (size_t)vocabulary * sizeof(candidate);
    octavo_sampler *sampler = octavo_alloc_zero(1, bytes);
    int32_t *seen = octavo_alloc_zero((size_t)vocabulary, sizeof *seen);
    if (!sampler || !seen) {
        octavo_free(sampler);
        octavo_free(seen);
        return octavo_fail_memory(error, "sampler", bytes);
    }
    sampler->sampling = *sampling;
    sampler->vocabulary = vocabulary;
    sampler->seen = seen;
    *out = sampler;
    return OCTAVO_OK;
}

void octavo_sampler_destroy(octavo_sampler **sampler) {
    if (!sampler || !*sampler) return;
    octavo_free((*sampler)->seen);
    octavo_free(*sampler);
    *sampler = NULL;
}

/* ---- random numbers ---- */

static double uniform(uint64_t seed, uint64_t position) {
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t x[4] = {(uint32_t)position, (uint32_t)(position >> 32), 0, 0};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xd2511f53u * x[0], b = (uint64_t)0xcd9e8d57u * x[2];
        uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b,
                         (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};
        memcpy(x, y, sizeof x);
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return (double)(((uint64_t)x[0] << 21) ^ (x[1] >> 11)) * 0x1p-53;
}

/* ---- candidates ---- */

static bool is_likelier(const candidate *a, const candidate *b) {
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

/* Restores the heap (least likely on top) below `i`. */
static void sift_down(candidate *heap, int32_t n, int32_t i) {
    candidate moving = heap[i];
    for (int32_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && is_likelier(&heap[child], &heap[child + 1])) child++;
        if (is_likelier(&heap[child], &moving)) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

/* Moves the k most likely of n to the front, most likely first: a heap of k, then emptied. */
static void select_top(candidate *c, int32_t n, int32_t k) {
    for (int32_t i = k / 2 - 1; i >= 0; i--)
        sift_down(c, k, i);
    for (int32_t i = k; i < n; i++) {
        if (!is_likelier(&c[i], &c[0])) continue;
        candidate swap = c[0];
        c[0] = c[i];
        c[i] = swap;
        sift_down(c, k, 0);
    }
    for (int32_t i = k - 1; i > 0; i--) {
        candidate least = c[0];
        c[0] = c[i];
        c[i] = least;
        sift_down(c, i, 0);
    }
}

static float penalised(const octavo_sampler *sampler, int32_t id, float logit) {
    const float penalty = sampler->sampling.repeat_penalty;
    if (penalty == 1.0f || sampler->seen[id] != sampler->call) return logit;
    return logit > 0.0f ? logit / penalty : logit * penalty;
}

static void mark_window(octavo_sampler *sampler, const int32_t *history, size_t n_history) {
    size_t window = (size_t)sampler->sampling.repeat_window;
    if (sampler->call == INT32_MAX) {
        memset(sampler->seen, 0, (size_t)sampler->vocabulary * sizeof *sampler->seen);
        sampler->call = 0;
    }
    sampler->call++;
    if (sampler->sampling.repeat_penalty == 1.0f) return;
    for (size_t i = n_history > window ? n_history - window : 0; i < n_history; i++)
        if (history[i] >= 0 && history[i] < sampler->vocabulary)
            sampler->seen[history[i]] = sampler->call;
}

/* Ids with a logit above -inf; NaN counts as none. */
static int32_t collect(octavo_sampler *sampler, const float *logits) {
    int32_t n = 0;
    for (int32_t id = 0; id < sampler->vocabulary; id++) {
        float logit = penalised(sampler, id, logits[id]);
        if (logit > -INFINITY) sampler->candidates[n++] = (candidate){.id = id, .logit = logit};
    }
    return n;
}

static int32_t most_likely(const octavo_sampler *sampler, const float *logits) {
    int32_t best = 0;
    float best_logit = -INFINITY;
    for (int32_t id = 0; id < sampler->vocabulary; id++) {
        float logit = penalised(sampler, id, logits[id]);
        if (logit > best_logit) {
            best = id;
            best_logit = logit;
        }
    }
    return best;
}

/* Weights of c[0..n), whose largest logit is `largest`; their sum. */
static double weigh(candidate *c, int32_t n, float largest, float temperature) {
    double sum = 0.0;
    for (int32_t i = 0; i < n; i++) {
        c[i].weight = c[i].logit == largest ? 1.0f : expf((c[i].logit - largest) / temperature);
        sum += (double)c[i].weight;
    }
    return sum;
}

/* Leading candidates (most likely first) that top-p and min-p keep. */
static int32_t keep_nucleus(const octavo_sampling *sampling, const candidate *c, int32_t n,
                            double sum) {
    double reached = 0.0;
    for (int32_t i = 0; i < n; i++) {
        if (c[i].weight < sampling->min_p) return i > 0 ? i : 1;
        reached += (double)c[i].weight;
        if (reached >= (double)sampling->top_p * sum) return i + 1;
    }
    return n;
}

/* Sorts as many of c[0..n) as top-p and min-p can need: those keep few, so few are tried first. */
static int32_t sort_nucleus(const octavo_sampling *sampling, candidate *c, int32_t n, double sum) {
    for (int32_t k = n < 128 ? n : 128;; k = k > n / 8 ? n : k * 8) {
        select_top(c, n, k);
        int32_t kept = keep_nucleus(sampling, c, k, sum);
        if (kept < k || k == n) return kept;
    }
}

int32_t octavo_sampler_next(octavo_sampler *sampler, const float *logits, const int32_t *history,
                            size_t n_history) {
    const octavo_sampling *sampling = &sampler->sampling;
    candidate *c = sampler->candidates;
    mark_window(sampler, history, n_history);
    if (sampling->temperature == 0.0f) return most_likely(sampler, logits);

    int32_t n = collect(sampler, logits);
    if (n == 0) return 0;
    if (sampling->top_k > 0 && sampling->top_k < n) {
        select_top(c, n, sampling->top_k);
        n = sampling->top_k;
    }
    float largest = c[0].logit;
    for (int32_t i = 1; i < n; i++)
        if (c[i].logit > largest) largest = c[i].logit;
    double sum = weigh(c, n, largest, sampling->temperature);
    if (sampling->top_p < 1.0f || sampling->min_p > 0.0f) {
        n = sort_nucleus(sampling, c, n, sum);
        sum = 0.0;
        for (int32_t i = 0; i < n; i++)
            sum += (double)c[i].weight;
    }
    double target = uniform(sampling->seed, n_history) * sum, reached = 0.0;
    for (int32_t i = 0; i < n; i++) {
        reached += (double)c[i].weight;
        if (reached > target) return c[i].id;
    }
    return c[n - 1].id;
}

/* ---- logprobs ---- */

static double log_sum_exp(const float *logits, int32_t vocabulary) {
    float largest = -INFINITY;
    double sum = 0.0;
    for (int32_t id = 0; id < vocabulary; id++)
        if (logits[id] > largest) largest = logits[id];
    if (!isfinite(largest)) return (double)largest;
    for (int32_t id = 0; id < vocabulary; id++)
        sum += exp((double)logits[id] - (double)largest);
    return (double)largest + log(sum);
}

double octavo_logprob_of(const float *logits, int32_t vocabulary, int32_t id) {
    return (double)logits[id] - log_sum_exp(logits, vocabulary);
}

void octavo_logprobs_top(const float *logits, int32_t vocabulary, int k, int32_t *ids,
                         float *logprobs) {
    const double total = log_sum_exp(logits, vocabulary);
    int n = 0;
    for (int32_t id = 0; id < vocabulary; id++) {
        int place = n;
        if (n == k && !(logits[id] > logits[ids[n - 1]])) continue;
        while (place > 0 && logits[id] > logits[ids[place - 1]])
            place--;
        if (n < k) n++;
        memmove(ids + place + 1, ids + place, (size_t)(n - 1 - place) * sizeof *ids);
        ids[place] = id;
    }
    for (int i = 0; i < n; i++)
        logprobs[i] = (float)((double)logits[ids[i]] - total);
}
