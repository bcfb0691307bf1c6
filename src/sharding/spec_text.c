/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs as text: "(data, -, model+expert)".
 */
#include "base/error.h"
#include "sharding/quote.h"
#include "sharding/spec.h"

#include <stdio.h>
#include <string.h>

bool octavo_spec_equal(const octavo_spec *a, const octavo_spec *b) {
    if (a->n != b->n) return false;
    for (int i = 0; i < a->n; i++)
        if (!octavo_split_equal(&a->split[i], &b->split[i])) return false;
    return true;
}

octavo_spec octavo_spec_whole(int n) {
    return (octavo_spec){.n = n};
}

void octavo_spec_print(const octavo_spec *spec, char text[OCTAVO_SPEC_TEXT]) {
    size_t at = 0;
    for (int i = 0; i < spec->n; i++) {
        const octavo_split *split = &spec->split[i];
        at += (size_t)snprintf(text + at, OCTAVO_SPEC_TEXT - at, "%s%s", i ? ", " : "(",
                               split->n ? "" : "-");
        for (int j = 0; j < split->n; j++)
            at += (size_t)snprintf(text + at, OCTAVO_SPEC_TEXT - at, "%s%s", j ? "+" : "",
                                   octavo_mesh_axis_name(split->axis[j]));
    }
    snprintf(text + at, OCTAVO_SPEC_TEXT - at, ")");
}

octavo_status octavo_spec_add(octavo_spec *spec, int entry, const char *name, size_t length,
                              const char *axes, const char *where, octavo_error *error) {
    const int axis = octavo_mesh_axis_find(name, length);
    if (axis < 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: unknown mesh axis %s for %c; axes are data, expert, seq and model",
                           where, octavo_quote(name, length).text, axes[entry]);
    for (int i = 0; i < spec->n; i++)
        if (octavo_split_has(&spec->split[i], axis))
            return octavo_fail(error, OCTAVO_ERROR_INVALID,
                               "%s: mesh axis \"%s\" splits axis %d (%c) and again axis %d (%c); "
                               "it may split one axis of a tensor, once",
                               where, octavo_mesh_axis_name(axis), i + 1, axes[i], entry + 1,
                               axes[entry]);
    spec->split[entry] = octavo_split_add(spec->split[entry], axis);
    return OCTAVO_OK;
}

/* "a+b" or "-". */
static octavo_status read_entry(const char *text, size_t length, int entry, const char *axes,
                                const char *where, octavo_spec *spec, octavo_error *error) {
    if (length == 1 && *text == '-') return OCTAVO_OK;
    for (size_t at = 0; at <= length;) {
        const char *plus = memchr(text + at, '+', length - at);
        const size_t end = plus ? (size_t)(plus - text) : length;
        octavo_status status =
            octavo_spec_add(spec, entry, text + at, end - at, axes, where, error);
        if (status) return status;
        at = end + 1;
    }
    return OCTAVO_OK;
}

octavo_status octavo_spec_parse(const char *text, const char *axes, const char *where,
                                octavo_spec *spec, octavo_error *error) {
    const size_t length = strlen(text);
    octavo_spec read = octavo_spec_whole((int)strlen(axes));
    int entry = 0;
    if (length < 3 || text[0] != '(' || text[length - 1] != ')')
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: %s is no rule; write one as \"(data, model+expert, -)\"", where,
                           octavo_quote(text, length).text);
    for (const char *at = text + 1, *end = text + length - 1; at <= end; entry++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        if (entry < read.n) {
            octavo_status status =
                read_entry(at, (size_t)(stop - at), entry, axes, where, &read, error);
            if (status) return status;
        }
        at = stop + 1;
        if (comma && *at == ' ') at++;
    }
    if (entry != read.n)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: the number of entries of %s, %d, is not that of the tensor's axes, "
                           "%d (%s); give one for each",
                           where, octavo_quote(text, length).text, entry, read.n, axes);
    *spec = read;
    return OCTAVO_OK;
}
