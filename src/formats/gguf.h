/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads GGUF model files, versions 2 and 3, little-endian, through a memory map. Everything is
 * validated when a file is opened, so that afterwards no getter meets a malformed byte. Opening
 * reads the header only; pages with tensor data are touched when the caller reads them.
 *
 * The format, all numbers little-endian and none aligned except where said:
 *
 *   file     = magic u8[4] "GGUF", version u32, n_tensors u64, n_metadata u64,
 *              n_metadata x entry, n_tensors x tensor, padding, data
 *   string   = length u64, length bytes (UTF-8 by agreement), no terminator
 *   entry    = key string, type u32, value
 *   type     = 0 u8, 1 i8, 2 u16, 3 i16, 4 u32, 5 i32, 6 f32, 7 bool, 8 string, 9 array,
 *              10 u64, 11 i64, 12 f64
 *   value    = the number; bool is a byte 0 or 1; or a string; or
 *   array    = element type u32, count u64, count values of that type, back to back (an array of
 *              arrays repeats type and count in each element)
 *   tensor   = name string, n_dims u32 (1..4), n_dims x extent u64, element type u32 (ggml_type.h),
 *              offset u64
 *   data     begins at the next multiple of the alignment after the last tensor entry. The
 *            alignment is the entry general.alignment (a power of two), 32 without one. Offsets
 *            count from the start of data and are multiples of the alignment. extent[0] is the
 *            contiguous axis: a weight that maps n inputs to m outputs has extents {n, m} and m
 * rows of n values, each row a whole number of the type's blocks.
 *
 * Keys are unique, and so are tensor names. A model may be split over files named
 * NAME-00001-of-0000N.gguf, ...: each is a whole GGUF file with its own data section and with
 * the entries split.no (from 0), split.count and split.tensors.count (of all parts); the metadata
 * of the model is in the first. Version 1 had 32-bit counts and is not read. In a big-endian file
 * every number is byte-swapped, the version too, which is how one is recognised.
 *
 * Threads: an open octavo_gguf never changes; any function but close may run on any thread.
 * Lifetime: all pointers handed out live until octavo_gguf_close.
 */
#ifndef OCTAVO_FORMATS_GGUF_H
#define OCTAVO_FORMATS_GGUF_H

#include "base/buffer.h"
#include "formats/ggml_type.h"

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OCTAVO_GGUF_MAX_DIMS = 4,
    OCTAVO_GGUF_MAX_DEPTH = 8, /* arrays inside arrays */
    OCTAVO_GGUF_MAX_KEY = 65535,
    OCTAVO_GGUF_MAX_TENSOR_NAME = 1023,
    OCTAVO_GGUF_MIN_ALIGNMENT = 8,
    OCTAVO_GGUF_MAX_ALIGNMENT = 1 << 20,
    OCTAVO_GGUF_DEFAULT_ALIGNMENT = 32,
};

typedef struct octavo_gguf octavo_gguf;

/* -- opening ---------------------------------------------------------------------------------- */

/* Opens a file, or the first part of a split one and with it all the others. Errors name the file
 * and the key or tensor at fault and carry the byte offset:
 *   OCTAVO_ERROR_NOT_FOUND    a file or a part does not exist
 *   OCTAVO_ERROR_IO           it cannot be read, or is a folder
 *   OCTAVO_ERROR_INVALID      a part other than the first
 *   OCTAVO_ERROR_FORMAT       malformed, cut short
 *   OCTAVO_ERROR_UNSUPPORTED  big-endian, another version, a tensor type not in ggml_type.h
 *   OCTAVO_ERROR_MEMORY */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_open(const char *path, octavo_gguf **gguf,
                                                 octavo_error *error);

/* The same over a file of one part already in memory, 64-aligned where its tensors will be computed
 * with. The bytes stay the caller's and must outlive *gguf. `name` stands for the path in
 * messages. */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_parse(const void *data, size_t size, const char *name,
                                                  octavo_gguf **gguf, octavo_error *error);

/* Takes NULL handles and nulls the handle. */
void octavo_gguf_close(octavo_gguf **gguf);

uint32_t octavo_gguf_version(const octavo_gguf *gguf);
size_t octavo_gguf_n_parts(const octavo_gguf *gguf);
const char *octavo_gguf_part_path(const octavo_gguf *gguf, size_t part); /* as in messages */

/* -- tensors ---------------------------------------------------------------------------------- */

typedef struct octavo_gguf_tensor {
    const char *name; /* terminated */
    octavo_ggml_type type;
    int n_dims;                            /* as the file says, 1..4 */
    uint64_t extent[OCTAVO_GGUF_MAX_DIMS]; /* extent[0] is the contiguous row; 1 from n_dims on */
    const uint8_t *data;   /* [extent[3], extent[2], extent[1], extent[0]], `type`, rows packed */
    size_t bytes;          /* of data */
    size_t part;           /* the file that holds it */
    uint64_t offset;       /* of data, from the start of that file */
    uint64_t entry_offset; /* of its description in that file */
} octavo_gguf_tensor;

/* In file order, parts one after another. */
size_t octavo_gguf_n_tensors(const octavo_gguf *gguf);
const octavo_gguf_tensor *octavo_gguf_tensor_at(const octavo_gguf *gguf, size_t index);

/* Index of a tensor, or -1. O(log n). */
ptrdiff_t octavo_gguf_tensor_find(const octavo_gguf *gguf, const char *name);

/* The tensor of a name. OCTAVO_ERROR_NOT_FOUND names it and the file. */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_tensor(const octavo_gguf *gguf, const char *name,
                                                       const octavo_gguf_tensor **tensor,
                                                       octavo_error *error);

