/* SPDX-License-Identifier: Apache-2.0
 *
 * Phase 3: rows whose splits were computed by several items. Splits are folded in ascending order,
 * exactly as one item that has them all does it.
 */
#include "attention/internal.h"
#include "base/thread.h"

static void join_row(const octavo_attention_plan *plan, const octavo_attention_kernels *kernels,
                     const octavo_attention_op *op, void *workspace,
                     const octavo_attention_join *join, int32_t head) {
    const octavo_attention_limits *limits = &plan->limits;
    const octavo_attention_heads *heads = &limits->heads;
    const attention_range seen = attention_visible(&plan->batch, join->seq, join->token, &op->mask);
    const int64_t first = seen.begin / OCTAVO_KV_SPLIT, last = (seen.end - 1) / OCTAVO_KV_SPLIT;
    float *total = octavo_attention_part(limits, workspace, join, first, head);
    for (int64_t split = first + 1; split <= last; split++) {
        const float *part = octavo_attention_part(limits, workspace, join, split, head);
        kernels->merge(total + OCTAVO_ATTENTION_PART_HEAD, &total[0], &total[1],
                       part + OCTAVO_ATTENTION_PART_HEAD, part[0], part[1],
                       octavo_attention_width(heads));
    }
    const int64_t row = plan->batch.query_start_loc[join->seq] + join->token;
    octavo_attention_store_output(kernels, op, heads, head, attention_output(op, row, head),
                                  total + OCTAVO_ATTENTION_PART_HEAD, total[0], total[1]);
}

void octavo_attention_merge(octavo_attention_plan *plan, const octavo_attention_kernels *kernels,
                            const octavo_attention_op *op, void *workspace, int thread,
                            int n_threads) {
    const int32_t most = plan->limits.heads.n_q_heads;
    int64_t begin, end;
    octavo_pool_share(plan->n_joins * most, 1, thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const octavo_attention_join *join = &plan->joins[i / most];
        const int32_t head = (int32_t)(i % most);
        if (head < join->n_heads) join_row(plan, kernels, op, workspace, join, join->head + head);
    }
}
