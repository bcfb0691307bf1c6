/* SPDX-License-Identifier: Apache-2.0
 *
 * The tester's clock, and the roofline times are held against: both measured in this process, on
 * one thread.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "tester_state.h"

#include <math.h>
#include <string.h>

enum {
    MEASURE_NS = 30000000, /* for each number of the roofline */
    BATCH_NS = 40000,      /* a batch takes at least that long */
    BATCHES = 25,
    ENOUGH_NS = 200000000, /* or fewer batches, once they have taken that long */
};

/* --- roofline --- */

static double read_bandwidth(const octavo_machine_kernels *machine, const void *buffer,
                             size_t bytes, uint64_t *sink) {
    double best = 0.0;
    int64_t end = octavo_clock_ns() + MEASURE_NS;
    while (octavo_clock_ns() < end) {
        int repeats = (int)((1u << 20) / bytes) + 1;
        double start = octavo_clock_seconds();
        for (int i = 0; i < repeats; i++)
            *sink += machine->read(buffer, bytes);
        best = fmax(best, (double)bytes * repeats / (octavo_clock_seconds() - start));
    }
    return best;
}

static double peak_of(octavo_machine_peak_fn *loop, void *scratch) {
    double best = 0.0;
    int64_t end = octavo_clock_ns() + MEASURE_NS;
    while (octavo_clock_ns() < end) {
        double start = octavo_clock_seconds();
        double ops = loop(2000, scratch);
        best = fmax(best, ops / (octavo_clock_seconds() - start));
    }
    return best;
}

void tester_measure_roofline(tester *t, octavo_cpu_flags flags) {
    static const double footprints[TESTER_FOOTPRINTS] = {16e3, 200e3, 2e6, 256e6};
    octavo_machine_kernels machine;
    octavo_machine_kernels_init(&machine, flags);
    uint8_t *buffer = octavo_alloc_aligned(256u << 20);
    void *scratch = octavo_alloc_aligned(OCTAVO_MACHINE_SCRATCH);
    if (!buffer || !scratch) {
        fprintf(stderr, "check_kernels: no memory to measure the machine\n");
    } else {
        memset(buffer, 1, 256u << 20);
        memset(scratch, 0, OCTAVO_MACHINE_SCRATCH);
        uint64_t sink = 0;
        for (int i = 0; i < TESTER_FOOTPRINTS; i++) {
            size_t bytes = (size_t)footprints[i] / 64 * 64;
            t->roofline.footprint[i] = (double)bytes;
            t->roofline.read[i] = read_bandwidth(&machine, buffer, bytes, &sink);
        }
        t->roofline.peak[TESTER_PEAK_F32] = peak_of(machine.f32, scratch);
        t->roofline.peak[TESTER_PEAK_BF16] = peak_of(machine.bf16, scratch);
        t->roofline.peak[TESTER_PEAK_INT8] = peak_of(machine.int8, scratch);
        printf("one thread: reads %.0f GB/s (16 kB), %.0f (200 kB), %.0f (2 MB), %.1f (256 MB);"
               " %.0f GFLOP/s f32, %.0f bf16, %.0f GOP/s int8 (check %u)\n",
               t->roofline.read[0] * 1e-9, t->roofline.read[1] * 1e-9, t->roofline.read[2] * 1e-9,
               t->roofline.read[3] * 1e-9, t->roofline.peak[TESTER_PEAK_F32] * 1e-9,
               t->roofline.peak[TESTER_PEAK_BF16] * 1e-9, t->roofline.peak[TESTER_PEAK_INT8] * 1e-9,
               (unsigned)(sink & 0xffffu));
    }
    octavo_free_aligned(buffer);
    octavo_free_aligned(scratch);
}

/* Seconds that the machine needs at least for the work. */
static double roofline_seconds(const tester *t, const tester_work *work) {
    int level = 0;
    while (level < TESTER_FOOTPRINTS - 1 && work->bytes > t->roofline.footprint[level])
        level++;
    double read = t->roofline.read[level], peak = t->roofline.peak[work->peak];
    return fmax(read > 0.0 ? work->bytes / read : 0.0, peak > 0.0 ? work->ops / peak : 0.0);
}

/* --- timing --- */

void tester_bench(tester *t, const char *label, const tester_work *work) {
    tester_timing *timing = &t->timing;
    *timing = (tester_timing){.is_running = t->is_bench && !t->is_at_start, .work = *work};
    snprintf(timing->label, sizeof timing->label, "%s", label);
    timing->batch = 1;
    timing->best_ns = HUGE_VAL;
}

/* Time of the scalar version; remembers it when that is what runs now. 0 when unknown. */
static double baseline_ns(tester *t) {
    const tester_timing *timing = &t->timing;
    for (int i = 0; i < t->n_baselines; i++) {
        const tester_baseline *known = &t->baselines[i];
        if (strcmp(known->name, t->name) == 0 && strcmp(known->label, timing->label) == 0)
            return known->ns;
    }
    if (t->level->flags != 0 || t->n_baselines == TESTER_MAX_BENCHES) return 0.0;
    tester_baseline *fresh = &t->baselines[t->n_baselines++];
    memcpy(fresh->name, t->name, sizeof fresh->name);
    memcpy(fresh->label, timing->label, sizeof fresh->label);
    fresh->ns = timing->best_ns;
    return fresh->ns;
}

static void report(tester *t) {
    const tester_timing *timing = &t->timing;
    double ns = timing->best_ns, scalar_ns = baseline_ns(t);
    double bytes = timing->work.bytes / ns, ops = timing->work.ops / ns; /* giga per second */
    double share = roofline_seconds(t, &timing->work) * 1e9 / ns;
    printf("%-30s %-20s %-12s %11.1f ns %6.2fx %7.2f GB/s %8.2f GOP/s %4.0f%% of roofline\n",
           t->name, timing->label, t->level->name, ns, scalar_ns / ns, bytes, ops, share * 100.0);
    if (t->csv)
        fprintf(t->csv, "%s,%s,\"%s\",%.2f,%.3f,%.4g,%.4g,%.4f\n", t->name, t->level->name,
                timing->label, ns, scalar_ns / ns, bytes * 1e9, ops * 1e9, share);
}

/* Batches grow until one takes BATCH_NS; from then on the best of them counts: whatever disturbs a
 * run only ever makes it longer. */
static bool next_batch(tester *t) {
    tester_timing *timing = &t->timing;
    int64_t now = octavo_clock_ns();
    if (timing->started_ns != 0) {
        int64_t taken = now - timing->started_ns;
        if (taken < BATCH_NS && timing->n_batches == 0) {
            timing->batch *= 2;
        } else {
            timing->best_ns = fmin(timing->best_ns, (double)taken / (double)timing->batch);
            timing->total_ns += taken;
            if (++timing->n_batches == BATCHES || timing->total_ns > ENOUGH_NS) {
                timing->is_running = false;
                report(t);
                return false;
            }
        }
    }
    timing->left = timing->batch - 1;
    timing->started_ns = octavo_clock_ns();
    return true;
}

bool tester_run(tester *t) {
    if (!t->timing.is_running) return false;
    if (t->timing.left > 0) {
        t->timing.left--;
        return true;
    }
    return next_batch(t);
}
