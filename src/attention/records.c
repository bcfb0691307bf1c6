/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of splits that are dealt to ranks, and the rows that come of them. Splits are folded in
 * ascending order, whoever has them, exactly as one item that has them all does it.
 */
#include "attention/internal.h"
#include "base/memory.h"
#include "base/thread.h"

#include <string.h>

typedef octavo_attention_piece piece;
typedef octavo_attention_deal deal;

static const deal *deal_of(const octavo_attention_plan *plan, int32_t part, int64_t seq) {
    return plan->deals + part * (plan->limits.max_seqs + 1) + seq;
}

void octavo_attention_deal_splits(octavo_attention_plan *plan) {
    const octavo_attention_batch *batch = &plan->batch;
    octavo_attention_splits splits = plan->limits.splits;
    for (splits.part = 0; splits.part < splits.n_parts; splits.part++) {
        deal *d = plan->deals + splits.part * (plan->limits.max_seqs + 1);
        int64_t before = 0;
        for (int64_t i = 0; i < batch->n_seqs; i++) {
            const int64_t rows = attention_query_length(batch, i);
            attention_range own = {0, 0};
            if (rows > 0) own = attention_own_splits(&splits, attention_seen_splits(plan, i));
            d[i] = (deal){before, own.begin, own.end - own.begin};
            before += rows * d[i].n;
        }
        d[batch->n_seqs] = (deal){before, 0, 0};
    }
}

