/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of logits in portions of at most ROWS_BYTES.
 */
#include "cli/rows.h"

#include "base/error.h"
#include "base/memory.h"

static const size_t ROWS_BYTES = 128u << 20;

static size_t portion_of(const octavo_model_facts *facts, size_t n_ids) {
    size_t rows = ROWS_BYTES / ((size_t)facts->vocabulary * sizeof(float));
    if (rows > (size_t)facts->chunk) rows = (size_t)facts->chunk;
    if (rows > n_ids) rows = n_ids;
    return rows > 0 ? rows : 1;
}

octavo_status octavo_rows_feed(octavo_sequence *sequence, const octavo_model_facts *facts,
                               const int32_t *ids, size_t n_ids, octavo_rows_take_fn *take,
                               void *cookie, octavo_error *error) {
    const size_t portion = portion_of(facts, n_ids);
    float *rows = octavo_alloc_zero(portion * (size_t)facts->vocabulary, sizeof *rows);
    octavo_status status = OCTAVO_OK;
    if (!rows)
        return octavo_fail_memory(error, "logits",
                                  portion * (uint64_t)facts->vocabulary * sizeof *rows);
    for (size_t done = 0; done < n_ids && status == OCTAVO_OK;) {
        size_t n = n_ids - done < portion ? n_ids - done : portion;
        status =
            octavo_sequence_feed(sequence, ids + done, n, OCTAVO_LOGITS_ALL, rows, NULL, error);
        if (status == OCTAVO_OK) status = take(cookie, done, rows, n, facts->vocabulary, error);
        done += n;
    }
    octavo_free(rows);
    return status;
}
