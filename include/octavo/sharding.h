/* SPDX-License-Identifier: Apache-2.0
 *
 * How a model is split over ranks: a mesh, and rules that say of each named tensor which axes of
 * the mesh split which of its axes. docs/sharding.md tells what rules mean and what a file of them
 * looks like.
 */
#ifndef OCTAVO_SHARDING_H
#define OCTAVO_SHARDING_H

#include "octavo/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The axes of the mesh, outermost first: ranks are numbered with the last one fastest. */
typedef enum octavo_sharding_axis {
    OCTAVO_SHARDING_DATA,   /* "data": groups of ranks with sequences of their own */
    OCTAVO_SHARDING_EXPERT, /* "expert" */
    OCTAVO_SHARDING_SEQ,    /* "seq": tokens, or positions of the cache */
    OCTAVO_SHARDING_MODEL,  /* "model": heads, feed-forward width, vocabulary */
} octavo_sharding_axis;

/* Texts are read by octavo_sharding_create and not kept. */
typedef struct octavo_sharding_options {
    size_t size; /* sizeof(octavo_sharding_options) */
    /* NULL: the strategy of the rules file, else one rank. "data=1,expert=1,seq=1,model=4": axes
     * that are not named have degree 1, and one may be -1, as many as the devices leave over. Wins
     * over a strategy. */
    const char *mesh;
    /* 0: as many as the degrees make; where one is -1, the NUMA nodes of this machine. Else the
     * number of ranks that there are, which the degrees must make. */
    int devices;
    const char *rules; /* NULL: the default rules. Path of a JSON file */
    /* NULL: none. Overrides of the program, JSON objects {"TENSOR": RULE} as under the same keys of
     * a file: `all` for both phases, then the phase. In a phase that they say something of, nothing
     * of the file's overrides holds. */
    const char *all, *prefill, *generate;
} octavo_sharding_options;

/* Fills in the defaults named above: one rank, default rules. */
OCTAVO_API void octavo_sharding_options_init(octavo_sharding_options *options);

/* A mesh and rules. It never changes: any function but destroy may run on any thread. */
typedef struct octavo_sharding octavo_sharding;

/* On success the caller destroys *sharding; on failure it is untouched. Every message is one line
 * that names the culprit, where it stands, and what would be legal.
 *   OCTAVO_ERROR_INVALID    the options; the mesh; a rule that is none, or names no tensor or no
 * axis of the mesh, or an axis twice, or has not an entry for each of the tensor's axes; rules that
 * would add parts of norms of different tokens OCTAVO_ERROR_FORMAT     the file is no JSON, or has
 * a key twice, or is too large OCTAVO_ERROR_NOT_FOUND, OCTAVO_ERROR_IO, OCTAVO_ERROR_MEMORY What
 * depends on a model (whether its tensors can be cut so) is told when it is opened. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_sharding_create(
    const octavo_sharding_options *options, octavo_sharding **sharding, octavo_error *error);
OCTAVO_API void
octavo_sharding_destroy(octavo_sharding **sharding); /* takes NULL; nulls the handle */

/* The degree of an axis, at least 1 (0 for an axis that is none), and the product of all. */
OCTAVO_API int octavo_sharding_degree(const octavo_sharding *sharding, octavo_sharding_axis axis);
OCTAVO_API int octavo_sharding_ranks(const octavo_sharding *sharding);

/* How many processes a launcher (mpirun, srun) started for this job, by the environment: 1 without
 * one. *process (may be NULL): which of them this is. Any thread. */
OCTAVO_API int octavo_processes_launched(int *process);

typedef enum octavo_sharding_text {
    /* The overrides in force, one a line in the order in which they apply: phase, tensor, rule,
     * whether of the file or the program, and for which layers and blocks. */
    OCTAVO_SHARDING_OVERRIDES,
    /* What holds for every tensor in each phase, one a line; overrides are marked with a star, and
     * those for some layers or blocks follow. */
    OCTAVO_SHARDING_TABLE,
    /* The overrides in force as a rules file, JSON, without strategy and default_rules: read again
     * they hold for the same tensors. */
    OCTAVO_SHARDING_FILE,
} octavo_sharding_text;

/* The rules as text. *text is terminated, and the caller's, who gives it to
 * octavo_text_free (octavo/template.h). OCTAVO_ERROR_INVALID for a `which` that is none,
 * OCTAVO_ERROR_MEMORY. Any thread. */
OCTAVO_API OCTAVO_MUST_CHECK octavo_status octavo_sharding_dump(const octavo_sharding *sharding,
                                                                octavo_sharding_text which,
                                                                char **text, octavo_error *error);

#ifdef __cplusplus
}
#endif
#endif
