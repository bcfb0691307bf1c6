/* SPDX-License-Identifier: Apache-2.0
 *
 * What a way to split a model over ranks costs, before anything is loaded.
 */
#ifndef OCTAVO_PLAN_H
#define OCTAVO_PLAN_H

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The phases of a step: every sequence has exactly one new token (generate), or not (prefill). */
#define OCTAVO_PLAN_PREFILL  1
#define OCTAVO_PLAN_GENERATE 2

typedef struct octavo_plan_options {
    size_t size;       /* sizeof(octavo_plan_options) */
    const char *mesh;  /* "data=1,expert=1,seq=1,model=4"; one degree may be -1. NULL: the strategy
                          in `rules`, else all 1 */
    int devices;       /* ranks; 0: the product of the degrees */
    const char *rules; /* a JSON file of "sharding", as commands take it by --rules; NULL: none */
    const char *all, *prefill, *generate; /* JSON objects of tensor to rule, {"logits_tv": ["data",
                                             null]}. One that is not NULL replaces what the file
                                             says for that phase */
    int64_t tokens;                       /* 512: of a step, those of all data groups */
    int64_t context;    /* 0: the model's for the cache, and steps are of sequences of a prefill's
                           own tokens and of 1024 where each has one. Else how long sequences are */
    int phases;         /* both: OCTAVO_PLAN_PREFILL, OCTAVO_PLAN_GENERATE or their sum */
    const char *dtype;  /* "file", "f32" or "bf16": of weights; the model's own by default */
    bool logits_all;    /* false: logits of each sequence's last token only */
    double link_gbps;   /* 0: a stated default. GB/s that one rank sends */
    double memory_gbps; /* 0: a stated default. GB/s that one rank reads */
    int search;         /* 0: a plan; else so many of the best rules that a search finds */
} octavo_plan_options;

/* Fills in the defaults named above. */
OCTAVO_API void octavo_plan_options_init(octavo_plan_options *options);

/* Plans the model at `path` (a GGUF file, a Hugging Face folder or a config.json; only headers are
 * read) as one JSON document, which the caller frees with octavo_text_free (octavo/template.h):
 *   {"model": {"architecture", "layers", "width", "heads", "kv_heads", "experts", ...},
 *    "mesh": {"data", "expert", "seq", "model"}, "ranks", "tokens", "dtype", "link_gbps",
 *    "memory_gbps", "rules": the overrides in force, a text each,
 *    "tensors": [{"name", "kind", "phase", "shape", "spec", "shard_shape", "bytes_per_rank",
 *                 "cuts", "count", "layers"}],
 *    "memory_per_rank": {"weights", "cache", "activations"}, "warnings": [text],
 *    "prefill": PHASE, "generate": PHASE}
 *   PHASE: {"collectives": [{"op", "tensor", "layer", "axes", "group", "bytes", "wire_bytes",
 *                            "reason"}], "wire_bytes_per_rank",
 *           "time": {"compute_s", "wire_s", "total_s", "tokens_per_s"},
 *           "timeline": [{"op", "tensor", "layer", "start_s", "seconds", "kind"}]}
 * A phase that was not asked for is absent, and so is "phase" of weights and the cache. "spec" has
 * for each axis of the shape null, a mesh axis or an array of them, outermost first; "cuts" null or
 * the n + 1 boundaries of its n shards, in the order in which the spec numbers them. "shard_shape"
 * and "bytes_per_rank" are of one layer's tensor, on the rank that holds most of it;
 * "count" is how many alike there are, "memory_per_rank" of all layers. "layers" is a text such as
 * "0-29", or null outside of them, and so is "layer". "bytes" is the size of a collective's result
 * on one rank, "wire_bytes" what one rank sends. The timeline has the embedding, one layer of each
 * kind and the head; "kind" is "compute" or "collective".
 *
 * With `search`: {"search": [{"rules", "summary": {"memory_per_rank", "prefill", "generate"}}]},
 * the best first, each phase with "wire_bytes_per_rank" and "time", beside "model", "mesh", "ranks"
 * and what follows there up to "memory_gbps". These "rules" are what stands under
 * "logical_rules" in a file of rules, {"all": {TENSOR: RULE}, "prefill": {...}, "generate": {...}};
 * those given are among them, and no other speaks of their tensors. Statuses:
 *   INVALID      a bad option, mesh or rule
 *   FORMAT       a malformed file
 *   UNSUPPORTED  an architecture that cannot be run
 *   NOT_FOUND, IO, MEMORY
 * Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_plan(const char *path,
                                                       const octavo_plan_options *options,
                                                       char **json, octavo_error *error);

#ifdef __cplusplus
}
#endif
#endif
