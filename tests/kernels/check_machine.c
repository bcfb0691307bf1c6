/* SPDX-License-Identifier: Apache-2.0
 *
 * The measuring loops: the read must see every byte, the peaks must do what they count.
 */
#include "kernels/machine.h"
#include "tester.h"

#include <string.h>

typedef struct loops {
    const octavo_machine_kernels *scalar, *level;
    octavo_machine_peak_fn *peak;
} loops;

static void check_read(tester *t, const void *arg) {
    const loops *k = arg;
    for (size_t lines = 0; lines < 40; lines++) {
        size_t bytes = lines * 64;
        uint8_t *buffer = tester_buffer(t, "buffer", bytes, 64);
        uint64_t want = 0;
        for (size_t i = 0; i < bytes; i++) {
            buffer[i] = (uint8_t)tester_random(t);
            want += (uint64_t)buffer[i] << i % 8 * 8;
        }
        tester_seal(t, buffer);
        uint64_t got = k->level->read(buffer, bytes), scalar = k->scalar->read(buffer, bytes);
        if (got != want || scalar != want) tester_fail(t, "wrong sum of %zu bytes", bytes);
        tester_release(t);
    }
    enum { BYTES = 1 << 16 };
    uint8_t *buffer = tester_buffer(t, "buffer", BYTES, 64);
    volatile uint64_t sink = 0;
    for (tester_bench(t, "64 KiB", &(tester_work){.bytes = BYTES}); tester_run(t);)
        sink = k->level->read(buffer, BYTES);
    (void)sink;
}

/* Twice the iterations are twice the operations; and nothing beside the scratch is touched. */
static void check_peak(tester *t, const void *arg) {
    const loops *k = arg;
    uint8_t *scratch = tester_buffer(t, "scratch", OCTAVO_MACHINE_SCRATCH, 64);
    memset(scratch, 0, OCTAVO_MACHINE_SCRATCH);
    double once = k->peak(300, scratch), twice = k->peak(600, scratch);
    if (twice != 2.0 * once) tester_fail(t, "%g operations, then %g", once, twice);
}

void check_machine(tester *t);

void check_machine(tester *t) {
    octavo_machine_kernels scalar, level;
    octavo_machine_kernels_init(&scalar, 0);
    octavo_machine_kernels_init(&level, tester_flags(t));
    loops read = {&scalar, &level, NULL}, f32 = {&scalar, &level, level.f32};
    loops bf16 = {&scalar, &level, level.bf16}, int8 = {&scalar, &level, level.int8};
    tester_check(t, "read", (tester_function *)level.read, check_read, &read);
    tester_check(t, "f32", (tester_function *)level.f32, check_peak, &f32);
    tester_check(t, "bf16", (tester_function *)level.bf16, check_peak, &bf16);
    tester_check(t, "int8", (tester_function *)level.int8, check_peak, &int8);
}
