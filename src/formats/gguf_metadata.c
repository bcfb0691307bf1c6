/* SPDX-License-Identifier: Apache-2.0
 *
 * Getters of metadata: find the key, check the type, convert with range check. Each error names key
 * and file.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "formats/gguf_internal.h"

#include <math.h>
#include <string.h>

/* -- finding ---------------------------------------------------------------------------------- */

/* Position in by_key, or -1. */
static ptrdiff_t find(const octavo_gguf_part *part, const char *key) {
    size_t low = 0, high = part->n_entries;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(part->by_key[middle]->key, key);
        if (order == 0) return (ptrdiff_t)middle;
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

const octavo_gguf_entry *octavo_gguf_part_entry(const octavo_gguf_part *part, const char *key) {
    ptrdiff_t position = find(part, key);
    return position >= 0 ? part->by_key[position] : NULL;
}

size_t octavo_gguf_n_metadata(const octavo_gguf *gguf) {
    return gguf->parts[0].n_entries;
}

const char *octavo_gguf_metadata_key(const octavo_gguf *gguf, size_t index) {
    octavo_assert(index < gguf->parts[0].n_entries);
    return gguf->parts[0].entries[index].key;
}

octavo_gguf_type octavo_gguf_metadata_type(const octavo_gguf *gguf, size_t index) {
    octavo_assert(index < gguf->parts[0].n_entries);
    return gguf->parts[0].entries[index].type;
}

ptrdiff_t octavo_gguf_metadata_find(const octavo_gguf *gguf, const char *key) {
    const octavo_gguf_entry *entry = octavo_gguf_part_entry(&gguf->parts[0], key);
    return entry != NULL ? entry - gguf->parts[0].entries : -1;
}

/* -- converting ------------------------------------------------------------------------------- */

static octavo_status fail_type(const octavo_gguf_part *part, const octavo_gguf_entry *entry,
                               const char *wanted, octavo_error *error) {
    bool is_array = entry->type == OCTAVO_GGUF_ARRAY;
    return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, (int64_t)entry->offset,
                          "metadata key \"%.120s\" (%s): is %s%s where %s is needed; convert the "
                          "model again",
                          entry->key, part->path, is_array ? "an array of " : "",
                          octavo_gguf_type_name(is_array ? entry->array.type : entry->type),
                          wanted);
}

static octavo_status fail_missing(const octavo_gguf_part *part, const char *key,
                                  octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_NOT_FOUND,
                       "metadata key \"%.120s\" (%s): missing; convert the model again", key,
                       part->path);
}

static octavo_status entry_u64(const octavo_gguf_part *part, const octavo_gguf_entry *entry,
                               uint64_t limit, uint64_t *value, octavo_error *error) {
    if (!octavo_gguf_type_is_integer(entry->type)) {
        return fail_type(part, entry, "an integer", error);
    }
    bool negative;
    uint64_t bits = octavo_gguf_load_integer(entry->type, entry->data, &negative);
    if (negative || bits > limit) {
        return octavo_fail_at(error, OCTAVO_ERROR_FORMAT, (int64_t)entry->offset,
                              "metadata key \"%.120s\" (%s): %s%llu is not within 0 to %llu; "
                              "convert the model again",
                              entry->key, part->path, negative ? "-" : "",
                              (unsigned long long)(negative ? 0 - bits : bits),
                              (unsigned long long)limit);
    }
    *value = bits;
    return OCTAVO_OK;
}

static octavo_status entry_f32(const octavo_gguf_part *part, const octavo_gguf_entry *entry,
                               float *value, octavo_error *error) {
    if (!octavo_gguf_type_is_float(entry->type)) {
        return fail_type(part, entry, "a float", error);
    }
    double wide = octavo_gguf_load_float(entry->type, entry->data);
    float narrow = (float)wide;
    if (isinf(narrow) && !isinf(wide)) {
        return octavo_fail_at(
            error, OCTAVO_ERROR_FORMAT, (int64_t)entry->offset,
            "metadata key \"%.120s\" (%s): %g is beyond single precision; convert "
            "the model again",
            entry->key, part->path, wide);
    }
    *value = narrow;
    return OCTAVO_OK;
}

static octavo_status entry_bool(const octavo_gguf_part *part, const octavo_gguf_entry *entry,
                                bool *value, octavo_error *error) {
    if (entry->type != OCTAVO_GGUF_BOOL) return fail_type(part, entry, "a bool", error);
    *value = *entry->data != 0;
    return OCTAVO_OK;
}

static octavo_status entry_string(const octavo_gguf_part *part, const octavo_gguf_entry *entry,
                                  octavo_gguf_string *value, octavo_error *error) {
    if (entry->type != OCTAVO_GGUF_STRING) return fail_type(part, entry, "a string", error);
    *value = octavo_gguf_load_string(entry->data);
    return OCTAVO_OK;
}

/* -- scalars ---------------------------------------------------------------------------------- */

octavo_status octavo_gguf_part_u64_or(const octavo_gguf_part *part, const char *key,
                                      uint64_t fallback, uint64_t *value, octavo_error *error) {
    const octavo_gguf_entry *entry = octavo_gguf_part_entry(part, key);
    if (entry != NULL) return entry_u64(part, entry, UINT64_MAX, value, error);
    *value = fallback;
    return OCTAVO_OK;
}

octavo_status octavo_gguf_get_u64(const octavo_gguf *gguf, const char *key, uint64_t *value,
                                  octavo_error *error) {
    const octavo_gguf_part *part = &gguf->parts[0];
    const octavo_gguf_entry *entry = octavo_gguf_part_entry(part, key);
    if (entry == NULL) return fail_missing(part, key, error);
    return entry_u64(part, entry, UINT64_MAX, value, error);
}

