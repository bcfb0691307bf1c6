/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's weights member by member: loads them whole or in parts, and finds a member of one load
 * in another.
 */
#ifndef OCTAVO_TESTS_MODEL_WEIGHTS_WALK_H
#define OCTAVO_TESTS_MODEL_WEIGHTS_WALK_H

#include "../unit.h"
#include "base/compiler.h"
#include "model/weights.h"

#include <string.h>

enum { WALK_MEMBERS = 2048 };

typedef struct walk_member {
    octavo_weight_member at;
    octavo_weight_part whole, part;
} walk_member;

/* A model and what is asked about its parts. */
typedef struct walk {
    const char *path;
    octavo_checkpoint checkpoint;
    octavo_model_config config;
    walk_member members[WALK_MEMBERS];
    int n;
    uint64_t done, total; /* of the last report */
    uint64_t random;
} walk;

static const size_t walk_layer_matrices[] = {
    offsetof(octavo_layer_weights, latent.q_a),    offsetof(octavo_layer_weights, latent.q_b),
    offsetof(octavo_layer_weights, latent.kv_a),   offsetof(octavo_layer_weights, latent.k_b),
    offsetof(octavo_layer_weights, latent.v_b),    offsetof(octavo_layer_weights, attn_q),
    offsetof(octavo_layer_weights, attn_k),        offsetof(octavo_layer_weights, attn_v),
    offsetof(octavo_layer_weights, attn_o),        offsetof(octavo_layer_weights, ffw_gate),
    offsetof(octavo_layer_weights, ffw_up),        offsetof(octavo_layer_weights, ffw_down),
    offsetof(octavo_layer_weights, router),        offsetof(octavo_layer_weights, expert_gate),
    offsetof(octavo_layer_weights, expert_up),     offsetof(octavo_layer_weights, expert_down),
    offsetof(octavo_layer_weights, shared_gate),   offsetof(octavo_layer_weights, shared_up),
    offsetof(octavo_layer_weights, shared_router), offsetof(octavo_layer_weights, shared_down),
};

static const size_t walk_model_matrices[] = {
    offsetof(octavo_model_weights, embed),     offsetof(octavo_model_weights, output),
    offsetof(octavo_model_weights, positions), offsetof(octavo_model_weights, types),
    offsetof(octavo_model_weights, pooler),
};

static inline void walk_must(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
}

static inline uint32_t walk_random(walk *w, uint64_t below) {
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((w->random >> 33) % below);
}

static inline bool walk_is_matrix(octavo_weight_member at) {
    const bool is_layer = at.layer >= 0;
    const size_t *list = is_layer ? walk_layer_matrices : walk_model_matrices;
    const size_t n =
        is_layer ? OCTAVO_COUNT(walk_layer_matrices) : OCTAVO_COUNT(walk_model_matrices);
    for (size_t i = 0; i < n; i++)
        if (list[i] == at.offset) return true;
    return false;
}

static inline const void *walk_find(const octavo_model_weights *weights, octavo_weight_member at) {
    if (at.layer < 0) return (const char *)weights + at.offset;
    return (const char *)&weights->layers[at.layer] + at.offset;
}

static inline const octavo_weight *walk_weight(const octavo_model_weights *weights,
                                               octavo_weight_member at) {
    return walk_find(weights, at);
}

static inline const float *walk_vector(const octavo_model_weights *weights,
                                       octavo_weight_member at) {
    return *(const float *const *)walk_find(weights, at);
}

static inline walk_member *walk_member_of(walk *w, octavo_weight_member at) {
    for (int i = 0; i < w->n; i++)
        if (w->members[i].at.layer == at.layer && w->members[i].at.offset == at.offset)
            return &w->members[i];
    return NULL;
}

/* ---- loading ---- */

static inline void walk_record(void *cookie, const octavo_weight_member *at,
                               octavo_weight_part *part) {
    walk *w = cookie;
    assert_null(walk_member_of(w, *at)); /* each is asked for once where nothing is counted first */
    assert_true(w->n < WALK_MEMBERS);
    w->members[w->n++] = (walk_member){*at, *part, *part};
}

static inline void walk_place(void *cookie, const octavo_weight_member *at,
                              octavo_weight_part *part) {
    const walk_member *member = walk_member_of(cookie, *at);
    assert_non_null(member);
    assert_memory_equal(&member->whole, part, sizeof *part);
    *part = member->part;
}

static inline int walk_progress(void *cookie, uint64_t done, uint64_t total) {
    walk *w = cookie;
    assert_true(done >= w->done && done <= total);
    assert_true(w->done == 0 || total == w->total);
    w->done = done;
    w->total = total;
    return 0;
}

static inline bool walk_open(walk *w, const char *path) {
    octavo_error error;
    const size_t length = strlen(path);
    const bool is_file = length > 5 && strcmp(path + length - 5, ".gguf") == 0;
    *w = (walk){.path = path, .random = 6};
    if ((is_file ? octavo_checkpoint_open_gguf
                 : octavo_checkpoint_open_folder)(path, &w->checkpoint, &error))
        return false;
    walk_must(octavo_config_load(&w->config, &w->checkpoint, &error), &error);
    return true;
}

static inline void walk_close(walk *w) {
    octavo_config_deinit(&w->config);
    octavo_checkpoint_close(&w->checkpoint);
}

/* All of it; and its members are found. */
static inline void walk_load_whole(walk *w, octavo_pool *pool, octavo_weights kind,
                                   octavo_model_weights *weights) {
    const octavo_weights_options whole = {.pool = pool, .weights = kind};
    const octavo_weights_options bind = {.weights = kind, .place = walk_record, .place_cookie = w};
    octavo_model_weights bound;
    octavo_error error;
    w->n = 0;
    walk_must(octavo_weights_load(&bound, &w->checkpoint, &w->config, &bind, &error), &error);
    octavo_weights_deinit(&bound);
    walk_must(octavo_weights_load(weights, &w->checkpoint, &w->config, &whole, &error), &error);
}

/* As the members' parts say. */
static inline octavo_status walk_load(walk *w, octavo_pool *pool, octavo_weights kind,
                                      octavo_model_weights *weights, octavo_error *error) {
    const octavo_weights_options options = {.pool = pool,
                                            .weights = kind,
                                            .progress = walk_progress,
                                            .cookie = w,
                                            .place = walk_place,
                                            .place_cookie = w};
    w->done = w->total = 0;
    return octavo_weights_load(weights, &w->checkpoint, &w->config, &options, error);
}

#endif