/* Pages of bytes [offset, offset + bytes) of the tensor: asks the system to start reading them, and
 * gives those wholly inside back after use (they return when touched again). Nothing happens to
 * bytes that came by octavo_gguf_parse. */
void octavo_gguf_will_need(const octavo_gguf *gguf, const octavo_gguf_tensor *tensor, size_t offset,
                           size_t bytes);
void octavo_gguf_drop(const octavo_gguf *gguf, const octavo_gguf_tensor *tensor, size_t offset,
                      size_t bytes);

/* -- metadata --------------------------------------------------------------------------------- */

typedef enum octavo_gguf_type {
    OCTAVO_GGUF_U8 = 0,
    OCTAVO_GGUF_I8 = 1,
    OCTAVO_GGUF_U16 = 2,
    OCTAVO_GGUF_I16 = 3,
    OCTAVO_GGUF_U32 = 4,
    OCTAVO_GGUF_I32 = 5,
    OCTAVO_GGUF_F32 = 6,
    OCTAVO_GGUF_BOOL = 7,
    OCTAVO_GGUF_STRING = 8,
    OCTAVO_GGUF_ARRAY = 9,
    OCTAVO_GGUF_U64 = 10,
    OCTAVO_GGUF_I64 = 11,
    OCTAVO_GGUF_F64 = 12,
} octavo_gguf_type;

/* "u8", "string", ...; "?" for a value that is no type. Lives forever. */
const char *octavo_gguf_type_name(octavo_gguf_type type);

/* Bytes in the file, not terminated; may hold zeros and invalid UTF-8. */
typedef struct octavo_gguf_string {
    const char *data; /* [size] */
    size_t size;
} octavo_gguf_string;

/* A view of an array. */
typedef struct octavo_gguf_array {
    octavo_gguf_type type; /* of the elements */
    size_t count;
    const uint8_t *data;         /* the elements as in the file: little-endian, unaligned */
    const uint8_t *const *items; /* [count] start of each element, for strings and arrays; NULL for
                                    others and for an array inside an array */
} octavo_gguf_array;

/* In file order; for split files, the first part's. */
size_t octavo_gguf_n_metadata(const octavo_gguf *gguf);
const char *octavo_gguf_metadata_key(const octavo_gguf *gguf, size_t index); /* terminated */
octavo_gguf_type octavo_gguf_metadata_type(const octavo_gguf *gguf, size_t index);

/* Index of a key, or -1. O(log n). */
ptrdiff_t octavo_gguf_metadata_find(const octavo_gguf *gguf, const char *key);

/* Appends the value as JSON. An array longer than `max_items` becomes
 * {"type": "string", "count": 262144, "first": [the first max_items elements]}. Numbers that JSON
 * lacks become the strings "nan", "inf" and "-inf". */
void octavo_gguf_metadata_json(const octavo_gguf *gguf, size_t index, size_t max_items,
                               octavo_buffer *buffer);

/* The value of a key. Integers of any width are taken where they fit; f32 takes f64 too, rounded.
 *   OCTAVO_ERROR_NOT_FOUND  no such key; the message names it (not from the _or forms, which then
 *                           give `fallback`)
 *   OCTAVO_ERROR_FORMAT     another type, or out of range */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_u32(const octavo_gguf *gguf, const char *key,
                                                    uint32_t *value, octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_u64(const octavo_gguf *gguf, const char *key,
                                                    uint64_t *value, octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_f32(const octavo_gguf *gguf, const char *key,
                                                    float *value, octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_bool(const octavo_gguf *gguf, const char *key,
                                                     bool *value, octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_string(const octavo_gguf *gguf, const char *key,
                                                       octavo_gguf_string *value,
                                                       octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_u32_or(const octavo_gguf *gguf, const char *key,
                                                       uint32_t fallback, uint32_t *value,
                                                       octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_u64_or(const octavo_gguf *gguf, const char *key,
                                                       uint64_t fallback, uint64_t *value,
                                                       octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_f32_or(const octavo_gguf *gguf, const char *key,
                                                       float fallback, float *value,
                                                       octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_bool_or(const octavo_gguf *gguf, const char *key,
                                                        bool fallback, bool *value,
                                                        octavo_error *error);
/* `fallback` is a terminated text that outlives the view; NULL gives an empty view with NULL data.
 */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_string_or(const octavo_gguf *gguf, const char *key,
                                                          const char *fallback,
                                                          octavo_gguf_string *value,
                                                          octavo_error *error);

/* The array of a key, with statuses as above: of any elements; of strings; of integers of any width
 * or bools; of f32 or f64. */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_array(const octavo_gguf *gguf, const char *key,
                                                      octavo_gguf_array *array,
                                                      octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_strings(const octavo_gguf *gguf, const char *key,
                                                        octavo_gguf_array *array,
                                                        octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_integers(const octavo_gguf *gguf, const char *key,
                                                         octavo_gguf_array *array,
                                                         octavo_error *error);
OCTAVO_MUST_CHECK octavo_status octavo_gguf_get_floats(const octavo_gguf *gguf, const char *key,
                                                       octavo_gguf_array *array,
                                                       octavo_error *error);

/* Element `index` < count of an array whose elements are of that kind. O(1), except that in an
 * array inside an array strings and arrays are found by walking over those before. Integers beyond
 * the result's range give its nearest value. */
octavo_gguf_string octavo_gguf_array_string(const octavo_gguf_array *array, size_t index);
int32_t octavo_gguf_array_i32(const octavo_gguf_array *array, size_t index);
int64_t octavo_gguf_array_i64(const octavo_gguf_array *array, size_t index);
float octavo_gguf_array_f32(const octavo_gguf_array *array, size_t index);
octavo_gguf_array octavo_gguf_array_array(const octavo_gguf_array *array, size_t index);

#endif
