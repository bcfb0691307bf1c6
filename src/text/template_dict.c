/* SPDX-License-Identifier: Apache-2.0
 *
 * Dicts of a render: entries in order of insertion, found by scanning while there are few and by an
 * open-addressed index of twice their number once there are more. Probes are charged to the run, so
 * that keys made to collide cost their author, not us.
 */
#include "text/template_value.h"

#include <math.h>
#include <string.h>

#define SCAN_MAX 8

octavo_tpl_dict *octavo_tpl_dict_new(octavo_tpl_run *run, size_t capacity) {
    octavo_tpl_dict *dict = octavo_tpl_alloc(run, 1, sizeof *dict);
    octavo_tpl_entry *entries = octavo_tpl_alloc(run, capacity, sizeof *entries);
    if (dict == NULL || entries == NULL) return NULL;
    *dict = (octavo_tpl_dict){.entries = entries, .capacity = capacity};
    return dict;
}

static uint64_t mix(uint64_t h) {
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    return h;
}

static uint64_t hash_bytes(const char *data, size_t size) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)data[i]) * 0x100000001b3u;
    return mix(h);
}

/* Equal numbers hash alike, whatever their type. */
static uint64_t hash_number(octavo_tpl_value number) {
    int64_t integer;
    if (octavo_tpl_is_integer(number, &integer)) return mix((uint64_t)integer);
    double real = number.as.real;
    if (real >= -9.2e18 && real <= 9.2e18 && floor(real) >= real)
        return mix((uint64_t)(int64_t)real);
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return mix(bits);
}

static uint64_t hash_value(octavo_tpl_run *run, octavo_tpl_value key, unsigned depth) {
    if (octavo_tpl_is_number(key)) return hash_number(key);
    if (key.kind == OCTAVO_TPL_NONE || key.kind == OCTAVO_TPL_UNDEFINED) return key.kind;
    if (key.kind == OCTAVO_TPL_STRING) {
        if (!octavo_tpl_charge(run, key.as.string->size / 64)) return 0;
        return hash_bytes(key.as.string->data, key.as.string->size);
    }
    if (key.kind == OCTAVO_TPL_TUPLE && depth < 32) {
        uint64_t h = 1;
        if (!octavo_tpl_charge(run, key.as.list->count)) return 0;
        for (size_t i = 0; i < key.as.list->count; i++)
            h = mix(h * 31 + hash_value(run, key.as.list->items[i], depth + 1));
        return h;
    }
    octavo_tpl_fail(run, "%s cannot be the key of a dict", octavo_tpl_type(key));
    return 0;
}

/* Entry number, or -1. `slot` (may be NULL) gets the index slot where the search ended. */
static int64_t find(octavo_tpl_run *run, const octavo_tpl_dict *dict, octavo_tpl_value key,
                    uint64_t hash, size_t *slot) {
    if (dict->index == NULL) {
        for (size_t i = 0; i < dict->count; i++)
            if (dict->entries[i].hash == hash && octavo_tpl_equal(run, dict->entries[i].key, key))
                return (int64_t)i;
        return -1;
    }
    size_t mask = dict->index_size - 1;
    size_t at = (size_t)hash & mask;
    for (; dict->index[at] != 0; at = (at + 1) & mask) {
        const octavo_tpl_entry *entry = &dict->entries[dict->index[at] - 1];
        if (!octavo_tpl_charge(run, 1)) return -1;
        if (entry->hash == hash && octavo_tpl_equal(run, entry->key, key))
            return (int64_t)dict->index[at] - 1;
    }
    if (slot != NULL) *slot = at;
    return -1;
}

static bool build_index(octavo_tpl_run *run, octavo_tpl_dict *dict) {
    size_t size = 32;
    while (size < dict->capacity * 2)
        size *= 2;
    uint32_t *index = octavo_tpl_alloc(run, size, sizeof *index);
    if (index == NULL || !octavo_tpl_charge(run, dict->count)) return false;
    for (size_t i = 0; i < dict->count; i++) {
        size_t at = (size_t)dict->entries[i].hash & (size - 1);
        while (index[at] != 0) {
            if (!octavo_tpl_charge(run, 1)) return false;
            at = (at + 1) & (size - 1);
        }
        index[at] = (uint32_t)i + 1;
    }
    dict->index = index;
    dict->index_size = size;
    return true;
}

static bool grow(octavo_tpl_run *run, octavo_tpl_dict *dict) {
    size_t capacity = dict->capacity < 4 ? 4 : dict->capacity * 2;
    octavo_tpl_entry *entries = octavo_tpl_alloc(run, capacity, sizeof *entries);
    if (entries == NULL) return false;
    if (dict->count > 0) memcpy(entries, dict->entries, dict->count * sizeof *entries);
    dict->entries = entries;
    dict->capacity = capacity;
    if (dict->index != NULL && dict->index_size < capacity * 2) return build_index(run, dict);
    return true;
}

void octavo_tpl_dict_set(octavo_tpl_run *run, octavo_tpl_dict *dict, octavo_tpl_value key,
                         octavo_tpl_value value) {
    uint64_t hash = hash_value(run, key, 0);
    if (octavo_tpl_failed(run)) return;
    int64_t found = find(run, dict, key, hash, NULL);
    if (octavo_tpl_failed(run)) return;
    if (found >= 0) {
        dict->entries[found].value = value;
        return;
    }
    if (dict->count == dict->capacity && !grow(run, dict)) return;
    if (dict->index == NULL && dict->count == SCAN_MAX && !build_index(run, dict)) return;
    if (dict->index != NULL) {
        size_t slot = 0;
        find(run, dict, key, hash, &slot);
        if (octavo_tpl_failed(run)) return;
        dict->index[slot] = (uint32_t)dict->count + 1;
    }
    dict->entries[dict->count++] = (octavo_tpl_entry){key, value, hash};
}

octavo_tpl_value octavo_tpl_dict_get(octavo_tpl_run *run, const octavo_tpl_dict *dict,
                                     octavo_tpl_value key) {
    uint64_t hash = hash_value(run, key, 0);
    if (octavo_tpl_failed(run)) return octavo_tpl_absent();
    int64_t found = find(run, dict, key, hash, NULL);
    return found >= 0 ? dict->entries[found].value : octavo_tpl_absent();
}

octavo_tpl_value octavo_tpl_dict_get_text(octavo_tpl_run *run, const octavo_tpl_dict *dict,
                                          const octavo_tpl_string *key) {
    return octavo_tpl_dict_get(run, dict, octavo_tpl_from_string(key));
}