/* The sequence of a row, or the first one behind it: n_seqs if there is none. */
static int64_t find_sequence(const octavo_attention_batch *batch, int64_t row) {
    int64_t low = 0, high = batch->n_seqs;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (batch->query_start_loc[middle + 1] > row)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* A row, and its sequence as found. */
typedef struct place {
    int64_t seq;
    int64_t token; /* 0 for a row before the first sequence, too */
} place;

static place find_place(const octavo_attention_batch *batch, int64_t row) {
    place p = {.seq = find_sequence(batch, row)};
    if (p.seq < batch->n_seqs && row > batch->query_start_loc[p.seq])
        p.token = row - batch->query_start_loc[p.seq];
    return p;
}

/* (row, split) pairs of a part that are of rows before this one. */
static int64_t pairs_before(const octavo_attention_plan *plan, int32_t part, place p) {
    const deal *d = deal_of(plan, part, p.seq);
    return d->before + p.token * d->n;
}

static int64_t pairs_before_row(const octavo_attention_plan *plan, int32_t part, int64_t row) {
    return pairs_before(plan, part, find_place(&plan->batch, row));
}

size_t octavo_attention_record_bytes(const octavo_attention_heads *heads) {
    return (OCTAVO_ATTENTION_PART_HEAD + (size_t)octavo_attention_width(heads)) * sizeof(float);
}

size_t octavo_attention_records_bytes(const octavo_attention_limits *limits, int64_t most_seen) {
    const int64_t n_parts = limits->splits.n_parts;
    const int64_t seen = most_seen / OCTAVO_KV_SPLIT + (most_seen % OCTAVO_KV_SPLIT != 0);
    const size_t own = (size_t)(seen / n_parts + (seen % n_parts != 0));
    size_t bytes = octavo_attention_record_bytes(&limits->heads);
    if (!octavo_size_mul(bytes, (size_t)limits->heads.n_q_heads, &bytes) ||
        !octavo_size_mul(bytes, (size_t)limits->max_tokens, &bytes) ||
        !octavo_size_mul(bytes, own, &bytes))
        return 0;
    return bytes;
}

int64_t octavo_attention_piece_records(const octavo_attention_plan *plan, int32_t part,
                                       const piece *p) {
    return (pairs_before_row(plan, part, p->row_end) - pairs_before_row(plan, part, p->row_begin)) *
           (p->head_end - p->head_begin);
}

/* In a buffer that begins at so many pairs and has so many heads of each row. */
static int64_t record_index(const octavo_attention_plan *plan, int32_t part, int64_t first_pair,
                            int64_t n_heads, place p, int64_t head, int64_t split) {
    const deal *d = deal_of(plan, part, p.seq);
    const int64_t pairs = pairs_before(plan, part, p) - first_pair;
    return pairs * n_heads + head * d->n + split / plan->limits.splits.n_parts - d->first;
}

static int64_t record_of(const octavo_attention_plan *plan, int32_t part, const piece *held,
                         place p, int32_t head, int64_t split) {
    return record_index(plan, part, pairs_before_row(plan, part, held->row_begin),
                        held->head_end - held->head_begin, p, head - held->head_begin, split);
}

int64_t octavo_attention_record(const octavo_attention_plan *plan, int32_t part, const piece *held,
                                int64_t row, int32_t head, int64_t split) {
    return record_of(plan, part, held, find_place(&plan->batch, row), head, split);
}

float *octavo_attention_own_record(const octavo_attention_plan *plan, void *records, int64_t seq,
                                   int64_t token, int32_t head, int64_t split) {
    const octavo_attention_heads *heads = &plan->limits.heads;
    const int64_t i = record_index(plan, plan->limits.splits.part, 0, heads->n_q_heads,
                                   (place){seq, token}, head, split);
    return (void *)((uint8_t *)records + (size_t)i * octavo_attention_record_bytes(heads));
}

void octavo_attention_copy_records(const octavo_attention_plan *plan, int32_t part, const void *all,
                                   const piece *p, void *to) {
    const octavo_attention_heads *heads = &plan->limits.heads;
    const size_t bytes = octavo_attention_record_bytes(heads);
    const int64_t n_heads = p->head_end - p->head_begin;
    int64_t first = pairs_before_row(plan, part, p->row_begin);
    for (int64_t row = p->row_begin; row < p->row_end; row++) {
        const int64_t next = pairs_before_row(plan, part, row + 1), n = next - first;
        const size_t from = (size_t)(first * heads->n_q_heads + p->head_begin * n) * bytes;
        const size_t length = (size_t)(n * n_heads) * bytes;
        if (length > 0) memcpy(to, (const uint8_t *)all + from, length);
        to = (uint8_t *)to + length;
        first = next;
    }
}

/* --- merging --- */

typedef struct merge_job {
    const octavo_attention_plan *plan;
    const octavo_attention_kernels *kernels;
    const octavo_attention_op *op;
    const void *const *parts;
    const piece *held;
    size_t record_bytes;
} merge_job;

static const float *find_record(const merge_job *j, place p, int32_t head, int64_t split) {
    const int32_t part = (int32_t)(split % j->plan->limits.splits.n_parts);
    const int64_t i = record_of(j->plan, part, &j->held[part], p, head, split);
    return (const void *)((const uint8_t *)j->parts[part] + (size_t)i * j->record_bytes);
}

static void merge_row(const merge_job *j, place p, int32_t head, uint8_t *to) {
    enum { HEAD = OCTAVO_ATTENTION_PART_HEAD };
    const octavo_attention_heads *heads = &j->plan->limits.heads;
    const int64_t width = octavo_attention_width(heads);
    /* of a row that sees nothing; as long as a record */
    _Alignas(OCTAVO_ALIGN) float total[HEAD + OCTAVO_ATTENTION_MAX_DIM] = {0.0f, 1.0f};
    const attention_range seen = attention_visible(&j->plan->batch, p.seq, p.token, &j->op->mask);
    const int64_t first = seen.begin / OCTAVO_KV_SPLIT;
    const int64_t end = (seen.end + OCTAVO_KV_SPLIT - 1) / OCTAVO_KV_SPLIT;
    for (int64_t split = first; split < end; split++) {
        const float *record = find_record(j, p, head, split);
        if (split == first)
            memcpy(total, record, j->record_bytes);
        else
            j->kernels->merge(total + HEAD, &total[0], &total[1], record + HEAD, record[0],
                              record[1], width);
    }
    octavo_attention_store_output(j->kernels, j->op, heads, head, to, total + HEAD, total[0],
                                  total[1]);
}

void octavo_attention_merge_records(const octavo_attention_plan *plan,
                                    const octavo_attention_kernels *kernels,
                                    const octavo_attention_op *op, const void *const *parts,
                                    const piece *held, const piece *p, int thread, int n_threads) {
    const octavo_attention_batch *batch = &plan->batch;
    const octavo_attention_heads *heads = &plan->limits.heads;
    const merge_job job = {.plan = plan,
                           .kernels = kernels,
                           .op = op,
                           .parts = parts,
                           .held = held,
                           .record_bytes = octavo_attention_record_bytes(heads)};
    const int64_t n_heads = p->head_end - p->head_begin;
    const size_t bytes =
        (size_t)octavo_attention_value_dim(heads) * octavo_dtype_size(op->out_dtype);
    int64_t begin, end;
    octavo_pool_share((p->row_end - p->row_begin) * n_heads, 1, thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = p->row_begin + i / n_heads;
        const int32_t head = (int32_t)(i % n_heads);
        const place at = find_place(batch, row);
        uint8_t *to = attention_output(op, row - p->row_begin, head);
        if (at.seq < batch->n_seqs && row >= batch->query_start_loc[at.seq])
            merge_row(&job, at, p->head_begin + head, to);
        else
            memset(to, 0, bytes);
    }
}
