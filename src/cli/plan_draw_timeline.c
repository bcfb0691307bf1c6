/* SPDX-License-Identifier: Apache-2.0
 *
 * The ops of a step as bars over time, a strip for each part (before the layers, a layer of each
 * kind, behind them), each on a scale of its own. Ops are numbered, and named below.
 */
#include "cli/plan_draw.h"
#include "cli/plan_words.h"

#include <math.h>
#include <string.h>

enum {
    LANE_X = 74,
    LANE_WIDTH = OCTAVO_VIEW_DRAWING - LANE_X - 30,
    LANE_HEIGHT = 22,
    LEGEND_COLUMNS = 3,
    MOST_NAMED = 60,
    N_TICKS = 4,
};

/* ops [from, to) of the timeline, all of one layer */
typedef struct part {
    size_t from, to;
    double start, length; /* seconds; the length is above 0 */
} part;

static bool is_collective(const json_t *op) {
    return strcmp(octavo_view_text(op, "kind"), "collective") == 0;
}

static part part_at(const json_t *timeline, size_t from) {
    const int64_t layer = octavo_view_layer(json_array_get(timeline, from));
    part found = {.from = from, .to = from};
    double end = 0.0;
    found.start = octavo_view_number(json_array_get(timeline, from), "start_s");
    while (found.to < json_array_size(timeline)) {
        const json_t *op = json_array_get(timeline, found.to);
        if (octavo_view_layer(op) != layer) break;
        const double start = octavo_view_number(op, "start_s");
        found.start = fmin(found.start, start);
        end = fmax(end, start + octavo_view_number(op, "seconds"));
        found.to++;
    }
    found.length = fmax(end - found.start, 1e-12);
    return found;
}

/* "matmul query_tnh 12.3 us" */
static void put_op(octavo_buffer *out, const json_t *op) {
    octavo_view_put_plain(out, octavo_view_text(op, "op"));
    octavo_buffer_putc(out, ' ');
    octavo_view_put_plain(out, octavo_view_text(op, "tensor"));
    octavo_buffer_putc(out, ' ');
    octavo_view_put_seconds(out, octavo_view_number(op, "seconds"));
}

static void draw_bar(octavo_buffer *out, const part *shown, const json_t *op, int number,
                     double y) {
    const double scale = LANE_WIDTH / shown->length;
    const octavo_view_box box = {.x = LANE_X +
                                      (octavo_view_number(op, "start_s") - shown->start) * scale,
                                 .y = y + (is_collective(op) ? LANE_HEIGHT + 4.0 : 0.0),
                                 .width = fmax(octavo_view_number(op, "seconds") * scale, 0.75),
                                 .height = LANE_HEIGHT};
    octavo_buffer words = {0};
    put_op(&words, op);
    octavo_view_draw_box(out, box,
                         is_collective(op) ? " class=\"collective\"" : " class=\"compute\"",
                         words.failed ? "" : words.data);
    octavo_buffer_clear(&words);
    octavo_buffer_printf(&words, "%d", number);
    if (box.width >= 9.0 + 6.0 * (number > 9))
        octavo_view_draw_words(out, box.x + box.width / 2.0, box.y + 15.0, "on", "middle", &words);
    octavo_buffer_deinit(&words);
}

static void draw_axis(octavo_buffer *out, const part *shown, double y) {
    octavo_view_draw_box(out, (octavo_view_box){LANE_X, y, LANE_WIDTH, 0.5}, " class=\"line\"",
                         NULL);
    for (int i = 0; i <= N_TICKS; i++) {
        const double x = LANE_X + (double)LANE_WIDTH * i / N_TICKS;
        octavo_buffer words = {0};
        if (i == 0)
            octavo_buffer_putc(&words, '0');
        else
            octavo_view_put_seconds(&words, shown->length * i / N_TICKS);
        octavo_view_draw_box(out, (octavo_view_box){x, y, 0.5, 4.0}, " class=\"line\"", NULL);
        octavo_view_draw_words(out, x, y + 15.0, "dim", "middle", &words);
    }
}

/* What the numbers are, down in columns. */
static double draw_names(octavo_buffer *out, const part *shown, const json_t *timeline, double y) {
    const size_t all = shown->to - shown->from, n = all < MOST_NAMED ? all : MOST_NAMED;
    const size_t down = (n + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS;
    const double width = (double)OCTAVO_VIEW_DRAWING / LEGEND_COLUMNS;
    for (size_t i = 0; i < n; i++) {
        const json_t *op = json_array_get(timeline, shown->from + i);
        const double x = width * (double)(i / down), top = y + 15.0 * (double)(i % down);
        octavo_buffer words = {0};
        octavo_view_draw_box(out, (octavo_view_box){x, top, 9.0, 9.0},
                             is_collective(op) ? " class=\"collective\"" : " class=\"compute\"",
                             NULL);
        octavo_buffer_printf(&words, "%zu ", i + 1);
        put_op(&words, op);
        octavo_view_draw_words(out, x + 14.0, top + 9.0, "dim", "start", &words);
    }
    y += 15.0 * (double)down;
    if (n < all) {
        octavo_buffer words = {0};
        octavo_buffer_printf(&words, "and %zu more", all - n);
        octavo_view_draw_words(out, 0.0, y + 9.0, "dim", "start", &words);
        y += 15.0;
    }
    return y;
}

static double draw_part(octavo_buffer *out, const json_t *timeline, const part *shown, double y) {
    octavo_buffer words = {0};
    const json_t *first = json_array_get(timeline, shown->from);
    octavo_view_put_part(&words, octavo_view_layer(first), shown->from == 0);
    octavo_buffer_puts(&words, ", ");
    octavo_view_put_seconds(&words, shown->length);
    octavo_view_draw_words(out, 0.0, y + 12.0, "name", "start", &words);
    y += 20.0;
    octavo_view_draw_label(out, 0.0, y + 15.0, "dim", "start", "compute");
    octavo_view_draw_label(out, 0.0, y + LANE_HEIGHT + 19.0, "dim", "start", "collectives");
    for (size_t i = shown->from; i < shown->to; i++)
        draw_bar(out, shown, json_array_get(timeline, i), (int)(i - shown->from) + 1, y);
    y += 2.0 * LANE_HEIGHT + 8.0;
    draw_axis(out, shown, y);
    return draw_names(out, shown, timeline, y + 24.0) + 16.0;
}

double octavo_view_draw_timeline(octavo_buffer *out, const json_t *phase, double y) {
    const json_t *timeline = json_object_get(phase, "timeline");
    for (size_t i = 0; i < json_array_size(timeline);) {
        const part shown = part_at(timeline, i);
        y = draw_part(out, timeline, &shown, y);
        i = shown.to;
    }
    return y + 10.0;
}
