/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OCTAVO_BASE_CLOCK_H
#define OCTAVO_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that never goes back. Any thread. */
int64_t octavo_clock_ns(void);
/* The same in seconds. */
double octavo_clock_seconds(void);

#endif
