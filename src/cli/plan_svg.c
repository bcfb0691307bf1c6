/* SPDX-License-Identifier: Apache-2.0
 *
 * All parts below one another; two plans beside one another.
 */
#include "cli/plan_draw.h"
#include "cli/plan_view.h"
#include "cli/plan_words.h"

#include <math.h>

enum { MARGIN = 24 };

static double draw_plan(octavo_buffer *out, const json_t *plan, const char *name) {
    octavo_buffer words = {0};
    octavo_view_put_plain(&words, name);
    if (*name) octavo_buffer_puts(&words, ", ");
    octavo_view_put_model(&words, plan);
    octavo_view_draw_words(out, 0.0, 18.0, "head", "start", &words);
    octavo_view_put_setting(&words, plan);
    octavo_view_draw_words(out, 0.0, 38.0, "dim", "start", &words);
    double y = octavo_view_draw_mesh(out, plan, 54.0);
    octavo_view_draw_label(out, 0.0, y + 14.0, "head", "start", "Tensors over ranks");
    y = octavo_view_draw_tensors(out, plan, y + 22.0);
    for (int i = 0; i < OCTAVO_VIEW_PHASES; i++) {
        const char *phase = octavo_view_phase_name(i);
        if (json_array_size(json_object_get(json_object_get(plan, phase), "timeline")) == 0)
            continue;
        octavo_buffer_printf(&words, "A %s step: one layer of each kind", phase);
        octavo_view_draw_words(out, 0.0, y + 14.0, "head", "start", &words);
        y = octavo_view_draw_timeline(out, json_object_get(plan, phase), y + 28.0);
    }
    return y;
}

static void put_drawing(octavo_buffer *out, const json_t *const *plans, const char *const *names,
                        int n) {
    octavo_buffer parts = {0};
    double height = 0.0;
    const int width = n * (OCTAVO_VIEW_DRAWING + MARGIN) + MARGIN;
    for (int i = 0; i < n; i++) {
        octavo_buffer_printf(&parts, "<g transform=\"translate(%d %d)\">\n",
                             MARGIN + i * (OCTAVO_VIEW_DRAWING + MARGIN), MARGIN);
        height = fmax(height, draw_plan(&parts, plans[i], names[i]));
        octavo_buffer_puts(&parts, "</g>\n");
    }
    height += 2 * MARGIN;
    octavo_buffer_printf(out,
                         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                         "viewBox=\"0 0 %d %.0f\" role=\"img\">\n<title>octavo plan</title>\n"
                         "<style>%s</style>\n<rect width=\"%d\" height=\"%.0f\" "
                         "class=\"page\"/>\n",
                         width, height, width, height, octavo_view_svg_style, width, height);
    if (parts.failed)
        out->failed = true;
    else
        octavo_buffer_append(out, parts.data, parts.size);
    octavo_buffer_puts(out, "</svg>\n");
    octavo_buffer_deinit(&parts);
}

void octavo_view_put_svg(octavo_buffer *out, const json_t *document) {
    if (octavo_view_is_search(document)) return;
    if (!octavo_view_is_compare(document)) {
        const char *const name = "";
        put_drawing(out, &document, &name, 1);
        return;
    }
    const json_t *compare = json_object_get(document, "compare"), *plans[2];
    const char *names[2];
    for (size_t i = 0; i < 2; i++) {
        plans[i] = json_object_get(json_array_get(compare, i), "plan");
        names[i] = octavo_view_text(json_array_get(compare, i), "name");
    }
    put_drawing(out, plans, names, 2);
}
