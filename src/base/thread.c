/* SPDX-License-Identifier: Apache-2.0
 *
 * The fork-join pool. Everybody waits at gates: a gate is a counter that its opener raises and
 * that waiters watch, first spinning, then yielding, then asleep. Workers wait at `start` for a
 * run, the caller at `join` for the last worker, those who meet at a barrier for the last of them.
 * The gates order memory: what a thread wrote before it opened one is seen by all that passed it.
 */
#include "base/thread.h"

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/placement.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define MOST_THREADS 1024
#define CACHE_LINE   64

/* How long a waiter stays awake: spinning alone, then yielding between looks. A step's ops follow
 * one another within some 50 microseconds; with more threads than processors whoever waits stands
 * in the way of the one it waits for. */
#define SPIN_NS          25000
#define YIELD_NS         75000
#define CROWDED_SPIN_NS  1000
#define CROWDED_AWAKE_NS 10000

/* field     guard                       writer
 * value     atomic, raised by openers   the one opener (see gate_open's callers)
 * sleepers  lock for writing; atomic    waiters about to sleep */
typedef struct gate {
    alignas(CACHE_LINE) atomic_uint value;
    atomic_uint sleepers;
    alignas(CACHE_LINE) pthread_mutex_t lock;
    pthread_cond_t opened;
} gate;

/* field    guard   writer
 * opened   gate    the last to arrive opens it
 * arrived  atomic  each thread once per round */
typedef struct meeting {
    gate opened;
    alignas(CACHE_LINE) atomic_int arrived;
} meeting;

typedef struct worker {
    octavo_pool *pool;
    pthread_t thread;
    int index; /* 1..n_threads-1 */
} worker;

/* What the threads share:
 * field      guard                                      writer
 * task, arg  published by start, idle again after join  the owner, between runs (NULL task = quit)
 * start      gate                                       the owner opens it
 * join       gate                                       the last worker of a run opens it
 * running    atomic                                     the owner before start, each worker once
 * all, teams meetings                                   whoever calls a barrier
 * the rest   set before the workers start, then only the owner touches what is not constant */
struct octavo_pool {
    gate start;
    gate join;
    meeting all;
    alignas(CACHE_LINE) atomic_int running;

    alignas(CACHE_LINE) octavo_pool_task *task;
    void *arg;
    int n_threads;
    int n_teams;
    int team_threads;
    int64_t spin_ns;
    int64_t awake_ns;

    meeting *teams;              /* [n_teams] */
    int n_made;                  /* of those, how many there are to be destroyed */
    worker *workers;             /* [n_threads - 1] */
    int n_started;               /* workers that run */
    octavo_placement *placement; /* only while threads are pinned */
};

static int gate_init(gate *g) {
    atomic_init(&g->value, 0);
    atomic_init(&g->sleepers, 0);
    int code = pthread_mutex_init(&g->lock, NULL);
    if (code != 0) return code;
    code = pthread_cond_init(&g->opened, NULL);
    if (code != 0) (void)pthread_mutex_destroy(&g->lock);
    return code;
}

static void gate_deinit(gate *g) {
    (void)pthread_cond_destroy(&g->opened);
    (void)pthread_mutex_destroy(&g->lock);
}

/* Sequentially consistent on both sides: either the opener sees the sleeper, or the sleeper, which
 * announces itself before its last look, sees the new value. */
static void gate_open(gate *g) {
    atomic_fetch_add(&g->value, 1);
    if (atomic_load(&g->sleepers) == 0) return;
    (void)pthread_mutex_lock(&g->lock);
    (void)pthread_cond_broadcast(&g->opened);
    (void)pthread_mutex_unlock(&g->lock);
}

static bool gate_is_open(gate *g, unsigned old) {
    return atomic_load_explicit(&g->value, memory_order_acquire) != old;
}

static void gate_sleep(gate *g, unsigned old) {
    (void)pthread_mutex_lock(&g->lock);
    atomic_fetch_add(&g->sleepers, 1);
    while (atomic_load(&g->value) == old) {
        (void)pthread_cond_wait(&g->opened, &g->lock);
    }
    atomic_fetch_sub(&g->sleepers, 1);
    (void)pthread_mutex_unlock(&g->lock);
}

/* Returns when the gate's value is no longer `old`. */
static void gate_wait(gate *g, unsigned old, const octavo_pool *pool) {
    enum { LOOKS_PER_CLOCK = 32 };
    int64_t begin = 0;
    int64_t waited = 0;
    while (waited < pool->awake_ns) {
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (gate_is_open(g, old)) return;
            octavo_cpu_relax();
        }
        if (waited >= pool->spin_ns) (void)sched_yield();
        int64_t now = octavo_clock_ns();
        if (begin == 0) begin = now;
        waited = now - begin;
    }
    gate_sleep(g, old);
}

