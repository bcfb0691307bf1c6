/* SPDX-License-Identifier: Apache-2.0
 *
 * A table that is filled cell by cell and shown as columns of text or as HTML.
 */
#ifndef OCTAVO_CLI_PLAN_TABLE_H
#define OCTAVO_CLI_PLAN_TABLE_H

#include "base/buffer.h"

#include <stdbool.h>

enum { OCTAVO_VIEW_MAX_COLUMNS = 8, OCTAVO_VIEW_WIDTH = 100 };

/* Zero-initialised but for the first three fields. */
typedef struct octavo_view_table {
    const char *title;
    /* [n] their alignment and what stands above them: "<Tensor", ">Bytes". "~Why" is a note, which
     * text has in lines of its own; only the last column may be one. */
    const char *const *columns;
    int n;
    octavo_buffer cells; /* terminated texts, row after row; a heading is one that begins with 1 */
} octavo_view_table;

/* Where the next cell is written; octavo_view_cell_end ends it. */
octavo_buffer *octavo_view_cell(octavo_view_table *table);
void octavo_view_cell_end(octavo_view_table *table);
/* A whole cell. */
void octavo_view_cell_put(octavo_view_table *table, const char *text);
/* A row of one text over all columns: write it to octavo_view_heading and end it as a cell. */
octavo_buffer *octavo_view_heading(octavo_view_table *table);

/* Appends the table; nothing if it has no rows. A failure of the cells becomes one of `out`. */
void octavo_view_table_text(const octavo_view_table *table, octavo_buffer *out);
void octavo_view_table_html(const octavo_view_table *table, octavo_buffer *out);
void octavo_view_table_deinit(octavo_view_table *table);

/* `text` in lines that end at OCTAVO_VIEW_WIDTH, all indented. */
void octavo_view_put_wrapped(octavo_buffer *out, const char *text, int indent);

#endif
