/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank's rows of a batch. All sequences stay, those of other ranks without rows, so that keys,
 * page tables and lengths of context are the whole batch's.
 */
#include "attention/internal.h"

static int32_t clamp(int64_t row, int64_t begin, int64_t end) {
    return (int32_t)((row < begin ? begin : row > end ? end : row) - begin);
}

void octavo_attention_batch_rows(const octavo_attention_batch *whole, int64_t row_begin,
                                 int64_t row_end, int32_t *query_start_loc,
                                 int32_t *query_positions, octavo_attention_batch *part) {
    const int32_t *starts = whole->query_start_loc;
    *part = *whole;
    part->n_tokens = row_end - row_begin;
    part->query_start_loc = query_start_loc;
    part->query_positions = query_positions;
    if (part->key_start_loc == NULL) part->key_start_loc = starts;
    for (int64_t i = 0; i < whole->n_seqs; i++) {
        const int64_t before = starts[i] < row_begin ? row_begin - starts[i] : 0;
        query_positions[i] = (int32_t)attention_position(whole, i, before);
        query_start_loc[i] = clamp(starts[i], row_begin, row_end);
    }
    query_start_loc[whole->n_seqs] =
        whole->n_seqs > 0 ? clamp(starts[whole->n_seqs], row_begin, row_end) : 0;
}