static void *worker_main(void *arg) {
    const worker *self = arg;
    octavo_pool *pool = self->pool;
    for (unsigned run = 0;; run++) {
        gate_wait(&pool->start, run, pool);
        octavo_pool_task *task = pool->task;
        if (task == NULL) return NULL;
        task(pool->arg, self->index, pool->n_threads);
        if (atomic_fetch_sub_explicit(&pool->running, 1, memory_order_acq_rel) == 1) {
            gate_open(&pool->join);
        }
    }
}

void octavo_pool_run(octavo_pool *pool, octavo_pool_task *task, void *arg) {
    octavo_assert(task != NULL);
    if (pool->n_threads == 1) {
        task(arg, 0, 1);
        return;
    }
    unsigned joined = atomic_load_explicit(&pool->join.value, memory_order_relaxed);
    pool->task = task;
    pool->arg = arg;
    atomic_store_explicit(&pool->running, pool->n_threads - 1, memory_order_relaxed);
    gate_open(&pool->start);
    task(arg, 0, pool->n_threads);
    gate_wait(&pool->join, joined, pool);
}

static void meet(meeting *m, int n, const octavo_pool *pool) {
    if (n == 1) return;
    /* The gate cannot open before this thread arrives, so its value is still that of this round. */
    unsigned round = atomic_load_explicit(&m->opened.value, memory_order_relaxed);
    int before = atomic_fetch_add_explicit(&m->arrived, 1, memory_order_acq_rel);
    if (before == n - 1) {
        atomic_store_explicit(&m->arrived, 0, memory_order_relaxed);
        gate_open(&m->opened);
    } else {
        gate_wait(&m->opened, round, pool);
    }
}

void octavo_pool_barrier(octavo_pool *pool, int thread) {
    octavo_assert(thread >= 0 && thread < pool->n_threads);
    (void)thread;
    meet(&pool->all, pool->n_threads, pool);
}

void octavo_pool_team_barrier(octavo_pool *pool, int thread) {
    octavo_assert(thread >= 0 && thread < pool->n_threads);
    if (pool->team_threads == 1) return;
    meet(&pool->teams[thread / pool->team_threads], pool->team_threads, pool);
}

int octavo_pool_threads(const octavo_pool *pool) {
    return pool->n_threads;
}

int octavo_pool_teams(const octavo_pool *pool) {
    return pool->n_teams;
}

void octavo_pool_bind_memory(const octavo_pool *pool, int team, void *p, size_t bytes) {
    octavo_assert(team >= 0 && team < pool->n_teams);
    if (pool->placement != NULL) octavo_placement_bind_memory(pool->placement, team, p, bytes);
}

void octavo_pool_share(int64_t count, int64_t grain, int thread, int n_threads, int64_t *begin,
                       int64_t *end) {
    octavo_assert(count >= 0 && grain >= 1 && thread >= 0 && thread < n_threads);
    int64_t grains = count / grain + (count % grain != 0);
    int64_t each = grains / n_threads;
    int64_t longer = grains % n_threads; /* the first threads have one grain more */
    int64_t first = each * thread + (thread < longer ? thread : longer);
    int64_t last = first + each + (thread < longer);
    /* The last grain may be a part of one; multiplied out it might not even fit. */
    *begin = first < grains ? first * grain : count;
    *end = last < grains ? last * grain : count;
}

/* Processors that the scheduler may give to this thread at once. */
static int processors(void) {
    int quota = octavo_cgroup_cores("/proc/self/cgroup", "/sys/fs/cgroup");
#if defined(__linux__)
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        int allowed = CPU_COUNT(&set);
        return allowed < quota ? allowed : quota;
    }
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online < quota ? (int)online : quota;
}

/* Pins all threads or none. The cores are those of the owner's own binding, so that processes that
 * are bound apart stay apart. */
static void pin_threads(octavo_pool *pool) {
    pool->placement = octavo_placement_create(pool->n_teams, pool->team_threads);
    bool bound = pool->placement != NULL;
    for (int i = 0; bound && i < pool->n_threads; i++) {
        bound = octavo_placement_bind(pool->placement, i,
                                      i == 0 ? pthread_self() : pool->workers[i - 1].thread);
    }
    if (bound || pool->placement == NULL) return;
    octavo_placement_unbind(pool->placement, pthread_self());
    for (int i = 0; i < pool->n_started; i++) {
        octavo_placement_unbind(pool->placement, pool->workers[i].thread);
    }
    octavo_placement_destroy(&pool->placement);
}

