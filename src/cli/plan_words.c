/* SPDX-License-Identifier: Apache-2.0
 *
 * The same words in all renderings, so that they can be compared.
 */
#include "cli/plan_words.h"

#include <math.h>
#include <string.h>

/* Three digits and a unit, each a thousand of the one before. */
static void put_scaled(octavo_buffer *out, double value, const char *const *units, int n_units) {
    int i = 0;
    while (value >= 999.5 && i + 1 < n_units) {
        value /= 1000.0;
        i++;
    }
    if (value >= 1e5) { /* beyond all units */
        octavo_buffer_printf(out, "%.3g %s", value, units[i]);
        return;
    }
    const bool is_whole = i == 0 && value == floor(value);
    const int decimals = is_whole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    octavo_buffer_printf(out, "%.*f %s", decimals, value, units[i]);
}

void octavo_view_put_bytes(octavo_buffer *out, double bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    put_scaled(out, bytes, units, 6);
}

void octavo_view_put_seconds(octavo_buffer *out, double seconds) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    put_scaled(out, seconds * 1e9, units, 4);
}

void octavo_view_put_count(octavo_buffer *out, double count) {
    char digits[32];
    if (!(count >= 0.0 && count < 1e15)) {
        octavo_buffer_printf(out, "%g", count);
        return;
    }
    if (count < 99.5 && count != floor(count)) {
        octavo_buffer_printf(out, "%.1f", count);
        return;
    }
    const int n = snprintf(digits, sizeof digits, "%.0f", count);
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) octavo_buffer_putc(out, ',');
        octavo_buffer_putc(out, digits[i]);
    }
}

static bool put_sign(octavo_buffer *out, double more) {
    if (more == 0.0) {
        octavo_buffer_putc(out, '0');
        return false;
    }
    octavo_buffer_putc(out, more < 0.0 ? '-' : '+');
    return true;
}

void octavo_view_put_more_bytes(octavo_buffer *out, double more) {
    if (put_sign(out, more)) octavo_view_put_bytes(out, fabs(more));
}

void octavo_view_put_more_seconds(octavo_buffer *out, double more) {
    if (put_sign(out, more)) octavo_view_put_seconds(out, fabs(more));
}

void octavo_view_put_shape(octavo_buffer *out, const json_t *shape) {
    size_t i;
    json_t *extent;
    json_array_foreach(shape, i, extent)
        octavo_buffer_printf(out, "%s%lld", i ? "x" : "", (long long)json_integer_value(extent));
}

void octavo_view_put_split(octavo_buffer *out, const json_t *entry) {
    const octavo_view_split split = octavo_view_split_of(entry);
    if (split.n == 0) octavo_buffer_putc(out, '-');
    for (int i = 0; i < split.n; i++)
        octavo_buffer_printf(out, "%s%s", i ? "+" : "", octavo_view_axis_name(split.axis[i]));
}

void octavo_view_put_spec(octavo_buffer *out, const json_t *spec) {
    size_t i;
    json_t *entry;
    octavo_buffer_putc(out, '(');
    if (!json_is_array(spec)) octavo_view_put_split(out, spec); /* a whole one, or of one axis */
    json_array_foreach(spec, i, entry) {
        if (i > 0) octavo_buffer_puts(out, ", ");
        octavo_view_put_split(out, entry);
    }
    octavo_buffer_putc(out, ')');
}

void octavo_view_put_mesh(octavo_buffer *out, const octavo_view_mesh *mesh) {
    bool is_first = true;
    for (int i = 0; i < OCTAVO_VIEW_AXES; i++) {
        if (mesh->degree[i] == 1) continue;
        octavo_buffer_printf(out, "%s%s %lld", is_first ? "" : " x ", octavo_view_axis_name(i),
                             (long long)mesh->degree[i]);
        is_first = false;
    }
    octavo_buffer_printf(out, is_first ? "%lld rank" : " = %lld ranks", (long long)mesh->ranks);
}

void octavo_view_put_layers(octavo_buffer *out, const octavo_view_group *group) {
    if (group->from < 0)
        octavo_buffer_puts(out, "outside of layers");
    else if (group->from == group->to)
        octavo_buffer_printf(out, "layer %lld", (long long)group->from);
    else if (group->n_layers == group->to - group->from + 1)
        octavo_buffer_printf(out, "layers %lld-%lld", (long long)group->from, (long long)group->to);
    else
        octavo_buffer_printf(out, "%lld of layers %lld-%lld", (long long)group->n_layers,
                             (long long)group->from, (long long)group->to);
}

