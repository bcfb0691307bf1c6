/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a batch is read twice: once to check and count, once to keep.
 */
#include "cli/bench_batch.h"

#include "base/memory.h"
#include "cli/report.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_SEQUENCES = 65536 };

/* Decimal digits, 1..INT32_MAX; moves on behind them. */
static bool take_number(const char **text, int64_t *value) {
    const char *p = *text;
    int64_t sum = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        sum = sum * 10 + (*p - '0');
        if (sum > INT32_MAX) return false;
    }
    *text = p;
    *value = sum;
    return sum > 0;
}

/* "Q:KV" or "NxQ:KV". */
static bool take_group(const char **text, int64_t *n, octavo_bench_sequence *sequence) {
    int64_t first;
    *n = 1;
    if (!take_number(text, &first)) return false;
    if (**text == 'x') {
        *n = first;
        (*text)++;
        if (!take_number(text, &first)) return false;
    }
    sequence->q_len = first;
    if (**text != ':') return false;
    (*text)++;
    return take_number(text, &sequence->kv_len);
}

static int refuse(const char *text, const char *why) {
    return octavo_cli_usage("option --batch (%.*s): %s; give new tokens and context with them, "
                            "such as 1:4096,512:512, or 16x1:4096 for 16 alike",
                            (int)strcspn(text, ","), text, why);
}

/* Goes through the text; keeps the sequences where there is room for them, `sequences` not NULL. */
static int walk(const char *text, octavo_bench_sequence *sequences, size_t *n_sequences) {
    size_t total = 0;
    for (const char *p = text;; p++) {
        const char *group = p;
        octavo_bench_sequence sequence;
        int64_t n;
        if (!take_group(&p, &n, &sequence) || (*p && *p != ','))
            return refuse(group, "not Q:KV, two whole numbers from 1 to 2147483647");
        if (sequence.kv_len < sequence.q_len)
            return refuse(group, "a context shorter than its new tokens");
        if (n > MAX_SEQUENCES - (int64_t)total)
            return refuse(group, "more than 65536 sequences in all");
        for (int64_t i = 0; sequences && i < n; i++)
            sequences[total + (size_t)i] = sequence;
        total += (size_t)n;
        if (!*p) break;
    }
    *n_sequences = total;
    return -1;
}

int octavo_bench_batch_parse(const char *text, octavo_bench_batch *batch) {
    size_t n = 0;
    int status = walk(text, NULL, &n);
    if (status >= 0) return status;
    octavo_bench_sequence *sequences = octavo_alloc_zero(n, sizeof *sequences);
    if (!sequences) {
        octavo_cli_usage("batch (%zu sequences): out of memory; give fewer with --batch", n);
        return OCTAVO_EXIT_FAILED;
    }
    status = walk(text, sequences, &n);
    *batch = (octavo_bench_batch){sequences, n};
    return status;
}

void octavo_bench_batch_deinit(octavo_bench_batch *batch) {
    octavo_free(batch->sequences);
    *batch = (octavo_bench_batch){0};
}

/* The sum of first..last, both included. */
static double sum_of_range(int64_t first, int64_t last) {
    return last < first ? 0.0 : (double)(first + last) * (double)(last - first + 1) / 2.0;
}

octavo_bench_totals octavo_bench_batch_totals(const octavo_bench_batch *batch, int64_t window) {
    octavo_bench_totals totals = {0};
    for (size_t i = 0; i < batch->n; i++) {
        const int64_t q_len = batch->sequences[i].q_len, kv_len = batch->sequences[i].kv_len;
        const int64_t reach = window > 0 && window < kv_len ? window : kv_len;
        /* Query t sees min(first + t, reach) positions. The first `growing` see less than reach. */
        const int64_t first = kv_len - q_len + 1;
        const int64_t growing = reach > first ? reach - first : 0;
        totals.queries += q_len;
        totals.positions += kv_len;
        totals.visible += (double)(kv_len - (first > reach ? first - reach : 0));
        totals.pairs +=
            sum_of_range(first, first + growing - 1) + (double)(q_len - growing) * (double)reach;
    }
    return totals;
}
