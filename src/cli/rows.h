/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeding ids and taking all their logits, a bounded number of rows at a time.
 */
#ifndef OCTAVO_CLI_ROWS_H
#define OCTAVO_CLI_ROWS_H

#include "octavo/model.h"

/* Receives rows [n_rows, vocabulary], the logits after ids first .. first + n_rows - 1. */
typedef octavo_status octavo_rows_take_fn(void *cookie, size_t first, const float *rows,
                                          size_t n_rows, int32_t vocabulary, octavo_error *error);

/* Feeds ids [n_ids] to the sequence. How they are cut into steps changes no bit of the logits. On
 * failure the sequence may have some of them. */
OCTAVO_MUST_CHECK octavo_status octavo_rows_feed(octavo_sequence *sequence,
                                                 const octavo_model_facts *facts,
                                                 const int32_t *ids, size_t n_ids,
                                                 octavo_rows_take_fn *take, void *cookie,
                                                 octavo_error *error);

#endif
