/* SPDX-License-Identifier: Apache-2.0
 *
 * What an exchange of all processes with all costs: the median time at each of a few sizes, and a
 * line through these.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "sharding/comm.h"

#include <math.h>
#include <string.h>

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
    double sorted[OCTAVO_LINK_ROUNDS];
    const int n = octavo_comm_processes(c) - 1;
    octavo_message *receives = messages + n;
    (void)fill(messages, c, data, each);
    (void)fill(receives, c, data + (size_t)n * each, each);
    for (int round = -2; round < OCTAVO_LINK_ROUNDS; round++) {
        const int64_t begin = octavo_clock_ns();
        octavo_status status = octavo_comm_exchange(c, messages, n, receives, n, error);
        if (status != OCTAVO_OK) return status;
        const double seconds = (double)(octavo_clock_ns() - begin) * 1e-9;
        if (round >= 0) octavo_link_insert(sorted, round, seconds > 1e-9 ? seconds : 1e-9);
    }
    *median = sorted[OCTAVO_LINK_ROUNDS / 2];
    return OCTAVO_OK;
}

octavo_status octavo_comm_measure(octavo_comm *comm, octavo_link *link, octavo_error *error) {
    const int n = octavo_comm_processes(comm) - 1;
    octavo_link found = {.latency_s = 0, .bytes_per_s = (double)INFINITY};
    if (n == 0) {
        *link = found;
        return OCTAVO_OK;
    }
    const size_t each_most = octavo_link_sizes[OCTAVO_LINK_SIZES - 1] / (size_t)n + 1;
    char *data = octavo_alloc_aligned(2 * (size_t)n * each_most);
    octavo_message *messages = octavo_alloc_zero(2 * (size_t)n, sizeof(*messages));
    octavo_status status = OCTAVO_OK;
    if (data == NULL || messages == NULL) {
        status = octavo_fail_memory(error, "measuring links", 2 * (size_t)n * each_most);
    } else {
        memset(data, 1, 2 * (size_t)n * each_most);
    }
    status = octavo_comm_agree(comm, status, error);
    double bytes[OCTAVO_LINK_SIZES];
    double seconds[OCTAVO_LINK_SIZES];
    for (int i = 0; status == OCTAVO_OK && i < OCTAVO_LINK_SIZES; i++) {
        const size_t each = octavo_link_sizes[i] / (size_t)n + 1;
        bytes[i] = (double)each * n;
        status = measure_size(comm, each, data, messages, &seconds[i], error);
    }
    if (status == OCTAVO_OK) {
        found = octavo_link_fit(bytes, seconds, OCTAVO_LINK_SIZES);
        status = octavo_comm_broadcast(comm, 0, &found, sizeof(found), error);
    }
    octavo_free(messages);
    octavo_free_aligned(data);
    if (status == OCTAVO_OK) *link = found;
    return status;
}
