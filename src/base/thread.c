/* SPDX-License-Identifier: Apache-2.0
 *
 * The fork-join pool. Everybody waits at gates: a gate is a counter that its opener raises and
 * that waiters watch, first spinning, then yielding, then asleep. The pool has three: workers wait
 * at `start` for a run, the caller at `join` for the last worker, everybody at `middle` for the
 * last one to reach a barrier. The gates order memory: what a thread wrote before it opened one is
 * seen by all that passed it.
 */
#include "base/thread.h"

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"

#include <hwloc.h>
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
 * middle     gate                                       the last thread at a barrier opens it
 * running    atomic                                     the owner before start, each worker once
 * arrived    atomic                                     each thread once per barrier
 * the rest   set before the workers start, then only the owner touches what is not constant */
struct octavo_pool {
    gate start;
    gate join;
    gate middle;
    alignas(CACHE_LINE) atomic_int running;
    alignas(CACHE_LINE) atomic_int arrived;

    alignas(CACHE_LINE) octavo_pool_task *task;
    void *arg;
    int n_threads;
    int64_t spin_ns;
    int64_t awake_ns;

    worker *workers;                 /* [n_threads - 1] */
    int n_started;                   /* workers that run */
    hwloc_topology_t topology;       /* only while threads are pinned */
    hwloc_bitmap_t previous_binding; /* of the owner, to be restored */
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

void octavo_pool_barrier(octavo_pool *pool, int thread) {
    octavo_assert(thread >= 0 && thread < pool->n_threads);
    (void)thread;
    if (pool->n_threads == 1) return;
    /* The gate cannot open before this thread arrives, so its value is still that of this round. */
    unsigned round = atomic_load_explicit(&pool->middle.value, memory_order_relaxed);
    int before = atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel);
    if (before == pool->n_threads - 1) {
        atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
        gate_open(&pool->middle);
    } else {
        gate_wait(&pool->middle, round, pool);
    }
}

int octavo_pool_threads(const octavo_pool *pool) {
    return pool->n_threads;
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

/* The part of the index-th distinct core that lies within `allowed`, in *set. */
static bool core_set(hwloc_topology_t topology, hwloc_const_bitmap_t allowed, int index,
                     hwloc_bitmap_t set) {
    int seen = 0;
    for (hwloc_obj_t core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, NULL);
         core != NULL; core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) {
        if (!hwloc_bitmap_intersects(core->cpuset, allowed)) continue;
        if (seen++ == index) return hwloc_bitmap_and(set, core->cpuset, allowed) == 0;
    }
    return false;
}

static bool bind_threads(octavo_pool *pool, hwloc_bitmap_t set) {
    for (int i = 0; i < pool->n_threads; i++) {
        pthread_t thread = i == 0 ? pthread_self() : pool->workers[i - 1].thread;
        if (!core_set(pool->topology, pool->previous_binding, i, set) ||
            hwloc_set_thread_cpubind(pool->topology, thread, set, 0) != 0) {
            return false;
        }
    }
    return true;
}

/* Gives every thread the binding that the owner had before pinning. */
static void unbind_threads(octavo_pool *pool) {
    for (int i = 0; i <= pool->n_started; i++) {
        pthread_t thread = i == 0 ? pthread_self() : pool->workers[i - 1].thread;
        (void)hwloc_set_thread_cpubind(pool->topology, thread, pool->previous_binding, 0);
    }
}

static void forget_binding(octavo_pool *pool) {
    hwloc_bitmap_free(pool->previous_binding);
    if (pool->topology != NULL) hwloc_topology_destroy(pool->topology);
    pool->previous_binding = NULL;
    pool->topology = NULL;
}

/* Pins all threads or none. The cores are those of the owner's own binding, so that ranks that
 * are bound apart stay apart. */
static void pin_threads(octavo_pool *pool) {
    bool bound = false;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    pool->previous_binding = hwloc_bitmap_alloc();
    if (set == NULL || pool->previous_binding == NULL) goto done;
    if (hwloc_topology_init(&pool->topology) != 0) goto done;
    if (hwloc_topology_load(pool->topology) != 0) goto done;
    if (hwloc_get_cpubind(pool->topology, pool->previous_binding, HWLOC_CPUBIND_THREAD) != 0) {
        goto done;
    }
    bound = bind_threads(pool, set);
    if (!bound) unbind_threads(pool);

done:
    hwloc_bitmap_free(set);
    if (!bound) forget_binding(pool);
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

/* The three gates, all or none. */
static int gates_init(octavo_pool *pool) {
    gate *gates[] = {&pool->start, &pool->join, &pool->middle};
    for (size_t i = 0; i < OCTAVO_COUNT(gates); i++) {
        int code = gate_init(gates[i]);
        if (code == 0) continue;
        while (i-- > 0)
            gate_deinit(gates[i]);
        return code;
    }
    return 0;
}

octavo_status octavo_pool_create(octavo_pool **pool, int n_threads, bool pin, octavo_error *error) {
    if (pool == NULL || n_threads < 1 || n_threads > MOST_THREADS) {
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "thread pool (%d threads): not a possible number; use 1 to %d",
                           n_threads, MOST_THREADS);
    }
    octavo_pool *made = octavo_alloc_aligned(sizeof(*made));
    if (made == NULL) return octavo_fail_memory(error, "thread pool", sizeof(*made));
    memset(made, 0, sizeof(*made));
    made->n_threads = n_threads;
    bool crowded = n_threads > processors();
    made->spin_ns = crowded ? CROWDED_SPIN_NS : SPIN_NS;
    made->awake_ns = crowded ? CROWDED_AWAKE_NS : SPIN_NS + YIELD_NS;

    int code = gates_init(made);
    if (code != 0) {
        octavo_free_aligned(made);
        return octavo_fail(error, OCTAVO_ERROR_MEMORY, "thread pool (%d threads): %s", n_threads,
                           strerror(code));
    }
    made->workers = octavo_alloc_zero((size_t)n_threads, sizeof(*made->workers));
    if (made->workers == NULL) {
        octavo_pool_destroy(&made);
        return octavo_fail_memory(error, "thread pool", (size_t)n_threads * sizeof(worker));
    }
    code = start_workers(made);
    if (code != 0) {
        int started = made->n_started;
        octavo_pool_destroy(&made);
        return octavo_fail(error, OCTAVO_ERROR_MEMORY,
                           "thread pool (%d threads): only %d could be started: %s; "
                           "use fewer threads",
                           n_threads, started + 1, strerror(code));
    }
    if (pin) pin_threads(made);
    *pool = made;
    return OCTAVO_OK;
}

void octavo_pool_destroy(octavo_pool **pool) {
    if (pool == NULL || *pool == NULL) return;
    octavo_pool *old = *pool;
    old->task = NULL;
    gate_open(&old->start);
    for (int i = 0; i < old->n_started; i++) {
        (void)pthread_join(old->workers[i].thread, NULL);
    }
    if (old->topology != NULL) {
        (void)hwloc_set_cpubind(old->topology, old->previous_binding, HWLOC_CPUBIND_THREAD);
        forget_binding(old);
    }
    gate_deinit(&old->start);
    gate_deinit(&old->join);
    gate_deinit(&old->middle);
    octavo_free(old->workers);
    octavo_free_aligned(old);
    *pool = NULL;
}
