/* SPDX-License-Identifier: Apache-2.0 */
#include "sharding/link.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

const size_t octavo_link_sizes[OCTAVO_LINK_SIZES] = {64, 4096, 65536, 524288, 2097152};

octavo_link octavo_link_fit(const double *bytes, const double *seconds, int n) {
    /* Weighted by 1/t^2, so that small messages count as much as large ones. */
    double w = 0, wx = 0, wt = 0, wxx = 0, wxt = 0;
    for (int i = 0; i < n; i++) {
        const double weight = 1 / (seconds[i] * seconds[i]);
        w += weight;
        wx += weight * bytes[i];
        wt += weight * seconds[i];
        wxx += weight * bytes[i] * bytes[i];
        wxt += weight * bytes[i] * seconds[i];
    }
    const double slope = (w * wxt - wx * wt) / (w * wxx - wx * wx);
    const double start = (wt - slope * wx) / w;
    return (octavo_link){.latency_s = start > 0 ? start : 0,
                         .bytes_per_s = slope > 0 ? 1 / slope : (double)INFINITY};
}

void octavo_link_insert(double *sorted, int n, double value) {
    for (; n > 0 && sorted[n - 1] > value; n--) {
        sorted[n] = sorted[n - 1];
    }
    sorted[n] = value;
}

/* What all threads see; `sorted` is thread 0's. */
typedef struct copies {
    octavo_pool *pool;
    char *from; /* [n_teams][most] */
    char *to;   /* [n_teams][most] */
    size_t most;
    size_t each; /* bytes from one team to another */
    int n_teams;
    double sorted[OCTAVO_LINK_ROUNDS];
} copies;

/* This thread's part of what its team fetches from each other one. */
static void copy_part(const copies *c, int thread, int team_threads) {
    const int team = thread / team_threads;
    int64_t begin = 0;
    int64_t end = 0;
    octavo_pool_share((int64_t)c->each, 64, thread % team_threads, team_threads, &begin, &end);
    for (int i = 1; i < c->n_teams; i++) {
        const int other = (team + i) % c->n_teams;
        const char *from = c->from + (size_t)other * c->most + (size_t)(i - 1) * c->each;
        char *to = c->to + (size_t)team * c->most + (size_t)(i - 1) * c->each;
        memcpy(to + begin, from + begin, (size_t)(end - begin));
    }
}

static void copy_task(void *arg, int thread, int n_threads) {
    copies *c = arg;
    const int team_threads = n_threads / c->n_teams;
    for (int round = -2; round < OCTAVO_LINK_ROUNDS; round++) {
        octavo_pool_barrier(c->pool, thread);
        const int64_t begin = octavo_clock_ns();
        copy_part(c, thread, team_threads);
        octavo_pool_barrier(c->pool, thread);
        const double seconds = (double)(octavo_clock_ns() - begin) * 1e-9;
        if (thread == 0 && round >= 0) {
            octavo_link_insert(c->sorted, round, seconds > 1e-9 ? seconds : 1e-9);
        }
    }
}

/* A rank's memory lies where the rank is. */
static void place(const copies *c) {
    for (int team = 0; team < c->n_teams; team++) {
        octavo_pool_bind_memory(c->pool, team, c->from + (size_t)team * c->most, c->most);
        octavo_pool_bind_memory(c->pool, team, c->to + (size_t)team * c->most, c->most);
    }
    memset(c->from, 1, (size_t)c->n_teams * c->most);
    memset(c->to, 2, (size_t)c->n_teams * c->most);
}

octavo_status octavo_link_measure_threads(octavo_pool *pool, octavo_link *link,
                                          octavo_error *error) {
    const int n = octavo_pool_teams(pool) - 1;
    if (n == 0) {
        *link = (octavo_link){.latency_s = 0, .bytes_per_s = (double)INFINITY};
        return OCTAVO_OK;
    }
    copies c = {.pool = pool, .n_teams = n + 1};
    c.most = octavo_align_up(octavo_link_sizes[OCTAVO_LINK_SIZES - 1] + (size_t)n, 4096);
    const size_t bytes = (size_t)c.n_teams * c.most;
    c.from = octavo_alloc_aligned(bytes);
    c.to = octavo_alloc_aligned(bytes);
    octavo_status status = OCTAVO_OK;
    if (c.from == NULL || c.to == NULL) {
        status = octavo_fail_memory(error, "measuring links", 2 * bytes);
    } else {
        double sent[OCTAVO_LINK_SIZES];
        double seconds[OCTAVO_LINK_SIZES];
        place(&c);
        for (int i = 0; i < OCTAVO_LINK_SIZES; i++) {
            c.each = octavo_link_sizes[i] / (size_t)n + 1;
            sent[i] = (double)c.each * n;
            octavo_pool_run(pool, copy_task, &c);
            seconds[i] = c.sorted[OCTAVO_LINK_ROUNDS / 2];
        }
        *link = octavo_link_fit(sent, seconds, OCTAVO_LINK_SIZES);
    }
    octavo_free_aligned(c.from);
    octavo_free_aligned(c.to);
    return status;
}