octavo_status octavo_gguf_get_u64_or(const octavo_gguf *gguf, const char *key, uint64_t fallback,
                                     uint64_t *value, octavo_error *error) {
    return octavo_gguf_part_u64_or(&gguf->parts[0], key, fallback, value, error);
}

octavo_status octavo_gguf_get_u32(const octavo_gguf *gguf, const char *key, uint32_t *value,
                                  octavo_error *error) {
    const octavo_gguf_part *part = &gguf->parts[0];
    const octavo_gguf_entry *entry = octavo_gguf_part_entry(part, key);
    if (entry == NULL) return fail_missing(part, key, error);
    uint64_t wide = 0;
    octavo_status status = entry_u64(part, entry, UINT32_MAX, &wide, error);
    if (status == OCTAVO_OK) *value = (uint32_t)wide;
    return status;
}

octavo_status octavo_gguf_get_u32_or(const octavo_gguf *gguf, const char *key, uint32_t fallback,
                                     uint32_t *value, octavo_error *error) {
    if (find(&gguf->parts[0], key) >= 0) return octavo_gguf_get_u32(gguf, key, value, error);
    *value = fallback;
    return OCTAVO_OK;
}

octavo_status octavo_gguf_get_f32(const octavo_gguf *gguf, const char *key, float *value,
                                  octavo_error *error) {
    const octavo_gguf_part *part = &gguf->parts[0];
    const octavo_gguf_entry *entry = octavo_gguf_part_entry(part, key);
    if (entry == NULL) return fail_missing(part, key, error);
    return entry_f32(part, entry, value, error);
}

octavo_status octavo_gguf_get_f32_or(const octavo_gguf *gguf, const char *key, float fallback,
                                     float *value, octavo_error *error) {
    if (find(&gguf->parts[0], key) >= 0) return octavo_gguf_get_f32(gguf, key, value, error);
    *value = fallback;
    return OCTAVO_OK;
}

octavo_status octavo_gguf_get_bool(const octavo_gguf *gguf, const char *key, bool *value,
                                   octavo_error *error) {
    const octavo_gguf_part *part = &gguf->parts[0];
    const octavo_gguf_entry *entry = octavo_gguf_part_entry(part, key);
    if (entry == NULL) return fail_missing(part, key, error);
    return entry_bool(part, entry, value, error);
}

octavo_status octavo_gguf_get_bool_or(const octavo_gguf *gguf, const char *key, bool fallback,
                                      bool *value, octavo_error *error) {
    if (find(&gguf->parts[0], key) >= 0) return octavo_gguf_get_bool(gguf, key, value, error);
    *value = fallback;
    return OCTAVO_OK;
}

octavo_status octavo_gguf_get_string(const octavo_gguf *gguf, const char *key,
                                     octavo_gguf_string *value, octavo_error *error) {
    const octavo_gguf_part *part = &gguf->parts[0];
    const octavo_gguf_entry *entry = octavo_gguf_part_entry(part, key);
    if (entry == NULL) return fail_missing(part, key, error);
    return entry_string(part, entry, value, error);
}

octavo_status octavo_gguf_get_string_or(const octavo_gguf *gguf, const char *key,
                                        const char *fallback, octavo_gguf_string *value,
                                        octavo_error *error) {
    if (find(&gguf->parts[0], key) >= 0) return octavo_gguf_get_string(gguf, key, value, error);
    *value =
        (octavo_gguf_string){.data = fallback, .size = fallback != NULL ? strlen(fallback) : 0};
    return OCTAVO_OK;
}

/* -- arrays ----------------------------------------------------------------------------------- */

static bool any_type(octavo_gguf_type type) {
    (void)type;
    return true;
}

static bool is_string(octavo_gguf_type type) {
    return type == OCTAVO_GGUF_STRING;
}

static bool is_integer_or_bool(octavo_gguf_type type) {
    return octavo_gguf_type_is_integer(type) || type == OCTAVO_GGUF_BOOL;
}

static octavo_status get_array(const octavo_gguf *gguf, const char *key,
                               bool (*accepts)(octavo_gguf_type), const char *wanted,
                               octavo_gguf_array *array, octavo_error *error) {
    const octavo_gguf_part *part = &gguf->parts[0];
    const octavo_gguf_entry *entry = octavo_gguf_part_entry(part, key);
    if (entry == NULL) return fail_missing(part, key, error);
    if (entry->type != OCTAVO_GGUF_ARRAY || !accepts(entry->array.type)) {
        return fail_type(part, entry, wanted, error);
    }
    *array = entry->array;
    return OCTAVO_OK;
}

octavo_status octavo_gguf_get_array(const octavo_gguf *gguf, const char *key,
                                    octavo_gguf_array *array, octavo_error *error) {
    return get_array(gguf, key, any_type, "an array", array, error);
}

octavo_status octavo_gguf_get_strings(const octavo_gguf *gguf, const char *key,
                                      octavo_gguf_array *array, octavo_error *error) {
    return get_array(gguf, key, is_string, "an array of strings", array, error);
}

octavo_status octavo_gguf_get_integers(const octavo_gguf *gguf, const char *key,
                                       octavo_gguf_array *array, octavo_error *error) {
    return get_array(gguf, key, is_integer_or_bool, "an array of integers", array, error);
}

octavo_status octavo_gguf_get_floats(const octavo_gguf *gguf, const char *key,
                                     octavo_gguf_array *array, octavo_error *error) {
    return get_array(gguf, key, octavo_gguf_type_is_float, "an array of floats", array, error);
}
