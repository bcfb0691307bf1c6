/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a plan, the same in text and HTML. Each function fills a zero-initialised table,
 * which the caller gives to octavo_view_table_deinit; a failure is in its cells.
 */
#ifndef OCTAVO_CLI_PLAN_TABLES_H
#define OCTAVO_CLI_PLAN_TABLES_H

#include "cli/plan_document.h"
#include "cli/plan_table.h"

void octavo_view_fill_times(const json_t *plan, octavo_view_table *table);
void octavo_view_fill_memory(const json_t *plan, octavo_view_table *table);
void octavo_view_fill_tensors(const json_t *plan, octavo_view_table *table);
/* Collectives of a phase by kind of layer; `title` names the phase. */
void octavo_view_fill_collectives(const json_t *phase, const char *title, octavo_view_table *table);
void octavo_view_fill_timeline(const json_t *phase, const char *title, octavo_view_table *table);
/* Of a document with "compare": totals, and collectives of a phase that differ. */
void octavo_view_fill_differences(const json_t *document, octavo_view_table *table);
void octavo_view_fill_phase_differences(const json_t *difference, const char *title,
                                        octavo_view_table *table);
/* Of a document with "search". */
void octavo_view_fill_search(const json_t *document, octavo_view_table *table);

#endif
