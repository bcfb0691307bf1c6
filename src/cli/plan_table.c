/* SPDX-License-Identifier: Apache-2.0
 *
 * Widths are counted in characters of UTF-8, as far as one is one column.
 */
#include "cli/plan_table.h"

#include "cli/plan_words.h"

#include <string.h>

enum { HEADING = 1, GAP = 2, INDENT = 2, NOTE_INDENT = 6 };

octavo_buffer *octavo_view_cell(octavo_view_table *table) {
    return &table->cells;
}

void octavo_view_cell_end(octavo_view_table *table) {
    octavo_buffer_putc(&table->cells, '\0');
}

void octavo_view_cell_put(octavo_view_table *table, const char *text) {
    octavo_view_put_plain(&table->cells, text);
    octavo_view_cell_end(table);
}

octavo_buffer *octavo_view_heading(octavo_view_table *table) {
    octavo_buffer_putc(&table->cells, HEADING);
    return &table->cells;
}

void octavo_view_table_deinit(octavo_view_table *table) {
    octavo_buffer_deinit(&table->cells);
}

/* A walk over the cells: `at` is the next one. */
typedef struct walk {
    const char *at, *end;
} walk;

static walk start(const octavo_view_table *table) {
    if (!table->cells.data) return (walk){"", ""};
    return (walk){table->cells.data, table->cells.data + table->cells.size};
}

static bool is_done(const walk *cells) {
    return cells->at >= cells->end;
}

static const char *next(walk *cells) {
    const char *text = cells->at;
    if (is_done(cells)) return "";
    cells->at += strlen(text) + 1;
    return text;
}

static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void put_blanks(octavo_buffer *out, int n) {
    octavo_buffer_printf(out, "%*s", n > 0 ? n : 0, "");
}

void octavo_view_put_wrapped(octavo_buffer *out, const char *text, int indent) {
    int column = 0;
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > OCTAVO_VIEW_WIDTH) {
            octavo_buffer_putc(out, '\n');
            column = 0;
        }
        if (column == 0) {
            put_blanks(out, indent);
            column = indent;
        } else {
            octavo_buffer_putc(out, ' ');
            column++;
        }
        octavo_buffer_append(out, text, (size_t)length);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    octavo_buffer_putc(out, '\n');
}

/* One row of cells; blanks at its end are left away. */
static void put_row(const octavo_view_table *table, const int *widths, const char *const *texts,
                    octavo_buffer *out) {
    int column = 0, due = INDENT;
    for (int i = 0; i < table->n; i++) {
        const char align = table->columns[i][0];
        const int width = width_of(texts[i]);
        if (align == '~') {
            octavo_buffer_putc(out, '\n');
            if (*texts[i]) octavo_view_put_wrapped(out, texts[i], NOTE_INDENT);
            return;
        }
        const int from = align == '>' && widths[i] > width ? due + widths[i] - width : due;
        if (width > 0) {
            put_blanks(out, from - column);
            octavo_buffer_puts(out, texts[i]);
            column = from + width;
        }
        due = (due + widths[i] > column ? due + widths[i] : column) + GAP;
    }
    octavo_buffer_putc(out, '\n');
}

void octavo_view_table_text(const octavo_view_table *table, octavo_buffer *out) {
    int widths[OCTAVO_VIEW_MAX_COLUMNS];
    const char *texts[OCTAVO_VIEW_MAX_COLUMNS];
    if (table->cells.failed) out->failed = true;
    if (out->failed || table->cells.size == 0) return;
    for (int i = 0; i < table->n; i++) {
        texts[i] = table->columns[i][0] == '~' ? "" : table->columns[i] + 1;
        widths[i] = width_of(texts[i]);
    }
    for (walk cells = start(table); !is_done(&cells);) {
        if (*cells.at == HEADING) {
            next(&cells);
            continue;
        }
        for (int i = 0; i < table->n; i++) {
            const int width = width_of(next(&cells));
            if (width > widths[i]) widths[i] = width;
        }
    }
    octavo_buffer_printf(out, "\n%s\n", table->title);
    put_row(table, widths, texts, out);
    for (walk cells = start(table); !is_done(&cells);) {
        if (*cells.at == HEADING) {
            octavo_buffer_printf(out, " %s\n", next(&cells) + 1);
            continue;
        }
        for (int i = 0; i < table->n; i++)
            texts[i] = next(&cells);
        put_row(table, widths, texts, out);
    }
}

static const char *class_of(char align) {
    return align == '>' ? " class=\"n\"" : align == '~' ? " class=\"note\"" : "";
}

static void put_html_row(const octavo_view_table *table, walk *cells, octavo_buffer *out) {
    octavo_buffer_puts(out, "<tr>");
    for (int i = 0; i < table->n; i++) {
        const char *class = class_of(table->columns[i][0]);
        octavo_buffer_printf(out, i == 0 ? "<th scope=\"row\"%s>" : "<td%s>", class);
        octavo_view_put_escaped(out, next(cells));
        octavo_buffer_puts(out, i == 0 ? "</th>" : "</td>");
    }
    octavo_buffer_puts(out, "</tr>\n");
}

void octavo_view_table_html(const octavo_view_table *table, octavo_buffer *out) {
    if (table->cells.failed) out->failed = true;
    if (out->failed || table->cells.size == 0) return;
    /* wide tables scroll by themselves, by keys too */
    octavo_buffer_puts(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    octavo_view_put_escaped(out, table->title);
    octavo_buffer_puts(out, "\"><table><caption>");
    octavo_view_put_escaped(out, table->title);
    octavo_buffer_puts(out, "</caption>\n<thead><tr>");
    for (int i = 0; i < table->n; i++) {
        octavo_buffer_printf(out, "<th scope=\"col\"%s>", class_of(table->columns[i][0]));
        octavo_view_put_escaped(out, table->columns[i] + 1);
        octavo_buffer_puts(out, "</th>");
    }
    octavo_buffer_puts(out, "</tr></thead>\n<tbody>\n");
    for (walk cells = start(table); !is_done(&cells);) {
        if (*cells.at != HEADING) {
            put_html_row(table, &cells, out);
            continue;
        }
        octavo_buffer_printf(out, "</tbody><tbody>\n<tr><th colspan=\"%d\" scope=\"rowgroup\">",
                             table->n);
        octavo_view_put_escaped(out, next(&cells) + 1);
        octavo_buffer_puts(out, "</th></tr>\n");
    }
    octavo_buffer_puts(out, "</tbody></table></div>\n");
}
