/* SPDX-License-Identifier: Apache-2.0
 *
 * Colours of ranks are pale, with dark text on them, on a light page and on a dark one.
 */
#include "cli/plan_draw.h"

#include "cli/plan_words.h"

#include <math.h>
#include <stdio.h>

/* Plain selectors and colours: not every renderer of SVG knows more. */
const char octavo_view_svg_style[] =
    "svg{font-family:Helvetica,Arial,sans-serif;font-size:12px}"
    ".page{fill:#ffffff}"
    ".ink{fill:#1f2933}"
    ".head{fill:#1f2933;font-size:16px;font-weight:bold}"
    ".name{fill:#1f2933;font-size:12px;font-weight:bold}"
    ".dim{fill:#52606d;font-size:11px}"
    ".on{fill:#10202c;font-size:10px}"
    ".line{fill:none;stroke:#9aa5b1;stroke-width:1}"
    ".weights{fill:#7fb4e3}.cache{fill:#f0b86c}.activations{fill:#8ccf9b}"
    ".compute{fill:#9cc4e8}.collective{fill:#f2a65a}"
    "@media (prefers-color-scheme:dark){"
    ".page{fill:#14181d}"
    ".ink,.head,.name{fill:#e4e9ee}"
    ".dim{fill:#a3b0bd}"
    ".line{stroke:#5b6875}"
    "}";

void octavo_view_draw_label(octavo_buffer *out, double x, double y, const char *class,
                            const char *anchor, const char *text) {
    octavo_buffer_printf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y,
                         class, anchor);
    octavo_view_put_escaped(out, text);
    octavo_buffer_puts(out, "</text>\n");
}

void octavo_view_draw_words(octavo_buffer *out, double x, double y, const char *class,
                            const char *anchor, octavo_buffer *words) {
    if (words->failed) out->failed = true;
    octavo_view_draw_label(out, x, y, class, anchor,
                           words->data && !words->failed ? words->data : "");
    octavo_buffer_deinit(words);
}

void octavo_view_draw_box(octavo_buffer *out, octavo_view_box box, const char *paint,
                          const char *tip) {
    octavo_buffer_printf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"%s", box.x,
                         box.y, fmax(box.width, 0.0), fmax(box.height, 0.0), paint);
    if (!tip) {
        octavo_buffer_puts(out, "/>\n");
        return;
    }
    octavo_buffer_puts(out, "><title>");
    octavo_view_put_escaped(out, tip);
    octavo_buffer_puts(out, "</title></rect>\n");
}

/* One of red, green and blue, from hue in turns (offset by the part), saturation and lightness. */
static int part_of(double hue, double saturation, double lightness) {
    const double turn = hue - floor(hue), chroma = saturation * fmin(lightness, 1.0 - lightness);
    const double ramp = fmin(fmin(turn * 12.0 - 3.0, 9.0 - turn * 12.0), 1.0);
    return (int)lround(255.0 * (lightness - chroma * fmax(-1.0, ramp)));
}

octavo_view_paint octavo_view_rank_paint(int64_t rank, int64_t ranks) {
    octavo_view_paint paint;
    const double hue = 0.57 + (double)rank / (double)(ranks > 0 ? ranks : 1);
    const double lightness = rank % 2 ? 0.80 : 0.70; /* neighbours differ when hues hardly do */
    snprintf(paint.text, sizeof paint.text, " fill=\"#%02x%02x%02x\"",
             (unsigned)part_of(hue, 0.62, lightness) & 0xffu,
             (unsigned)part_of(hue + 2.0 / 3.0, 0.62, lightness) & 0xffu,
             (unsigned)part_of(hue + 1.0 / 3.0, 0.62, lightness) & 0xffu);
    return paint;
}

void octavo_view_put_figure(octavo_buffer *out, const octavo_buffer *parts, double height,
                            const char *label) {
    if (parts->failed) out->failed = true;
    octavo_buffer_printf(out,
                         "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" "
                         "role=\"img\" aria-label=\"",
                         OCTAVO_VIEW_DRAWING, height);
    octavo_view_put_escaped(out, label);
    octavo_buffer_puts(out, "\">\n");
    if (parts->data) octavo_buffer_append(out, parts->data, parts->size);
    octavo_buffer_puts(out, "</svg>\n");
}
