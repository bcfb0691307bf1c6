/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tester's own files share; clients see tester.h only.
 */
#ifndef OCTAVO_TESTS_KERNELS_TESTER_STATE_H
#define OCTAVO_TESTS_KERNELS_TESTER_STATE_H

#include "kernels/machine.h"
#include "tester.h"

#include <setjmp.h>
#include <stdio.h>

enum {
    TESTER_MAX_BUFFERS = 64,
    TESTER_MAX_FUNCTIONS = 1024,
    TESTER_MAX_BENCHES = 1024,
    TESTER_NAME = 64,
    TESTER_MESSAGE = 512,
};

typedef struct tester_block {
    const char *name;
    uint8_t *map; /* guard page, inner bytes, guard page */
    size_t inner; /* a multiple of pages */
    uint8_t *data;
    size_t bytes;
} tester_block;

/* A function that was met, under the name it was met. */
typedef struct tester_seen {
    char name[TESTER_NAME];
    tester_function *function;
} tester_seen;

/* The scalar version's time, for ratios. */
typedef struct tester_baseline {
    char name[TESTER_NAME];
    char label[TESTER_NAME];
    double ns;
} tester_baseline;

/* Read bandwidth is measured at several footprints: a kernel is held against what its own reaches.
 */
enum { TESTER_FOOTPRINTS = 4 };

typedef struct tester_roofline {
    double footprint[TESTER_FOOTPRINTS]; /* bytes, ascending */
    double read[TESTER_FOOTPRINTS];      /* bytes per second */
    double peak[3];                      /* operations per second, by tester_peak; 0 = absent */
} tester_roofline;

typedef struct tester_timing {
    bool is_running;
    char label[TESTER_NAME];
    tester_work work;
    int64_t batch;      /* calls between two looks at the clock */
    int64_t left;       /* of the batch */
    int n_batches;      /* measured so far */
    int64_t started_ns; /* the batch */
    int64_t total_ns;   /* of all measured batches */
    double best_ns;     /* of a call */
} tester_timing;

struct tester {
    /* what was asked for */
    const char *isa;    /* only this level's new functions, or NULL */
    const char *filter; /* glob on names, or NULL */
    uint64_t seed;
    bool is_listing, is_bench;
    FILE *csv;

    /* where it is */
    const char *client;
    const octavo_cpu_level *level;
    bool is_reporting; /* the level is one that was asked for */
    char name[TESTER_NAME];
    char context[TESTER_MESSAGE];
    char message[TESTER_MESSAGE]; /* of the failure */
    bool is_at_start;             /* buffers begin at the forbidden page */
    uint64_t random[2];
    sigjmp_buf escape;
    bool is_guarded; /* inside a check: faults and failures go to `escape` */

    tester_block blocks[TESTER_MAX_BUFFERS];
    int n_blocks;
    tester_seen seen[TESTER_MAX_FUNCTIONS];
    int n_seen;

    tester_timing timing;
    tester_roofline roofline;
    tester_baseline baselines[TESTER_MAX_BENCHES];
    int n_baselines;

    int n_passed, n_failed, n_skipped;
};

void tester_seed(tester *t);
/* Frees without checking. */
void tester_drop(tester *t);
/* Writes "; 4 bytes past the end of x" and the like to `text` when the address is near a buffer. */
void tester_describe_address(const tester *t, const void *address, char *text, size_t bytes);
void tester_measure_roofline(tester *t, octavo_cpu_flags flags);

#endif