/* Workers take no signals: those belong to the program's own threads. */
static int start_workers(octavo_pool *pool) {
    sigset_t all, previous;
    (void)sigfillset(&all);
    int code = pthread_sigmask(SIG_SETMASK, &all, &previous);
    if (code != 0) return code;
    while (code == 0 && pool->n_started < pool->n_threads - 1) {
        worker *w = &pool->workers[pool->n_started];
        w->pool = pool;
        w->index = pool->n_started + 1;
        code = pthread_create(&w->thread, NULL, worker_main, w);
        if (code == 0) pool->n_started++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &previous, NULL);
    return code;
}

static int meeting_init(meeting *m) {
    atomic_init(&m->arrived, 0);
    return gate_init(&m->opened);
}

/* The gates that every pool has, all or none. */
static int gates_init(octavo_pool *pool) {
    int code = gate_init(&pool->start);
    if (code != 0) return code;
    code = gate_init(&pool->join);
    if (code == 0) {
        code = meeting_init(&pool->all);
        if (code == 0) return 0;
        gate_deinit(&pool->join);
    }
    gate_deinit(&pool->start);
    return code;
}

/* Makes what depends on the number of threads, and starts them. */
static octavo_status fill_pool(octavo_pool *pool, octavo_error *error) {
    const size_t teams_bytes = (size_t)pool->n_teams * sizeof(*pool->teams);
    pool->teams = octavo_alloc_aligned(teams_bytes);
    if (pool->teams == NULL) return octavo_fail_memory(error, "thread pool", teams_bytes);
    int code = 0;
    while (code == 0 && pool->n_made < pool->n_teams) {
        code = meeting_init(&pool->teams[pool->n_made]);
        if (code == 0) pool->n_made++;
    }
    if (code != 0) {
        return octavo_fail(error, OCTAVO_ERROR_MEMORY, "thread pool (%d threads): %s",
                           pool->n_threads, strerror(code));
    }
    pool->workers = octavo_alloc_zero((size_t)pool->n_threads, sizeof(*pool->workers));
    if (pool->workers == NULL) {
        return octavo_fail_memory(error, "thread pool", (size_t)pool->n_threads * sizeof(worker));
    }
    code = start_workers(pool);
    if (code == 0) return OCTAVO_OK;
    return octavo_fail(error, OCTAVO_ERROR_MEMORY,
                       "thread pool (%d threads): only %d could be started: %s; use fewer threads",
                       pool->n_threads, pool->n_started + 1, strerror(code));
}

octavo_status octavo_pool_create_teams(octavo_pool **pool, int n_teams, int threads_per_team,
                                       bool pin, octavo_error *error) {
    if (pool == NULL || threads_per_team < 1 || n_teams < 1 ||
        threads_per_team > MOST_THREADS / n_teams) {
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "thread pool (%d x %d threads): not a possible number; use 1 to %d in "
                           "all",
                           n_teams, threads_per_team, MOST_THREADS);
    }
    octavo_pool *made = octavo_alloc_aligned(sizeof(*made));
    if (made == NULL) return octavo_fail_memory(error, "thread pool", sizeof(*made));
    memset(made, 0, sizeof(*made));
    made->n_teams = n_teams;
    made->team_threads = threads_per_team;
    made->n_threads = n_teams * threads_per_team;
    bool crowded = made->n_threads > processors();
    made->spin_ns = crowded ? CROWDED_SPIN_NS : SPIN_NS;
    made->awake_ns = crowded ? CROWDED_AWAKE_NS : SPIN_NS + YIELD_NS;

    int code = gates_init(made);
    if (code != 0) {
        int n_threads = made->n_threads;
        octavo_free_aligned(made);
        return octavo_fail(error, OCTAVO_ERROR_MEMORY, "thread pool (%d threads): %s", n_threads,
                           strerror(code));
    }
    octavo_status status = fill_pool(made, error);
    if (status != OCTAVO_OK) {
        octavo_pool_destroy(&made);
        return status;
    }
    if (pin) pin_threads(made);
    *pool = made;
    return OCTAVO_OK;
}

octavo_status octavo_pool_create(octavo_pool **pool, int n_threads, bool pin, octavo_error *error) {
    return octavo_pool_create_teams(pool, 1, n_threads, pin, error);
}

void octavo_pool_destroy(octavo_pool **pool) {
    if (pool == NULL || *pool == NULL) return;
    octavo_pool *old = *pool;
    old->task = NULL;
    gate_open(&old->start);
    for (int i = 0; i < old->n_started; i++) {
        (void)pthread_join(old->workers[i].thread, NULL);
    }
    if (old->placement != NULL) octavo_placement_unbind(old->placement, pthread_self());
    octavo_placement_destroy(&old->placement);
    gate_deinit(&old->start);
    gate_deinit(&old->join);
    gate_deinit(&old->all.opened);
    for (int i = 0; i < old->n_made; i++) {
        gate_deinit(&old->teams[i].opened);
    }
    octavo_free_aligned(old->teams);
    octavo_free(old->workers);
    octavo_free_aligned(old);
    *pool = NULL;
}
