/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of figures and tables. It runs nothing and loads nothing, and its policy says so: the one
 * style in it is allowed by its hash.
 */
#include "base/compiler.h"
#include "cli/plan_draw.h"
#include "cli/plan_tables.h"
#include "cli/plan_view.h"
#include "cli/plan_words.h"

static const char PAGE_STYLE[] =
    ":root{color-scheme:light dark;--page:#fff;--ink:#1f2933;--dim:#52606d;--line:#d5dbe1;"
    "--soft:#f3f5f7;--link:#0b5cad}"
    "@media (prefers-color-scheme:dark){:root{--page:#14181d;--ink:#e4e9ee;--dim:#a3b0bd;"
    "--line:#37414b;--soft:#1d232a;--link:#7fb8f0}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:1120px;padding:24px;background:var(--page);color:var(--ink);"
    "font:15px/1.5 Helvetica,Arial,sans-serif}"
    "body.wide{max-width:2100px}"
    "h1{font-size:24px;margin:0 0 4px}h2{font-size:19px;margin:36px 0 8px}"
    "p{margin:4px 0}header p{color:var(--dim)}"
    "a{color:var(--link)}"
    "a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:3px solid var(--link);"
    "outline-offset:2px}"
    "nav ul{display:flex;flex-wrap:wrap;gap:4px 20px;list-style:none;margin:12px 0;padding:0}"
    "svg{display:block;width:100%;min-width:680px;height:auto}.pair svg{min-width:540px}"
    ".scroll{overflow-x:auto;margin:12px 0}"
    "table{border-collapse:collapse;font-size:13px}"
    "caption{text-align:left;font-weight:bold;padding:4px 0}"
    "th,td{text-align:left;vertical-align:top;padding:3px 14px 3px 0;"
    "border-bottom:1px solid var(--line);font-weight:normal;white-space:nowrap}"
    "thead th{color:var(--dim)}"
    ".note{white-space:normal;min-width:240px}"
    "th[scope=rowgroup]{font-weight:bold;background:var(--soft);padding-left:6px}"
    ".n{text-align:right;font-variant-numeric:tabular-nums}"
    "summary{cursor:pointer;color:var(--link);margin:8px 0}"
    ".warning{border-left:4px solid #d98324;padding:2px 10px;background:var(--soft)}"
    "code,pre{font-family:Menlo,Consolas,monospace;font-size:13px}"
    ".tables{display:flex;flex-wrap:wrap;gap:0 48px}"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,560px),1fr));"
    "gap:0 40px}";

/* Of PAGE_STYLE and octavo_view_svg_style, one behind the other: SHA-256, base 64. The test of
 * pages says what it must be. */
static const char STYLE_HASH[] = "LObYr0sJ9LchiF0aLj+pVwiBncv4g/RG8LQ4C0UGe+o=";

static void put_table(octavo_buffer *out, octavo_view_table *table) {
    octavo_view_table_html(table, out);
    octavo_view_table_deinit(table);
}

/* The same, closed until it is asked for. */
static void put_folded(octavo_buffer *out, octavo_view_table *table, const char *summary) {
    if (table->cells.size > 0) {
        octavo_buffer_printf(out, "<details><summary>%s</summary>\n", summary);
        octavo_view_table_html(table, out);
        octavo_buffer_puts(out, "</details>\n");
    }
    octavo_view_table_deinit(table);
}

static void put_paragraph(octavo_buffer *out, const char *open, octavo_buffer *words,
                          const char *close) {
    octavo_buffer_puts(out, open);
    octavo_view_take_escaped(out, words);
    octavo_buffer_deinit(words);
    octavo_buffer_puts(out, close);
}

static void put_head(octavo_buffer *out, const json_t *plan, const char *class) {
    octavo_buffer words = {0};
    octavo_buffer_printf(out,
                         "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                         "'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n"
                         "<meta name=\"viewport\" content=\"width=device-width, "
                         "initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
                         "<title>octavo plan</title>\n<style>%s%s</style>\n</head>\n"
                         "<body class=\"%s\">\n<header>\n<h1>octavo plan</h1>\n",
                         STYLE_HASH, PAGE_STYLE, octavo_view_svg_style, class);
    octavo_view_put_model(&words, plan);
    put_paragraph(out, "<p>", &words, "</p>\n");
    const octavo_view_mesh mesh = octavo_view_mesh_of(plan);
    octavo_view_put_mesh(&words, &mesh);
    octavo_buffer_puts(&words, "; ");
    octavo_view_put_setting(&words, plan);
    put_paragraph(out, "<p>", &words, "</p>\n</header>\n");
}