void octavo_view_put_part(octavo_buffer *out, int64_t layer, bool is_first) {
    if (layer >= 0)
        octavo_buffer_printf(out, "Layer %lld", (long long)layer);
    else
        octavo_buffer_puts(out, is_first ? "Before the layers" : "Behind the layers");
}

void octavo_view_put_where(octavo_buffer *out, const json_t *tensor) {
    const char *layers = octavo_view_text(tensor, "layers");
    const int64_t each = octavo_view_count(tensor) / octavo_view_layers_count(layers);
    octavo_view_put_plain(out, layers);
    if (each > 1) octavo_buffer_printf(out, "%sx%lld", *layers ? " " : "", (long long)each);
}

/* A rule is a spec, or an object that has one for some layers or kinds of block. */
static void put_rule(octavo_buffer *out, const json_t *rule) {
    if (!json_is_object(rule)) {
        octavo_view_put_spec(out, rule);
        return;
    }
    char *text = json_dumps(rule, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    if (text) octavo_view_put_plain(out, text);
    /* jansson's own allocation, hence its own way to free it. */
    json_malloc_t take;
    json_free_t give;
    json_get_alloc_funcs(&take, &give);
    give(text);
}

void octavo_view_put_rules(octavo_buffer *out, const json_t *rules, const char *between) {
    const char *phase, *tensor;
    json_t *overrides, *rule;
    bool is_first = true;
    size_t i;
    /* lines of text, or {"all": {TENSOR: RULE}, ...} */
    json_array_foreach(rules, i, rule) {
        if (!is_first) octavo_buffer_puts(out, between);
        octavo_view_put_plain(out, json_is_string(rule) ? json_string_value(rule) : "");
        is_first = false;
    }
    json_object_foreach((json_t *)(uintptr_t)rules, phase, overrides) {
        json_object_foreach(overrides, tensor, rule) {
            if (!is_first) octavo_buffer_puts(out, between);
            if (strcmp(phase, "all") != 0) {
                octavo_view_put_plain(out, phase);
                octavo_buffer_puts(out, ": ");
            }
            octavo_view_put_plain(out, tensor);
            octavo_buffer_puts(out, " = ");
            put_rule(out, rule);
            is_first = false;
        }
    }
    if (is_first) octavo_buffer_puts(out, "the default rules");
}

void octavo_view_put_model(octavo_buffer *out, const json_t *plan) {
    const json_t *model = json_object_get(plan, "model");
    octavo_view_put_plain(out, octavo_view_text(model, "architecture"));
    octavo_buffer_printf(out, ": %.0f layers, width %.0f, %.0f query and %.0f key/value heads",
                         octavo_view_number(model, "layers"), octavo_view_number(model, "width"),
                         octavo_view_number(model, "heads"), octavo_view_number(model, "kv_heads"));
    if (octavo_view_number(model, "experts") > 0.0)
        octavo_buffer_printf(out, ", %.0f experts", octavo_view_number(model, "experts"));
}

void octavo_view_put_setting(octavo_buffer *out, const json_t *plan) {
    octavo_view_put_count(out, octavo_view_number(plan, "tokens"));
    octavo_buffer_puts(out, " tokens a step, weights as ");
    octavo_view_put_plain(out, octavo_view_text(plan, "dtype"));
    octavo_buffer_printf(out, ", links of %.4g GB/s, memory of %.4g GB/s",
                         octavo_view_number(plan, "link_gbps"),
                         octavo_view_number(plan, "memory_gbps"));
}

void octavo_view_put_plain(octavo_buffer *out, const char *text) {
    for (; *text; text++)
        octavo_buffer_putc(out, (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text);
}

void octavo_view_put_escaped(octavo_buffer *out, const char *text) {
    for (; *text; text++) {
        /* U+FFFE and U+FFFF */
        if (strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0) {
            octavo_buffer_putc(out, '?');
            text += 2;
            continue;
        }
        switch (*text) {
        case '&':
            octavo_buffer_puts(out, "&amp;");
            break;
        case '<':
            octavo_buffer_puts(out, "&lt;");
            break;
        case '>':
            octavo_buffer_puts(out, "&gt;");
            break;
        case '"':
            octavo_buffer_puts(out, "&quot;");
            break;
        case '\'':
            octavo_buffer_puts(out, "&#39;");
            break;
        default:
            octavo_buffer_putc(out, (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text);
        }
    }
}

void octavo_view_take_escaped(octavo_buffer *out, octavo_buffer *words) {
    if (words->failed) out->failed = true;
    if (words->data) octavo_view_put_escaped(out, words->data);
    octavo_buffer_clear(words);
    octavo_buffer_puts(words, "");
}
