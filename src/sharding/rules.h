/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules: how each named tensor is split in each phase. A base table says it of every tensor that
 * programs have; overrides change it for the whole model, a range of layers or a kind of block.
 * Pure data, without a mesh: specs name mesh axes, whatever their degrees.
 *
 * Weights are placed once, by the rule of the generate phase. What the base table says of a weight
 * in prefill obliges nobody: there the weight is used where it lies. An override of a weight for
 * prefill is honoured by moving its data in that phase.
 */
#ifndef OCTAVO_SHARDING_RULES_H
#define OCTAVO_SHARDING_RULES_H

#include "base/memory.h"
#include "sharding/spec.h"

typedef enum octavo_phase {
    OCTAVO_PHASE_PREFILL,
    OCTAVO_PHASE_GENERATE, /* steps in which every sequence has exactly one new token */
    OCTAVO_PHASES,
} octavo_phase;

/* Where in a model a tensor stands. Flags, for the table; lookups give one. */
typedef enum octavo_block_kind {
    OCTAVO_BLOCK_ANY = 0, /* in none: embedding, logits, sums between blocks */
    OCTAVO_BLOCK_ATTENTION = 1,
    OCTAVO_BLOCK_DENSE = 2, /* shared experts too */
    OCTAVO_BLOCK_MOE = 4,
} octavo_block_kind;

/* ---- the table (rules_table.c) ---- */

/* A tensor that rules can name. */
typedef struct octavo_named_tensor {
    const char *name;
    const char *axes; /* letters, as at the end of most names */
    bool is_weight;
    uint8_t blocks; /* those it can stand in, octavo_block_kind or-ed; 0: outside of layers only */
    const char *prefill, *generate; /* default rules */
} octavo_named_tensor;

enum { OCTAVO_NAMED_TENSORS = 66 };

const octavo_named_tensor *octavo_named_tensor_at(int index);
/* By exact name, or -1. And the one whose name is spelt most alike. */
int octavo_named_tensor_find(const char *name);
int octavo_named_tensor_nearest(const char *name);

/* ---- rules ---- */

typedef struct octavo_layer_range {
    int first, last;
} octavo_layer_range;

/* What an override holds for, beside tensor and phases. */
typedef struct octavo_rules_part {
    const octavo_layer_range *ranges; /* [n_ranges] */
    int n_ranges;                     /* 0: all layers, and what is outside of them */
    octavo_block_kind block;          /* ANY: all */
} octavo_rules_part;

typedef struct octavo_override {
    int tensor;                    /* index of the table */
    bool is_in[OCTAVO_PHASES];     /* the phases it holds for */
    const octavo_rules_part *part; /* NULL: the whole model */
    const char *source;            /* "all", "prefill", "generate", for people */
    octavo_spec spec;
} octavo_override;

typedef struct octavo_rules {
    octavo_spec base[OCTAVO_PHASES][OCTAVO_NAMED_TENSORS];
    octavo_override *overrides; /* [n_overrides], later ones win */
    int n_overrides, capacity;
    bool has_strategy;
    int64_t degrees[OCTAVO_MESH_AXES]; /* of the strategy, as given: -1 is to be inferred */
    octavo_arena arena;                /* parts */
} octavo_rules;

/* The base table and no overrides. To end with octavo_rules_deinit, which takes zeroed ones too. */
void octavo_rules_init(octavo_rules *rules);
void octavo_rules_deinit(octavo_rules *rules);

/* What holds for a tensor of the program: false, and *spec untouched, for a name that the table
 * does not have. layer: -1 outside of layers. kind: of the block it stands in, ANY outside of
 * blocks. Of a weight, GENERATE is its placement, and PREFILL the same unless an override for
 * prefill says otherwise. *is_override (may be NULL): the rule obliges, since someone asked for it.
 */
bool octavo_rules_find(const octavo_rules *rules, octavo_phase phase, const char *tensor, int layer,
                       octavo_block_kind kind, octavo_spec *spec, bool *is_override);

/* One more override, which wins over those before. */
OCTAVO_MUST_CHECK octavo_status octavo_rules_add(octavo_rules *rules,
                                                 const octavo_override *override,
                                                 octavo_error *error);

#endif
