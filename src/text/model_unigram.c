/* SPDX-License-Identifier: Apache-2.0
 *
 * Unigram: of all ways to cut a piece into tokens, the one whose scores have the greatest sum.
 * Found from left to right: for every place the best way to get there. Of equal ones the first
 * stays.
 */
#include "base/error.h"
#include "text/tokenizer_state.h"
#include "text/tokenizer_utf8.h"

#include <math.h>

/* The best way to a place in the piece. */
typedef struct octavo_lattice_node {
    double score;
    uint32_t begin; /* of the token that ends here */
    uint32_t next;  /* on the way back: where the next token ends */
    int32_t id;     /* the token; UNKNOWN or UNREACHED */
} octavo_lattice_node;

enum { UNREACHED = -2, UNKNOWN = -1 };

static octavo_status unigram_build(octavo_tokenizer *t, octavo_error *error) {
    for (int32_t id = 0; id < t->n_tokens; id++) {
        bool is_found = (t->flags[id] & OCTAVO_TOKEN_MERGES) != 0;
        if (!is_found || isinf(t->pipeline->scores[id])) continue;
        size_t length;
        const char *text = octavo_token_text(&t->keys, id, &length);
        if (length != 0 && !octavo_added_insert(&t->pipeline->trie, text, length, id))
            return octavo_fail_memory(error, "vocabulary", length);
    }
    return OCTAVO_OK;
}

static octavo_status reserve(octavo_pipeline_scratch *scratch, size_t n, octavo_error *error) {
    if (n <= scratch->n_nodes) return OCTAVO_OK;
    size_t bytes;
    octavo_lattice_node *nodes = NULL;
    if (octavo_size_mul(n, sizeof(*nodes), &bytes)) nodes = octavo_realloc(scratch->nodes, bytes);
    if (nodes == NULL) return octavo_fail_memory(error, "text", (uint64_t)n * sizeof(*nodes));
    scratch->nodes = nodes;
    scratch->n_nodes = n;
    return OCTAVO_OK;
}

static void offer(octavo_lattice_node *node, double score, size_t begin, int32_t id) {
    if (node->id != UNREACHED && !(score > node->score)) return;
    node->score = score;
    node->begin = (uint32_t)begin;
    node->id = id;
}

static double sum(const octavo_pipeline *p, double a, double b) {
    return p->sums_floats ? (double)(float)(a + b) : a + b;
}

/* Goes on from one place by every token that starts there. */
static void extend(const octavo_pipeline *p, octavo_lattice_node *nodes, const char *piece,
                   size_t length, size_t begin) {
    size_t character = octavo_utf8_size(piece[begin]);
    double so_far = nodes[begin].score;
    bool has_character = false;
    uint32_t node = 0;
    for (size_t at = begin; at < length;) {
        node = octavo_added_step(&p->trie, node, (uint8_t)piece[at++]);
        if (node == 0) break;
        int32_t id = p->trie.nodes[node].id;
        if (id < 0) continue;
        offer(&nodes[at], sum(p, so_far, p->scores[id]), begin, id);
        if (at - begin == character) has_character = true;
    }
    if (!has_character)
        offer(&nodes[begin + character], sum(p, so_far, p->unknown_score), begin, UNKNOWN);
}

/* A run of characters that are no tokens. */
static void emit_unknown(octavo_encoder *encoder, const char *text, size_t length) {
    const octavo_tokenizer *t = encoder->tokenizer;
    int32_t id = octavo_model_find(t, text, length);
    bool has_bytes = id < 0;
    for (size_t i = 0; i < length && has_bytes; i++)
        has_bytes = t->byte_ids[(unsigned char)text[i]] >= 0;
    if (has_bytes) {
        for (size_t i = 0; i < length; i++)
            octavo_encoder_emit(encoder, t->byte_ids[(unsigned char)text[i]]);
        return;
    }
    if (id < 0) id = t->unk;
    if (id >= 0) octavo_encoder_emit(encoder, id);
}

static octavo_status unigram_encode(octavo_encoder *encoder, const char *piece, size_t length,
                                    octavo_error *error) {
    const octavo_tokenizer *t = encoder->tokenizer;
    octavo_status status = reserve(&encoder->scratch, length + 1, error);
    if (status != OCTAVO_OK) return status;
    octavo_lattice_node *nodes = encoder->scratch.nodes;
    for (size_t at = 0; at <= length; at++)
        nodes[at] = (octavo_lattice_node){.id = UNREACHED};
    for (size_t at = 0; at < length; at += octavo_utf8_size(piece[at]))
        extend(t->pipeline, nodes, piece, length, at);

    /* the way back, and then forward along it */
    for (uint32_t at = (uint32_t)length; at > 0; at = nodes[at].begin)
        nodes[nodes[at].begin].next = at;
    for (size_t at = 0; at < length;) {
        size_t end = nodes[at].next;
        int32_t id = nodes[end].id;
        if (id == t->unk) id = UNKNOWN; /* its own spelling in the text */
        while (id == UNKNOWN && end < length) {
            int32_t more = nodes[nodes[end].next].id;
            if (more != UNKNOWN && more != t->unk) break;
            end = nodes[end].next;
        }
        if (id == UNKNOWN)
            emit_unknown(encoder, piece + at, end - at);
        else
            octavo_encoder_emit(encoder, id);
        at = end;
    }
    return OCTAVO_OK;
}

const octavo_piece_model octavo_model_unigram = {.build = unigram_build, .encode = unigram_encode};
