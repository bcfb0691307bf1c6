/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/machine.h: times the loops of kernels/machine.h on some threads. Each figure is the best
 * of several short runs: neighbours on a shared machine only ever take away.
 */
#include "kernels/machine.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"

#include "octavo/machine.h"

#include <string.h>
#include <sys/resource.h>

/* Bytes that each thread reads: far more than a last-level cache's share. So many threads read so
 * much, more of them share it. */
enum { READ_BYTES = 256 << 20, FULL_THREADS = 16, REPEATS = 5, MOST_THREADS = 1024 };

typedef struct measurement {
    octavo_machine_kernels kernels;
    octavo_pool *pool;
    size_t read_bytes;
    uint8_t *buffer;  /* [n_threads * read_bytes] */
    uint8_t *scratch; /* [n_threads * OCTAVO_MACHINE_SCRATCH] */
    octavo_machine_peak_fn *peak;
    int64_t iterations;
    uint64_t sums[MOST_THREADS]; /* keeps the reads from being optimised away */
    double operations[MOST_THREADS];
} measurement;

static void touch_thread(void *arg, int thread, int n_threads) {
    measurement *m = arg;
    (void)n_threads;
    memset(m->buffer + (size_t)thread * m->read_bytes, 1, m->read_bytes);
    memset(m->scratch + (size_t)thread * OCTAVO_MACHINE_SCRATCH, 0, OCTAVO_MACHINE_SCRATCH);
}

static void read_thread(void *arg, int thread, int n_threads) {
    measurement *m = arg;
    (void)n_threads;
    m->sums[thread] += m->kernels.read(m->buffer + (size_t)thread * m->read_bytes, m->read_bytes);
}

static void peak_thread(void *arg, int thread, int n_threads) {
    measurement *m = arg;
    (void)n_threads;
    m->operations[thread] =
        m->peak(m->iterations, m->scratch + (size_t)thread * OCTAVO_MACHINE_SCRATCH);
}

static void empty_thread(void *arg, int thread, int n_threads) {
    (void)arg;
    (void)thread;
    (void)n_threads;
}

static double time_run(measurement *m, octavo_pool_task *task) {
    int64_t start = octavo_clock_ns();
    octavo_pool_run(m->pool, task, m);
    return (double)(octavo_clock_ns() - start) * 1e-9;
}

/* The best of runs that fill `seconds`, at least REPEATS of them. */
static double best_run(measurement *m, octavo_pool_task *task, double seconds) {
    double best = time_run(m, task), spent = best;
    for (int i = 1; i < REPEATS || spent < seconds; i++) {
        double now = time_run(m, task);
        spent += now;
        if (now < best) best = now;
    }
    return best;
}

/* 10^9 operations a second of all threads. */
static double measure_peak(measurement *m, octavo_machine_peak_fn *peak, double seconds) {
    m->peak = peak;
    m->iterations = 1000;
    double once = 0.0;
    for (; once < 0.002 && m->iterations < INT64_C(1) << 40; m->iterations *= 2)
        once = time_run(m, peak_thread);
    double best = best_run(m, peak_thread, seconds), operations = 0.0;
    for (int i = 0; i < octavo_pool_threads(m->pool); i++)
        operations += m->operations[i];
    return operations / best * 1e-9;
}

/* In about `seconds`: half of them for reading. */
static octavo_machine_limits measure(measurement *m, double seconds) {
    int threads = octavo_pool_threads(m->pool);
    octavo_machine_limits limits = {.threads = threads};
    octavo_pool_run(m->pool, touch_thread, m);
    const double bytes = (double)threads * (double)m->read_bytes;
    limits.read_gbps = bytes / best_run(m, read_thread, seconds / 2) * 1e-9;
    limits.f32_gflops = measure_peak(m, m->kernels.f32, seconds / 8);
    limits.bf16_gflops = measure_peak(m, m->kernels.bf16, seconds / 8);
    limits.int8_gops = measure_peak(m, m->kernels.int8, seconds / 8);
    limits.fork_join_seconds = best_run(m, empty_thread, seconds / 16);
    return limits;
}

static octavo_status measure_threads(measurement *m, int threads, double seconds,
                                     octavo_machine_limits *limits, octavo_error *error) {
    octavo_status status = octavo_pool_create(&m->pool, threads, true, error);
    if (status) return status;
    m->read_bytes = READ_BYTES;
    if (threads > FULL_THREADS)
        m->read_bytes = READ_BYTES / (size_t)threads * FULL_THREADS / OCTAVO_ALIGN * OCTAVO_ALIGN;
    m->buffer = octavo_alloc_aligned((size_t)threads * m->read_bytes);
    m->scratch = octavo_alloc_aligned((size_t)threads * OCTAVO_MACHINE_SCRATCH);
    if (m->buffer && m->scratch)
        *limits = measure(m, seconds);
    else
        status = octavo_fail_memory(error, "buffer to read", (uint64_t)threads * m->read_bytes);
    octavo_free_aligned(m->buffer);
    octavo_free_aligned(m->scratch);
    octavo_pool_destroy(&m->pool);
    return status;
}

octavo_status octavo_machine_measure(int threads, const char *isa, double seconds,
                                     octavo_machine_limits *limits, octavo_error *error) {
    octavo_cpu_flags flags;
    octavo_status status = octavo_cpu_select(isa, &flags, error);
    if (status) return status;
    if (threads < 0 || threads > MOST_THREADS)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "threads (%d): out of range; give 1 to %d, or 0 for all cores", threads,
                           MOST_THREADS);
    if (threads == 0) threads = octavo_cpu_cores();
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    measurement *m = octavo_alloc_zero(1, sizeof *m);
    if (!m) return octavo_fail_memory(error, "measurement", sizeof *m);
    octavo_machine_kernels_init(&m->kernels, flags);
    status = measure_threads(m, threads, seconds > 0.0 ? seconds : 2.0, limits, error);
    octavo_free(m);
    return status;
}

unsigned long long octavo_machine_peak_rss(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (unsigned long long)usage.ru_maxrss * 1024u;
}

int octavo_machine_cores(void) {
    return octavo_cpu_cores();
}
