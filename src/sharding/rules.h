/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules: how each named tensor is split in each phase. A base table says it of every tensor that
 * programs have; overrides change it for the whole model, a range of layers or a kind of block.
 * Pure data, without a mesh: specs name mesh axes, whatever their degrees.
 *
 * Weights are placed once, by the rule of the generate phase. What the base table says of a weight
 * in prefill obliges nobody: there the weight is used where it lies. An override of a weight for
 * prefill is honoured by moving its data in that phase. The cache, too, lies as generate says.
 */
#ifndef OCTAVO_SHARDING_RULES_H
#define OCTAVO_SHARDING_RULES_H

#include "base/buffer.h"
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

enum { OCTAVO_NAMED_TENSORS = 66, OCTAVO_NEAREST = 3 };

const octavo_named_tensor *octavo_named_tensor_at(int index);
/* By exact name, or -1. And those whose names are spelt most alike, the nearest first. */
int octavo_named_tensor_find(const char *name);
void octavo_named_tensor_nearest(const char *name, int nearest[OCTAVO_NEAREST]);

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
    bool is_of_program;            /* not of the file */
    const octavo_rules_part *part; /* NULL: the whole model */
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

/* ---- files and objects (rules_json.c) ---- */

enum {
    OCTAVO_RULES_MAX_BYTES = 1 << 20, /* of a file or an object */
    OCTAVO_RULES_MAX_PARTS = 256,
    OCTAVO_RULES_MAX_LAYERS = 4096,
};

/* Adds what a file says: strategy, base table, overrides. On failure *rules may hold a part of it,
 * to be ended as ever. Errors name the file, the path to the culprit and what is legal:
 * OCTAVO_ERROR_NOT_FOUND, OCTAVO_ERROR_IO, OCTAVO_ERROR_MEMORY
 *   OCTAVO_ERROR_FORMAT   too large, no JSON, a key twice, no object
 *   OCTAVO_ERROR_INVALID  what stands in it */
OCTAVO_MUST_CHECK octavo_status octavo_rules_read(octavo_rules *rules, const char *path,
                                                  octavo_error *error);
/* The same from bytes in memory; `name` is in messages. */
OCTAVO_MUST_CHECK octavo_status octavo_rules_parse(octavo_rules *rules, const void *data,
                                                   size_t size, const char *name,
                                                   octavo_error *error);
/* Overrides of the program, JSON objects {"TENSOR": RULE}, each may be NULL. In a phase that they
 * say something of (`all` in both) they replace what the file says, parts included. */
OCTAVO_MUST_CHECK octavo_status octavo_rules_replace(octavo_rules *rules, const char *all,
                                                     const char *prefill, const char *generate,
                                                     octavo_error *error);

/* ---- checks and text (rules_check.c, rules_dump.c) ---- */

/* Layers that overrides name are layers of the model. OCTAVO_ERROR_INVALID */
OCTAVO_MUST_CHECK octavo_status octavo_rules_check_layers(const octavo_rules *rules, int n_layers,
                                                          octavo_error *error);
/* A norm's sum over D is not split over ranks that hold other tokens. OCTAVO_ERROR_INVALID */
OCTAVO_MUST_CHECK octavo_status octavo_rules_check_norms(const octavo_rules *rules,
                                                         const octavo_mesh *mesh,
                                                         octavo_error *error);

/* For people: the overrides in order; or what holds for each tensor of a model, overrides marked
 * with a star and those for parts of a model behind the others. */
void octavo_rules_dump_overrides(const octavo_rules *rules, octavo_buffer *out);
void octavo_rules_dump_table(const octavo_rules *rules, octavo_buffer *out);
/* The overrides in force as what stands under "logical_rules" in a file: read again they hold for
 * the same tensors. On one line. */
void octavo_rules_dump_json(const octavo_rules *rules, octavo_buffer *out);

#endif
