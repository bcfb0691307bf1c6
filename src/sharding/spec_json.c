/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs from JSON: [null, ["model", "expert"]].
 */
#include "base/error.h"
#include "sharding/spec.h"

#include <string.h>

#define RULE_HINT                                                                                  \
    "a rule is null or an array with null, \"axis\" or [\"axis\", \"axis\"] for each axis"

static octavo_status add_name(octavo_spec *spec, int entry, const json_t *name, const char *axes,
                              const char *where, octavo_error *error) {
    if (!json_is_string(name))
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: the entry for axis %d (%c) is not made of names; " RULE_HINT, where,
                           entry + 1, axes[entry]);
    return octavo_spec_add(spec, entry, json_string_value(name), json_string_length(name), axes,
                           where, error);
}

static octavo_status read_entry(octavo_spec *spec, int entry, const json_t *value, const char *axes,
                                const char *where, octavo_error *error) {
    if (json_is_null(value)) return OCTAVO_OK;
    if (!json_is_array(value)) return add_name(spec, entry, value, axes, where, error);
    for (size_t i = 0; i < json_array_size(value); i++) {
        octavo_status status = add_name(spec, entry, json_array_get(value, i), axes, where, error);
        if (status) return status;
    }
    return OCTAVO_OK;
}

octavo_status octavo_spec_from_json(const json_t *rule, const char *axes, const char *where,
                                    octavo_spec *spec, octavo_error *error) {
    octavo_spec read = octavo_spec_whole((int)strlen(axes));
    octavo_status status = OCTAVO_OK;
    if (json_is_string(rule) && read.n == 1) {
        status = read_entry(&read, 0, rule, axes, where, error);
        if (!status) *spec = read;
        return status;
    }
    if (!json_is_null(rule) && !json_is_array(rule))
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "%s: this is no rule; " RULE_HINT " (%s)",
                           where, axes);
    if (json_is_array(rule) && json_array_size(rule) != (size_t)read.n)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "%s: the number of entries, %zu, is not that of the tensor's axes, %d "
                           "(%s); give one for each, null for a whole one",
                           where, json_array_size(rule), read.n, axes);
    for (int i = 0; json_is_array(rule) && i < read.n && !status; i++)
        status = read_entry(&read, i, json_array_get(rule, (size_t)i), axes, where, error);
    if (!status) *spec = read;
    return status;
}
