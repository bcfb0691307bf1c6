/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files gguf*.c share: the open model, its parts and metadata tables, and values as they
 * lie in the file. Whatever is in these structs has been validated.
 */
#ifndef OCTAVO_FORMATS_GGUF_INTERNAL_H
#define OCTAVO_FORMATS_GGUF_INTERNAL_H

#include "base/map.h"
#include "base/memory.h"
#include "formats/gguf.h"

typedef struct octavo_gguf_entry {
    const char *key; /* terminated, in the arena */
    size_t offset;   /* of the entry in its file */
    octavo_gguf_type type;
    const uint8_t *data;     /* the value as in the file */
    octavo_gguf_array array; /* its view, when type is OCTAVO_GGUF_ARRAY */
} octavo_gguf_entry;

typedef struct octavo_gguf_part {
    octavo_map map;      /* empty for borrowed bytes */
    const uint8_t *data; /* [size] */
    size_t size;
    char *path;
    uint32_t version;
    uint32_t alignment;
    size_t n_entries;
    octavo_gguf_entry *entries;       /* [n_entries], file order */
    const octavo_gguf_entry **by_key; /* [n_entries], ascending keys */
} octavo_gguf_part;

struct octavo_gguf {
    size_t n_parts;
    octavo_gguf_part *parts; /* [n_parts] */
    size_t n_tensors;
    octavo_gguf_tensor *tensors;        /* [n_tensors], file order */
    const octavo_gguf_tensor **by_name; /* [n_tensors], ascending names */
    octavo_arena arena;                 /* keys, names, array indexes */
};

/* Parses parts[part], whose data, size and path are set, and appends its tensors. */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_part_parse(octavo_gguf *gguf, size_t part,
                                                       octavo_error *error);

/* Getters on one part's own metadata; see octavo_gguf_get_u64_or. */
const octavo_gguf_entry *octavo_gguf_part_entry(const octavo_gguf_part *part, const char *key);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_part_u64_or(const octavo_gguf_part *part,
                                                        const char *key, uint64_t fallback,
                                                        uint64_t *value, octavo_error *error);

/* -- values in the file ----------------------------------------------------------------------- */

static inline uint16_t octavo_gguf_load_u16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t octavo_gguf_load_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t octavo_gguf_load_u64(const uint8_t *p) {
    return octavo_gguf_load_u32(p) | (uint64_t)octavo_gguf_load_u32(p + 4) << 32;
}

/* Bytes of a number or bool; 0 for strings, arrays and what is no type. */
size_t octavo_gguf_type_bytes(octavo_gguf_type type);

/* An integer or bool; negative ones in two's complement with *negative set. */
uint64_t octavo_gguf_load_integer(octavo_gguf_type type, const uint8_t *data, bool *negative);
/* An f32 or f64. */
double octavo_gguf_load_float(octavo_gguf_type type, const uint8_t *data);
octavo_gguf_string octavo_gguf_load_string(const uint8_t *data);
/* The view of an array inside an array: without an index. */
octavo_gguf_array octavo_gguf_load_array(const uint8_t *data);

/* The byte after a value that begins at `data`. */
const uint8_t *octavo_gguf_skip(octavo_gguf_type type, const uint8_t *data);

static inline bool octavo_gguf_type_is_integer(octavo_gguf_type type) {
    return type <= OCTAVO_GGUF_I32 || type == OCTAVO_GGUF_U64 || type == OCTAVO_GGUF_I64;
}

static inline bool octavo_gguf_type_is_float(octavo_gguf_type type) {
    return type == OCTAVO_GGUF_F32 || type == OCTAVO_GGUF_F64;
}

#endif
