/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads safetensors files, alone or sharded with an index, through memory maps. Everything is
 * validated when a model is opened, so that afterwards no getter meets a malformed byte. Opening
 * reads headers only; pages with tensor data are touched when the caller reads them.
 *
 * The format, all numbers little-endian:
 *
 *   file     = length u64, header u8[length], data
 *   header   = a JSON object that begins with '{', at most 100,000,000 bytes, blanks allowed behind
 *   entry    = name: {"dtype": name, "shape": [extent, ...], "data_offsets": [begin, end]}
 *            | "__metadata__": {text: text, ...} (or null)
 *   data     the tensors, row-major: the last axis is contiguous, so a weight that maps n inputs to
 *            m outputs has the shape [m, n]. Offsets count from the start of data.
 *
 * Keys are unique. By ascending offsets the tensors follow one another without overlap or hole, and
 * the last ends with the file. A shape may be empty (one value) and an extent may be 0 (none).
 * Elements smaller than a byte are packed without gaps and fill whole bytes.
 *
 * A sharded model has an index, NAME.safetensors.index.json, an object whose "weight_map" gives for
 * each tensor the name of the file beside the index that holds it. The index is the authority: what
 * a shard holds beyond it is ignored, so that of two tensors of one name in two shards the index
 * says which counts. "metadata.total_size" is not looked at: published files often have it wrong.
 *
 * Threads: an open octavo_safetensors never changes; any function but close may run on any thread.
 * Lifetime: all pointers handed out live until octavo_safetensors_close.
 */
#ifndef OCTAVO_FORMATS_SAFETENSORS_H
#define OCTAVO_FORMATS_SAFETENSORS_H

#include "octavo/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OCTAVO_SAFETENSORS_MAX_HEADER = 100000000, /* the format's */
    OCTAVO_SAFETENSORS_MAX_DIMS = 8,
    OCTAVO_SAFETENSORS_MAX_NAME = 1023,
    OCTAVO_SAFETENSORS_MAX_PARTS = 65535,
};

/* -- element types ---------------------------------------------------------------------------- */

typedef enum octavo_safetensors_dtype {
    OCTAVO_SAFETENSORS_UNKNOWN = 0, /* of a newer format: listed, but not to be used */
    OCTAVO_SAFETENSORS_F64,
    OCTAVO_SAFETENSORS_F32,
    OCTAVO_SAFETENSORS_F16,
    OCTAVO_SAFETENSORS_BF16,
    OCTAVO_SAFETENSORS_F8_E4M3, /* OCP e4m3fn: base/number.h */
    OCTAVO_SAFETENSORS_F8_E5M2,
    OCTAVO_SAFETENSORS_F8_E4M3FNUZ, /* other biases, no negative zero */
    OCTAVO_SAFETENSORS_F8_E5M2FNUZ,
    OCTAVO_SAFETENSORS_F8_E8M0, /* the byte e is 2^(e - 127), 255 is NaN: scales */
    OCTAVO_SAFETENSORS_F6_E2M3,
    OCTAVO_SAFETENSORS_F6_E3M2,
    OCTAVO_SAFETENSORS_F4,
    OCTAVO_SAFETENSORS_C64, /* two f32 */
    OCTAVO_SAFETENSORS_I64,
    OCTAVO_SAFETENSORS_I32,
    OCTAVO_SAFETENSORS_I16,
    OCTAVO_SAFETENSORS_I8,
    OCTAVO_SAFETENSORS_U64,
    OCTAVO_SAFETENSORS_U32,
    OCTAVO_SAFETENSORS_U16,
    OCTAVO_SAFETENSORS_U8,
    OCTAVO_SAFETENSORS_BOOL, /* a byte */
} octavo_safetensors_dtype;

/* Bits of an element; 0 for UNKNOWN and for what is no dtype. */
unsigned octavo_safetensors_dtype_bits(octavo_safetensors_dtype dtype);

/* The name as in files; "?" for UNKNOWN and for what is no dtype. Lives forever. */
const char *octavo_safetensors_dtype_name(octavo_safetensors_dtype dtype);

/* The dtype of a name exactly as in a file, else UNKNOWN. */
octavo_safetensors_dtype octavo_safetensors_dtype_lookup(const char *name);

/* -- opening ---------------------------------------------------------------------------------- */

typedef struct octavo_safetensors octavo_safetensors;

