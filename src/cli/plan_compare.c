/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives are matched by what they do to which tensor over which axes, summed over layers.
 */
#include "cli/plan_compare.h"

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "cli/plan_document.h"

#include <string.h>

/* b - a, whole where both are. */
static json_t *subtract(const json_t *a, const json_t *b) {
    if (json_is_integer(a) && json_is_integer(b))
        return json_integer(json_integer_value(b) - json_integer_value(a));
    return json_real(json_number_value(b) - json_number_value(a));
}

/* The numbers of two objects, by the keys of the first. */
static json_t *subtract_all(const json_t *a, const json_t *b) {
    json_t *difference = json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)a, key, value) {
        if (json_is_number(value))
            json_object_set_new(difference, key, subtract(value, json_object_get(b, key)));
    }
    return difference;
}

typedef struct matched {
    const json_t *first;
    int64_t count[2];
    double wire_bytes[2];
} matched;

static bool is_match(const json_t *a, const json_t *b) {
    static const char *const keys[] = {"op", "tensor", "axes"};
    for (size_t i = 0; i < OCTAVO_COUNT(keys); i++)
        if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i]))) return false;
    return true;
}

static size_t match_all(const json_t *const phases[2], matched *rows) {
    size_t n = 0, i;
    json_t *collective;
    for (int side = 0; side < 2; side++) {
        json_array_foreach(json_object_get(phases[side], "collectives"), i, collective) {
            size_t r = 0;
            while (r < n && !is_match(rows[r].first, collective))
                r++;
            if (r == n) rows[n++] = (matched){.first = collective};
            rows[r].count[side]++;
            rows[r].wire_bytes[side] += octavo_view_number(collective, "wire_bytes");
        }
    }
    return n;
}

static json_t *differing(const json_t *const phases[2]) {
    const size_t most = json_array_size(json_object_get(phases[0], "collectives")) +
                        json_array_size(json_object_get(phases[1], "collectives"));
    matched *rows = octavo_alloc_zero(most + 1, sizeof *rows);
    json_t *list = json_array();
    if (!rows || !list) {
        octavo_free(rows);
        json_decref(list);
        return NULL;
    }
    const size_t n = match_all(phases, rows);
    for (size_t i = 0; i < n; i++) {
        const matched *row = &rows[i];
        if (row->count[0] == row->count[1] && row->wire_bytes[0] == row->wire_bytes[1]) continue;
        json_array_append_new(
            list, json_pack("{s:O?, s:O?, s:O?, s:{s:I, s:f}, s:{s:I, s:f}}", "op",
                            json_object_get(row->first, "op"), "tensor",
                            json_object_get(row->first, "tensor"), "axes",
                            json_object_get(row->first, "axes"), "a", "count",
                            (json_int_t)row->count[0], "wire_bytes", row->wire_bytes[0], "b",
                            "count", (json_int_t)row->count[1], "wire_bytes", row->wire_bytes[1]));
    }
    octavo_free(rows);
    return list;
}

static json_t *phase_difference(const json_t *a, const json_t *b) {
    const json_t *const phases[2] = {a, b};
    return json_pack("{s:o, s:o, s:o}", "wire_bytes_per_rank",
                     subtract(json_object_get(a, "wire_bytes_per_rank"),
                              json_object_get(b, "wire_bytes_per_rank")),
                     "time", subtract_all(json_object_get(a, "time"), json_object_get(b, "time")),
                     "collectives", differing(phases));
}

/* A JSON text of any bytes: what is not UTF-8 is replaced. */
static json_t *text_of(const char *bytes) {
    octavo_buffer quoted = {0};
    json_t *text = NULL;
    octavo_buffer_json_string(&quoted, bytes, strlen(bytes));
    if (!quoted.failed) text = json_loads(quoted.data, JSON_DECODE_ANY, NULL);
    octavo_buffer_deinit(&quoted);
    return text;
}

json_t *octavo_view_compare(const char *const names[2], json_t *const plans[2]) {
    json_t *difference = json_pack("{s:o}", "memory_per_rank",
                                   subtract_all(json_object_get(plans[0], "memory_per_rank"),
                                                json_object_get(plans[1], "memory_per_rank")));
    for (int i = 0; i < OCTAVO_VIEW_PHASES; i++) {
        const char *name = octavo_view_phase_name(i);
        const json_t *a = json_object_get(plans[0], name), *b = json_object_get(plans[1], name);
        if (a && b && json_object_set_new(difference, name, phase_difference(a, b))) {
            json_decref(difference);
            difference = NULL; /* which json_pack refuses */
        }
    }
    return json_pack("{s:[{s:o, s:O}, {s:o, s:O}], s:o}", "compare", "name", text_of(names[0]),
                     "plan", plans[0], "name", text_of(names[1]), "plan", plans[1], "difference",
                     difference);
}
