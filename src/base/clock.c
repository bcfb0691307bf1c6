/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

int64_t octavo_clock_ns(void) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double octavo_clock_seconds(void) {
    return (double)octavo_clock_ns() * 1e-9;
}
