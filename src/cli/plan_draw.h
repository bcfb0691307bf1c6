/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of SVG, and the parts of the drawing of a plan. Lengths are in units of a drawing that
 * is OCTAVO_VIEW_DRAWING wide.
 */
#ifndef OCTAVO_CLI_PLAN_DRAW_H
#define OCTAVO_CLI_PLAN_DRAW_H

#include "base/buffer.h"
#include "cli/plan_document.h"

enum { OCTAVO_VIEW_DRAWING = 1000 };

typedef struct octavo_view_box {
    double x, y, width, height;
} octavo_view_box;

/* Classes are those of octavo_view_svg_style. `anchor` is start, middle or end; texts are
 * escaped here. */
void octavo_view_draw_label(octavo_buffer *out, double x, double y, const char *class,
                            const char *anchor, const char *text);
/* The same of a buffer, which is emptied. */
void octavo_view_draw_words(octavo_buffer *out, double x, double y, const char *class,
                            const char *anchor, octavo_buffer *words);
/* `paint` is " class=..." or " fill=..."; `tip` (may be NULL) is shown by a pointer that rests. */
void octavo_view_draw_box(octavo_buffer *out, octavo_view_box box, const char *paint,
                          const char *tip);

/* " fill=..." of a rank: hues go round with the ranks. */
typedef struct octavo_view_paint {
    char text[24];
} octavo_view_paint;
octavo_view_paint octavo_view_rank_paint(int64_t rank, int64_t ranks);

/* Parts of the drawing, drawn from `y` down; they return where the next may begin. */
double octavo_view_draw_mesh(octavo_buffer *out, const json_t *plan, double y);
double octavo_view_draw_tensors(octavo_buffer *out, const json_t *plan, double y);
/* One layer of each kind of a phase, and what comes before and behind; nothing if it has none. */
double octavo_view_draw_timeline(octavo_buffer *out, const json_t *phase, double y);

/* An element with its own coordinates, of parts of that height; `label` tells what it is. */
void octavo_view_put_figure(octavo_buffer *out, const octavo_buffer *parts, double height,
                            const char *label);
/* CSS of the classes, dark where that is asked for. */
extern const char octavo_view_svg_style[];

#endif
