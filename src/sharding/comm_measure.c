/* SPDX-License-Identifier: Apache-2.0
 *
 * What an exchange of all with all costs, as a line over the bytes that one process sends: the
 * median time at each of a few sizes, fitted so that the relative errors are least.
 */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "sharding/comm.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 15, SIZES = 5 };
static const size_t sizes[SIZES] = {64, 4096, 65536, 524288, 2097152}; /* of one process, in all */

/* Weighted by 1/t^2, so that small messages count as much as large ones. */
static octavo_link fit(const double *bytes, const double *seconds, int n) {
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

static void insert_sorted(double *sorted, int n, double value) {
    for (; n > 0 && sorted[n - 1] > value; n--) {
        sorted[n] = sorted[n - 1];
    }
    sorted[n] = value;
}

/* Messages with everybody else, of `each` bytes. */
static int fill(octavo_message *messages, const octavo_comm *c, char *data, size_t each) {
    int n = 0;
    for (int i = 0; i < octavo_comm_processes(c); i++) {
        if (i == octavo_comm_process(c)) continue;
        messages[n] = (octavo_message){i, data + (size_t)n * each, each};
        n++;
    }
    return n;
}

static octavo_status measure_size(octavo_comm *c, size_t each, char *data, octavo_message *messages,
                                  double *median, octavo_error *error) {
    double sorted[ROUNDS];
    const int n = octavo_comm_processes(c) - 1;
    octavo_message *receives = messages + n;
    (void)fill(messages, c, data, each);
    (void)fill(receives, c, data + (size_t)n * each, each);
    for (int round = -2; round < ROUNDS; round++) {
        const int64_t begin = octavo_clock_ns();
        octavo_status status = octavo_comm_exchange(c, messages, n, receives, n, error);
        if (status != OCTAVO_OK) return status;
        const double seconds = (double)(octavo_clock_ns() - begin) * 1e-9;
        if (round >= 0) insert_sorted(sorted, round, seconds > 1e-9 ? seconds : 1e-9);
    }
    *median = sorted[ROUNDS / 2];
    return OCTAVO_OK;
}

octavo_status octavo_comm_measure(octavo_comm *comm, octavo_link *link, octavo_error *error) {
    const int n = octavo_comm_processes(comm) - 1;
    octavo_link found = {.latency_s = 0, .bytes_per_s = (double)INFINITY};
    if (n == 0) {
        *link = found;
        return OCTAVO_OK;
    }
    const size_t each_most = sizes[SIZES - 1] / (size_t)n + 1;
    char *data = octavo_alloc_aligned(2 * (size_t)n * each_most);
    octavo_message *messages = octavo_alloc_zero(2 * (size_t)n, sizeof(*messages));
    octavo_status status = OCTAVO_OK;
    if (data == NULL || messages == NULL) {
        status = octavo_fail_memory(error, "measuring links", 2 * (size_t)n * each_most);
    } else {
        memset(data, 1, 2 * (size_t)n * each_most);
    }
    status = octavo_comm_agree(comm, status, error);
    double bytes[SIZES];
    double seconds[SIZES];
    for (int i = 0; status == OCTAVO_OK && i < SIZES; i++) {
        const size_t each = sizes[i] / (size_t)n + 1;
        bytes[i] = (double)each * n;
        status = measure_size(comm, each, data, messages, &seconds[i], error);
    }
    if (status == OCTAVO_OK) {
        found = fit(bytes, seconds, SIZES);
        status = octavo_comm_broadcast(comm, 0, &found, sizeof(found), error);
    }
    octavo_free(messages);
    octavo_free_aligned(data);
    if (status == OCTAVO_OK) *link = found;
    return status;
}
