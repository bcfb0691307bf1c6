/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of one type to rows of another, many at a time, with what is lost.
 */
#ifndef OCTAVO_ENGINE_QUANTIZE_ROWS_H
#define OCTAVO_ENGINE_QUANTIZE_ROWS_H

#include "base/thread.h"
#include "kernels/weight.h"

/* Sums over values x and what became of them, y. */
typedef struct octavo_row_loss {
    double squares; /* of x */
    double errors;  /* of y - x, squared */
    double most;    /* |y - x| */
    bool is_bad;    /* an x is not finite */
    bool is_large;  /* a y is not */
} octavo_row_loss;

void octavo_row_loss_add(octavo_row_loss *sum, const octavo_row_loss *part);

typedef struct octavo_row_converter {
    octavo_pool *pool; /* borrowed */
    octavo_weight_type from, to;
    int64_t k;                   /* values in a row: whole blocks of both types */
    size_t from_bytes, to_bytes; /* of a row */
    int64_t max_rows;            /* of a strip */
    uint8_t *rows;               /* [max_rows][to_bytes]: the result of a strip */
    uint8_t *scratch;            /* [threads][scratch_bytes] */
    size_t scratch_bytes;
    octavo_row_loss *losses; /* [panels of a strip] */
    /* the strip in work */
    const uint8_t *source;
    int64_t n_rows;
} octavo_row_converter;

/* Gets memory for strips of rows. OCTAVO_ERROR_MEMORY, and then there is nothing to end. */
OCTAVO_MUST_CHECK octavo_status octavo_row_converter_init(octavo_row_converter *converter,
                                                          octavo_pool *pool,
                                                          octavo_weight_type from,
                                                          octavo_weight_type to, int64_t k,
                                                          octavo_error *error);
void octavo_row_converter_deinit(octavo_row_converter *converter);

/* Converts n_rows (1..max_rows) rows at `source` to converter->rows, and adds to *loss, in an order
 * that does not depend on the threads. */
void octavo_row_converter_run(octavo_row_converter *converter, const uint8_t *source,
                              int64_t n_rows, octavo_row_loss *loss);

#endif