typedef struct link_to {
    const char *id, *text;
} link_to;

static void put_nav(octavo_buffer *out, const link_to *links, size_t n) {
    octavo_buffer_puts(out, "<nav aria-label=\"On this page\"><ul>");
    for (size_t i = 0; i < n; i++)
        octavo_buffer_printf(out, "<li><a href=\"#%s\">%s</a></li>", links[i].id, links[i].text);
    octavo_buffer_puts(out, "</ul></nav>\n<main>\n");
}

static void put_rules(octavo_buffer *out, const json_t *plan) {
    const json_t *rules = json_object_get(plan, "rules");
    octavo_buffer words = {0};
    size_t i;
    json_t *line;
    if (json_array_size(rules) > 1) {
        octavo_buffer_puts(out, "<p>Rules:</p>\n<pre class=\"scroll\" tabindex=\"0\">");
        json_array_foreach(rules, i, line) {
            octavo_view_put_escaped(out, json_is_string(line) ? json_string_value(line) : "");
            octavo_buffer_putc(out, '\n');
        }
        octavo_buffer_puts(out, "</pre>\n");
        return;
    }
    octavo_view_put_rules(&words, rules, "; ");
    put_paragraph(out, "<p>Rules: <code>", &words, "</code></p>\n");
}

static void put_warnings(octavo_buffer *out, const json_t *plan) {
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(plan, "warnings"), i, warning) {
        octavo_buffer words = {0};
        octavo_view_put_plain(&words, json_is_string(warning) ? json_string_value(warning) : "");
        put_paragraph(out, "<p class=\"warning\">", &words, "</p>\n");
    }
}

static void put_figure(octavo_buffer *out, octavo_buffer *parts, double height, const char *label) {
    octavo_buffer_puts(out, "<div class=\"scroll\" tabindex=\"0\">\n");
    octavo_view_put_figure(out, parts, height, label);
    octavo_buffer_puts(out, "</div>\n");
    octavo_buffer_deinit(parts);
}

static void put_mesh_figure(octavo_buffer *out, const json_t *plan) {
    octavo_buffer parts = {0};
    const double height = octavo_view_draw_mesh(&parts, plan, 0.0);
    put_figure(out, &parts, height, "The ranks of the mesh, and what fills the memory of one");
}

static void put_tensor_figure(octavo_buffer *out, const json_t *plan) {
    octavo_buffer parts = {0};
    const double height = octavo_view_draw_tensors(&parts, plan, 0.0);
    put_figure(out, &parts, height,
               "Each tensor cut into its shards, in the colours of the ranks; the table of tensors "
               "says the same");
}

static void put_timeline_figure(octavo_buffer *out, const json_t *phase) {
    octavo_buffer parts = {0};
    const double height = octavo_view_draw_timeline(&parts, phase, 0.0);
    if (height > 0.0)
        put_figure(out, &parts, height,
                   "The ops of one layer of each kind over time; the table of ops says the same");
    octavo_buffer_deinit(&parts);
}

static void put_phase(octavo_buffer *out, const json_t *plan, int index) {
    static const char *const headings[OCTAVO_VIEW_PHASES] = {"A prefill step", "A generate step"};
    const json_t *phase = json_object_get(plan, octavo_view_phase_name(index));
    octavo_view_table table;
    if (!phase) return;
    octavo_buffer_printf(out, "<section id=\"%s\">\n<h2>%s</h2>\n", octavo_view_phase_name(index),
                         headings[index]);
    put_timeline_figure(out, phase);
    octavo_view_fill_timeline(phase, "Ops of one layer of each kind", &table);
    put_folded(out, &table, "Ops as a table");
    octavo_view_fill_collectives(phase, "Collectives", &table);
    put_table(out, &table);
    octavo_buffer_puts(out, "</section>\n");
}

