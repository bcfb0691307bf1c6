/* SPDX-License-Identifier: Apache-2.0
 *
 * Metadata values as they lie in a validated file: loading numbers, stepping over values, elements
 * of arrays. Nothing here checks bounds; the parser has.
 */
#include "base/compiler.h"
#include "formats/gguf_internal.h"

#include <string.h>

/* By octavo_gguf_type. */
static const struct {
    const char *name;
    size_t bytes;
} value_types[] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8},
};

const char *octavo_gguf_type_name(octavo_gguf_type type) {
    return (size_t)type < OCTAVO_COUNT(value_types) ? value_types[type].name : "?";
}

size_t octavo_gguf_type_bytes(octavo_gguf_type type) {
    return (size_t)type < OCTAVO_COUNT(value_types) ? value_types[type].bytes : 0;
}

uint64_t octavo_gguf_load_integer(octavo_gguf_type type, const uint8_t *data, bool *negative) {
    int64_t i;
    *negative = false;
    switch (type) {
    case OCTAVO_GGUF_U8:
    case OCTAVO_GGUF_BOOL:
        return *data;
    case OCTAVO_GGUF_U16:
        return octavo_gguf_load_u16(data);
    case OCTAVO_GGUF_U32:
        return octavo_gguf_load_u32(data);
    case OCTAVO_GGUF_U64:
        return octavo_gguf_load_u64(data);
    case OCTAVO_GGUF_I8:
        i = (int8_t)*data;
        break;
    case OCTAVO_GGUF_I16:
        i = (int16_t)octavo_gguf_load_u16(data);
        break;
    case OCTAVO_GGUF_I32:
        i = (int32_t)octavo_gguf_load_u32(data);
        break;
    case OCTAVO_GGUF_I64:
        i = (int64_t)octavo_gguf_load_u64(data);
        break;
    default:
        octavo_assert(!"an integer type");
        return 0;
    }
    *negative = i < 0;
    return (uint64_t)i;
}

double octavo_gguf_load_float(octavo_gguf_type type, const uint8_t *data) {
    if (type == OCTAVO_GGUF_F32) {
        uint32_t bits = octavo_gguf_load_u32(data);
        float value;
        memcpy(&value, &bits, sizeof(value));
        return (double)value;
    }
    octavo_assert(type == OCTAVO_GGUF_F64);
    uint64_t bits = octavo_gguf_load_u64(data);
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

octavo_gguf_string octavo_gguf_load_string(const uint8_t *data) {
    return (octavo_gguf_string){.data = (const char *)data + 8,
                                .size = (size_t)octavo_gguf_load_u64(data)};
}

octavo_gguf_array octavo_gguf_load_array(const uint8_t *data) {
    return (octavo_gguf_array){.type = (octavo_gguf_type)octavo_gguf_load_u32(data),
                               .count = (size_t)octavo_gguf_load_u64(data + 4),
                               .data = data + 12};
}

/* Recursion is bounded by OCTAVO_GGUF_MAX_DEPTH. */
const uint8_t *octavo_gguf_skip(octavo_gguf_type type, const uint8_t *data) {
    if (type == OCTAVO_GGUF_STRING) {
        octavo_gguf_string string = octavo_gguf_load_string(data);
        return data + 8 + string.size;
    }
    if (type != OCTAVO_GGUF_ARRAY) return data + octavo_gguf_type_bytes(type);
    octavo_gguf_array array = octavo_gguf_load_array(data);
    size_t bytes = octavo_gguf_type_bytes(array.type);
    if (bytes > 0) return array.data + array.count * bytes;
    const uint8_t *end = array.data;
    for (size_t i = 0; i < array.count; i++) {
        end = octavo_gguf_skip(array.type, end);
    }
    return end;
}

static const uint8_t *element(const octavo_gguf_array *array, size_t index) {
    octavo_assert(index < array->count);
    size_t bytes = octavo_gguf_type_bytes(array->type);
    if (bytes > 0) return array->data + index * bytes;
    if (array->items != NULL) return array->items[index];
    const uint8_t *data = array->data;
    for (size_t i = 0; i < index; i++) {
        data = octavo_gguf_skip(array->type, data);
    }
    return data;
}

octavo_gguf_string octavo_gguf_array_string(const octavo_gguf_array *array, size_t index) {
    octavo_assert(array->type == OCTAVO_GGUF_STRING);
    return octavo_gguf_load_string(element(array, index));
}

octavo_gguf_array octavo_gguf_array_array(const octavo_gguf_array *array, size_t index) {
    octavo_assert(array->type == OCTAVO_GGUF_ARRAY);
    return octavo_gguf_load_array(element(array, index));
}

int64_t octavo_gguf_array_i64(const octavo_gguf_array *array, size_t index) {
    bool negative;
    uint64_t value = octavo_gguf_load_integer(array->type, element(array, index), &negative);
    if (!negative && value > INT64_MAX) return INT64_MAX;
    return (int64_t)value;
}

int32_t octavo_gguf_array_i32(const octavo_gguf_array *array, size_t index) {
    int64_t value = octavo_gguf_array_i64(array, index);
    if (value > INT32_MAX) return INT32_MAX;
    if (value < INT32_MIN) return INT32_MIN;
    return (int32_t)value;
}

float octavo_gguf_array_f32(const octavo_gguf_array *array, size_t index) {
    return (float)octavo_gguf_load_float(array->type, element(array, index));
}
