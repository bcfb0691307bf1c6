/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel tester: compares every version of every kernel with its scalar version and a
 * double-precision oracle, and times it. It climbs the levels of the machine and tests only
 * functions that it has not met yet.
 *
 * To add a client, write check_FAMILY.c and add it to the table in check_main.c:
 *
 *     typedef struct pair { const octavo_x_kernels *scalar, *level; } pair;
 *
 *     static void check_add(tester *t, const void *arg) {
 *         const pair *k = arg;
 *         for (int64_t n = 0; n < 70; n++) {
 *             float *x = tester_buffer(t, "x", n * sizeof(float), sizeof(float));
 *             float *want = ..., *got = ...;
 *             tester_fill_f32(t, x, n, TESTER_FILL_NORMAL);
 *             tester_seal(t, x);               // from here on a write to x is a crash
 *             k->scalar->add(want, x, x, n);
 *             k->level->add(got, x, x, n);     // a fault in here is caught and named
 *             tester_equal_f32(t, "out", got, want, n);
 *             tester_release(t);               // checks the padding, frees all buffers
 *         }
 *         ... larger buffers ...
 *         for (tester_bench(t, "n=4096", &(tester_work){.bytes = ..., .ops = ...}); tester_run(t);)
 *             k->level->add(got, x, x, 4096);
 *     }
 *
 *     void check_x(tester *t) {
 *         octavo_x_kernels scalar, level;
 *         octavo_x_kernels_init(&scalar, 0);
 *         octavo_x_kernels_init(&level, tester_flags(t));
 *         pair k = {&scalar, &level};
 *         tester_check(t, "add", (tester_function *)level.add, check_add, &k);
 *     }
 *
 * A check runs at every level that brings a new function for the name, the scalar level first;
 * there `level` is the scalar version and what counts is the oracle. Each check runs twice: with
 * buffers that end, and with buffers that begin, at a page that may not be touched. A check that
 * fails once is over: tester_fail and everything that compares does not return from a failure.
 */
#ifndef OCTAVO_TESTS_KERNELS_TESTER_H
#define OCTAVO_TESTS_KERNELS_TESTER_H

#include "base/compiler.h"
#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tester tester;
typedef void tester_function(void);

typedef struct tester_client {
    const char *name; /* the family: "vector" */
    void (*run)(tester *t);
} tester_client;

/* The program. Exit status 0 passed, 1 failed, 2 usage, 77 nothing to test on this machine. */
int tester_main(int argc, char **argv, const tester_client *clients, int n_clients);

/* Flags of the level that is tested now; 0 is scalar. */
octavo_cpu_flags tester_flags(const tester *t);

/* Runs `check` if `function` is new for this name (NULL: new at every level) and the filter lets it
 * pass. `name` is copied. `arg` goes to the check. */
void tester_check(tester *t, const char *name, tester_function *function,
                  void (*check)(tester *t, const void *arg), const void *arg);

/* --- random numbers: the same for a name and a seed, whatever else runs --- */

uint32_t tester_random(tester *t);
int64_t tester_between(tester *t, int64_t low, int64_t high); /* both included */
float tester_uniform(tester *t, float low, float high);
float tester_normal(tester *t); /* mean 0, deviation 1, magnitude at most 6 */

typedef enum tester_fill {
    TESTER_FILL_NORMAL,    /* what activations look like */
    TESTER_FILL_WIDE,      /* random signs and exponents, 2^-60 .. 2^60 */
    TESTER_FILL_ZERO,      /* zeros of both signs */
    TESTER_FILL_SPARSE,    /* mostly zeros, some normal */
    TESTER_FILL_DENORMAL,  /* below 2^-126, both signs */
    TESTER_FILL_HUGE,      /* 2^110 .. 2^127, both signs */
    TESTER_FILL_ALTERNATE, /* the same magnitude with alternating sign: sums cancel */
    TESTER_FILL_OUTLIER,   /* normal, one value in sixteen a thousand times larger */
    TESTER_FILL_FINITE,    /* how many fills above: all finite */
    TESTER_FILL_NONFINITE = TESTER_FILL_FINITE, /* normal with some NaN and infinities */
} tester_fill;

void tester_fill_f32(tester *t, float *x, int64_t n, tester_fill fill);
const char *tester_fill_name(tester_fill fill);

/* --- buffers --- */

/* `bytes` bytes, all 0xff (as floats: NaN), flush with a forbidden page at its end (or beginning,
 * in the second run). align: a power of two up to 4096; where it leaves a gap to the forbidden
 * page, the gap is padding that is checked. Lives until tester_release or the end of the check.
 * `name` is for messages, a literal. A size of 0 gives a pointer that may not be read. */
void *tester_buffer(tester *t, const char *name, size_t bytes, size_t align);
/* Forbids writing to a buffer. */
void tester_seal(tester *t, void *buffer);
/* Checks the padding of all buffers and frees them. */
void tester_release(tester *t);

/* --- verdicts; none returns after a failure --- */

/* Text for messages about what runs now ("n=17 fill=huge"); replaced by the next call. */
void tester_context(tester *t, const char *format, ...) OCTAVO_PRINTF(2, 3);
void tester_fail(tester *t, const char *format, ...) OCTAVO_PRINTF(2, 3);
/* Bitwise equality; any NaN equals any NaN. */
void tester_equal_f32(tester *t, const char *what, const float *got, const float *want, int64_t n);
void tester_equal_bytes(tester *t, const char *what, const void *got, const void *want,
                        size_t bytes);
/* |got[i] - want[i]| <= bound[i]. A NaN must meet a NaN and an infinity the same infinity, except
 * that infinity is right where the bound reaches past the largest float. */
void tester_near_f32(tester *t, const char *what, const float *got, const double *want,
                     const double *bound, int64_t n);

/* --- benchmark; without --bench the loop body never runs --- */

typedef enum tester_peak {
    TESTER_PEAK_F32,
    TESTER_PEAK_BF16,
    TESTER_PEAK_INT8,
} tester_peak;

typedef struct tester_work {
    double bytes; /* that a call moves, each byte once */
    double ops;   /* that a call does; a multiply-add is two */
    tester_peak peak;
} tester_work;

/* Names what is timed and how much work a call is; then `while (tester_run(t)) call`. */
void tester_bench(tester *t, const char *label, const tester_work *work);
bool tester_run(tester *t);

#endif