static void put_plan(octavo_buffer *out, const json_t *plan) {
    static const link_to links[] = {{"cost", "Time and memory"},
                                    {"ranks", "Ranks"},
                                    {"tensors", "Tensors"},
                                    {"prefill", "Prefill"},
                                    {"generate", "Generate"}};
    link_to shown[OCTAVO_COUNT(links)];
    size_t n = 0;
    octavo_view_table table;
    for (size_t i = 0; i < OCTAVO_COUNT(links); i++) {
        if (i >= 3 && !json_object_get(plan, links[i].id)) continue;
        shown[n++] = links[i];
    }
    put_head(out, plan, "one");
    put_nav(out, shown, n);
    octavo_buffer_puts(out, "<section id=\"cost\">\n<h2>Time and memory</h2>\n");
    put_rules(out, plan);
    put_warnings(out, plan);
    octavo_buffer_puts(out, "<div class=\"tables\">\n");
    octavo_view_fill_times(plan, &table);
    put_table(out, &table);
    octavo_view_fill_memory(plan, &table);
    put_table(out, &table);
    octavo_buffer_puts(out, "</div>\n</section>\n<section id=\"ranks\">\n<h2>Ranks</h2>\n");
    put_mesh_figure(out, plan);
    octavo_buffer_puts(out, "</section>\n<section id=\"tensors\">\n<h2>Tensors</h2>\n");
    put_tensor_figure(out, plan);
    octavo_view_fill_tensors(plan, &table);
    put_folded(out, &table, "Tensors as a table");
    octavo_buffer_puts(out, "</section>\n");
    for (int i = 0; i < OCTAVO_VIEW_PHASES; i++)
        put_phase(out, plan, i);
}

/* ---- two plans ---- */

static void put_side(octavo_buffer *out, const json_t *side, char letter) {
    const json_t *plan = json_object_get(side, "plan");
    octavo_buffer_printf(out, "<section><h2>%c: ", letter);
    octavo_view_put_escaped(out, octavo_view_text(side, "name"));
    octavo_buffer_puts(out, "</h2>\n");
    put_rules(out, plan);
    put_warnings(out, plan);
    put_mesh_figure(out, plan);
    put_tensor_figure(out, plan);
    for (int i = 0; i < OCTAVO_VIEW_PHASES; i++) {
        const json_t *phase = json_object_get(plan, octavo_view_phase_name(i));
        octavo_view_table table;
        if (!phase) continue;
        octavo_buffer_printf(out, "<h3>A %s step</h3>\n", octavo_view_phase_name(i));
        put_timeline_figure(out, phase);
        octavo_view_fill_collectives(phase, "Collectives", &table);
        put_folded(out, &table, "Collectives as a table");
    }
    octavo_buffer_puts(out, "</section>\n");
}

static void put_compare(octavo_buffer *out, const json_t *document) {
    static const char *const titles[OCTAVO_VIEW_PHASES] = {"Collectives of prefill that differ",
                                                           "Collectives of generate that differ"};
    static const link_to links[] = {{"difference", "What differs"}, {"plans", "Both plans"}};
    const json_t *compare = json_object_get(document, "compare");
    octavo_view_table table;
    put_head(out, json_object_get(json_array_get(compare, 0), "plan"), "wide");
    put_nav(out, links, OCTAVO_COUNT(links));
    octavo_buffer_puts(out, "<section id=\"difference\">\n<h2>What differs</h2>\n");
    octavo_buffer_puts(out, "<div class=\"tables\">\n");
    octavo_view_fill_differences(document, &table);
    put_table(out, &table);
    for (int i = 0; i < OCTAVO_VIEW_PHASES; i++) {
        const char *phase = octavo_view_phase_name(i);
        const json_t *difference = json_object_get(json_object_get(document, "difference"), phase);
        octavo_view_fill_phase_differences(difference, titles[i], &table);
        if (difference && table.cells.size == 0)
            octavo_buffer_printf(out, "<p>The collectives of %s are the same.</p>\n", phase);
        put_table(out, &table);
    }
    octavo_buffer_puts(out, "</div>\n</section>\n<div class=\"pair\" id=\"plans\">\n");
    put_side(out, json_array_get(compare, 0), 'A');
    put_side(out, json_array_get(compare, 1), 'B');
    octavo_buffer_puts(out, "</div>\n");
}

void octavo_view_put_html(octavo_buffer *out, const json_t *document) {
    octavo_view_table table;
    if (octavo_view_is_compare(document)) {
        put_compare(out, document);
    } else if (octavo_view_is_search(document)) {
        put_head(out, document, "one");
        octavo_buffer_puts(out, "<main>\n");
        put_warnings(out, document);
        octavo_view_fill_search(document, &table);
        put_table(out, &table);
    } else {
        put_plan(out, document);
    }
    octavo_buffer_puts(out, "</main>\n</body>\n</html>\n");
}