/* Opens a file, or, when the path ends in ".json", an index and all shards that it names. Errors
 * name the file and the tensor at fault:
 *   OCTAVO_ERROR_NOT_FOUND    a file or a shard does not exist
 *   OCTAVO_ERROR_IO           it cannot be read, or is a folder
 *   OCTAVO_ERROR_FORMAT       malformed, cut short; the index names a file outside its folder, or a
 *                             tensor that its shard lacks
 *   OCTAVO_ERROR_UNSUPPORTED  a tensor of more than OCTAVO_SAFETENSORS_MAX_DIMS axes
 *   OCTAVO_ERROR_MEMORY */
OCTAVO_MUST_CHECK octavo_status octavo_safetensors_open(const char *path,
                                                        octavo_safetensors **safetensors,
                                                        octavo_error *error);

/* The same over one file already in memory. The bytes stay the caller's and must outlive
 * *safetensors. `name` stands for the path in messages. */
OCTAVO_MUST_CHECK octavo_status octavo_safetensors_parse(const void *data, size_t size,
                                                         const char *name,
                                                         octavo_safetensors **safetensors,
                                                         octavo_error *error);

/* Takes NULL handles and nulls the handle. */
void octavo_safetensors_close(octavo_safetensors **safetensors);

/* The file or index as it was opened, and the shards, by ascending name; a model of one file is its
 * own only part. */
const char *octavo_safetensors_path(const octavo_safetensors *safetensors);
size_t octavo_safetensors_n_parts(const octavo_safetensors *safetensors);
const char *octavo_safetensors_part_path(const octavo_safetensors *safetensors, size_t part);

/* -- tensors ---------------------------------------------------------------------------------- */

typedef struct octavo_safetensors_tensor {
    const char *name; /* terminated */
    octavo_safetensors_dtype dtype;
    const char *dtype_name;                       /* as in the file, also of an unknown one */
    int n_dims;                                   /* 0..8; 0 is one value */
    uint64_t extent[OCTAVO_SAFETENSORS_MAX_DIMS]; /* outermost first; 1 from n_dims on */
    uint64_t n_values;                            /* product of the extents */
    const uint8_t *data; /* [extent[0], extent[1], ...], `dtype`, row-major; no null pointer */
    size_t bytes;        /* of data; 0 without values */
    bool aligned;        /* data lies on a multiple of the element's bytes in its file. Old writers
                            did not see to that: read through memcpy where this is false */
    size_t part;         /* the file that holds it */
    uint64_t offset;     /* of data, from the start of that file */
} octavo_safetensors_tensor;

/* By part, and in a part by offset: reading all in this order is one ascending pass. */
size_t octavo_safetensors_n_tensors(const octavo_safetensors *safetensors);
const octavo_safetensors_tensor *octavo_safetensors_tensor_at(const octavo_safetensors *safetensors,
                                                              size_t index);

/* Index of a tensor, or -1. O(log n). */
ptrdiff_t octavo_safetensors_tensor_find(const octavo_safetensors *safetensors, const char *name);

/* The tensor of a name, to be used.
 *   OCTAVO_ERROR_NOT_FOUND    names it and the file or index
 *   OCTAVO_ERROR_UNSUPPORTED  its dtype is unknown: the message names that too */
OCTAVO_MUST_CHECK octavo_status
octavo_safetensors_get_tensor(const octavo_safetensors *safetensors, const char *name,
                              const octavo_safetensors_tensor **tensor, octavo_error *error);

/* Pages of bytes [offset, offset + bytes) of the tensor: asks the system to start reading them, and
 * gives those wholly inside back after use (they return when touched again). Nothing happens to
 * bytes that came by octavo_safetensors_parse. */
void octavo_safetensors_will_need(const octavo_safetensors *safetensors,
                                  const octavo_safetensors_tensor *tensor, size_t offset,
                                  size_t bytes);
void octavo_safetensors_drop(const octavo_safetensors *safetensors,
                             const octavo_safetensors_tensor *tensor, size_t offset, size_t bytes);

/* -- metadata --------------------------------------------------------------------------------- */

typedef struct octavo_safetensors_text {
    const char *key;   /* terminated UTF-8, without zeros inside */
    const char *value; /* the same */
} octavo_safetensors_text;

/* The "__metadata__" of one part, in file order; a file without it has none. */
size_t octavo_safetensors_n_metadata(const octavo_safetensors *safetensors, size_t part);
const octavo_safetensors_text *octavo_safetensors_metadata_at(const octavo_safetensors *safetensors,
                                                              size_t part, size_t index);

/* The value of a key, or NULL. O(n): files have a handful. */
const char *octavo_safetensors_metadata(const octavo_safetensors *safetensors, size_t part,
                                        const char *key);

#endif
