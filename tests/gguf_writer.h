/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes small GGUF files for tests, in memory or to disk. Metadata and tensors are gathered in any
 * order and laid out by gguf_writer_finish. Nothing is checked: a test may say what no file
 * should. Memory running out aborts the test.
 *
 *   gguf_writer w;
 *   gguf_writer_init(&w, 3, 32);
 *   gguf_writer_string(&w, "general.architecture", "llama");
 *   gguf_writer_u32(&w, "llama.block_count", 2);
 *   gguf_writer_tensor(&w, "output_norm.weight", OCTAVO_GGML_F32, 1, (uint64_t[]){64}, values,
 * 256); gguf_writer_finish(&w, &size)  -> bytes, the writer's until gguf_writer_deinit
 *   gguf_writer_deinit(&w);
 */
#ifndef OCTAVO_TESTS_GGUF_WRITER_H
#define OCTAVO_TESTS_GGUF_WRITER_H

#include "base/buffer.h"
#include "formats/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct gguf_writer {
    uint32_t version;
    uint32_t alignment;
    uint64_t n_tensors;
    uint64_t n_metadata;
    octavo_buffer metadata; /* entries */
    octavo_buffer tensors;  /* descriptions */
    octavo_buffer data;     /* of tensors, from the start of the data section */
    octavo_buffer file;     /* the result */
} gguf_writer;

/* -- numbers and strings into a buffer -------------------------------------------------------- */

/* Little-endian, at most 8 bytes. */
static inline void gguf_put(octavo_buffer *buffer, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        octavo_buffer_putc(buffer, (char)(value >> (8 * i) & 0xff));
    }
}

static inline void gguf_put_zeros(octavo_buffer *buffer, size_t count) {
    for (size_t i = 0; i < count; i++) {
        octavo_buffer_putc(buffer, 0);
    }
}

static inline void gguf_put_u32(octavo_buffer *buffer, uint32_t value) {
    gguf_put(buffer, value, 4);
}

static inline void gguf_put_u64(octavo_buffer *buffer, uint64_t value) {
    gguf_put(buffer, value, 8);
}

static inline void gguf_put_f32(octavo_buffer *buffer, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    gguf_put(buffer, bits, 4);
}

static inline void gguf_put_f64(octavo_buffer *buffer, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    gguf_put(buffer, bits, 8);
}

static inline void gguf_put_bytes(octavo_buffer *buffer, const void *text, size_t size) {
    gguf_put_u64(buffer, size);
    octavo_buffer_append(buffer, text, size);
}

static inline void gguf_put_string(octavo_buffer *buffer, const char *text) {
    gguf_put_bytes(buffer, text, strlen(text));
}

/* What an array begins with; `count` values of `type` follow. */
static inline void gguf_put_array(octavo_buffer *buffer, octavo_gguf_type type, uint64_t count) {
    gguf_put_u32(buffer, (uint32_t)type);
    gguf_put_u64(buffer, count);
}

/* -- metadata --------------------------------------------------------------------------------- */

/* Begins an entry; the caller puts the value into writer->metadata. */
static inline octavo_buffer *gguf_writer_key(gguf_writer *writer, const char *key,
                                             octavo_gguf_type type) {
    writer->n_metadata++;
    gguf_put_string(&writer->metadata, key);
    gguf_put_u32(&writer->metadata, (uint32_t)type);
    return &writer->metadata;
}

/* Any integer or bool; `value` in two's complement. */
static inline void gguf_writer_integer(gguf_writer *writer, const char *key, octavo_gguf_type type,
                                       int64_t value) {
    static const size_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    gguf_put(gguf_writer_key(writer, key, type), (uint64_t)value, bytes[type]);
}

static inline void gguf_writer_u32(gguf_writer *writer, const char *key, uint32_t value) {
    gguf_writer_integer(writer, key, OCTAVO_GGUF_U32, value);
}

static inline void gguf_writer_f32(gguf_writer *writer, const char *key, float value) {
    gguf_put_f32(gguf_writer_key(writer, key, OCTAVO_GGUF_F32), value);
}

static inline void gguf_writer_f64(gguf_writer *writer, const char *key, double value) {
    gguf_put_f64(gguf_writer_key(writer, key, OCTAVO_GGUF_F64), value);
}

static inline void gguf_writer_bool(gguf_writer *writer, const char *key, bool value) {
    gguf_writer_integer(writer, key, OCTAVO_GGUF_BOOL, value);
}

static inline void gguf_writer_string(gguf_writer *writer, const char *key, const char *value) {
    gguf_put_string(gguf_writer_key(writer, key, OCTAVO_GGUF_STRING), value);
}

/* Begins an array entry; the caller puts `count` values into what is returned. */
static inline octavo_buffer *gguf_writer_array(gguf_writer *writer, const char *key,
                                               octavo_gguf_type type, uint64_t count) {
    octavo_buffer *buffer = gguf_writer_key(writer, key, OCTAVO_GGUF_ARRAY);
    gguf_put_array(buffer, type, count);
    return buffer;
}

static inline void gguf_writer_strings(gguf_writer *writer, const char *key,
                                       const char *const *values, size_t count) {
    octavo_buffer *buffer = gguf_writer_array(writer, key, OCTAVO_GGUF_STRING, count);
    for (size_t i = 0; i < count; i++) {
        gguf_put_string(buffer, values[i]);
    }
}

static inline void gguf_writer_i32s(gguf_writer *writer, const char *key, const int32_t *values,
                                    size_t count) {
    octavo_buffer *buffer = gguf_writer_array(writer, key, OCTAVO_GGUF_I32, count);
    for (size_t i = 0; i < count; i++) {
        gguf_put_u32(buffer, (uint32_t)values[i]);
    }
}

static inline void gguf_writer_f32s(gguf_writer *writer, const char *key, const float *values,
                                    size_t count) {
    octavo_buffer *buffer = gguf_writer_array(writer, key, OCTAVO_GGUF_F32, count);
    for (size_t i = 0; i < count; i++) {
        gguf_put_f32(buffer, values[i]);
    }
}

/* -- tensors ---------------------------------------------------------------------------------- */

/* The description alone, with any type and any offset from the start of the data section. */
static inline void gguf_writer_description(gguf_writer *writer, const char *name, uint32_t type,
                                           uint32_t n_dims, const uint64_t *extent,
                                           uint64_t offset) {
    writer->n_tensors++;
    gguf_put_string(&writer->tensors, name);
    gguf_put_u32(&writer->tensors, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) {
        gguf_put_u64(&writer->tensors, extent[i]);
    }
    gguf_put_u32(&writer->tensors, type);
    gguf_put_u64(&writer->tensors, offset);
}

static inline void gguf_writer_pad(octavo_buffer *buffer, uint32_t alignment) {
    while (buffer->size % alignment != 0 && !buffer->failed) {
        octavo_buffer_putc(buffer, 0);
    }
}

/* Description and data, behind those before. `data` [bytes]; NULL for zeros. */
static inline void gguf_writer_tensor(gguf_writer *writer, const char *name, octavo_ggml_type type,
                                      uint32_t n_dims, const uint64_t *extent, const void *data,
                                      size_t bytes) {
    gguf_writer_pad(&writer->data, writer->alignment);
    gguf_writer_description(writer, name, (uint32_t)type, n_dims, extent, writer->data.size);
    if (data != NULL) {
        octavo_buffer_append(&writer->data, data, bytes);
    } else {
        gguf_put_zeros(&writer->data, bytes);
    }
}

/* -- the whole -------------------------------------------------------------------------------- */

/* An alignment other than the default is written as metadata. */
static inline void gguf_writer_init(gguf_writer *writer, uint32_t version, uint32_t alignment) {
    *writer = (gguf_writer){.version = version, .alignment = alignment};
    if (alignment != OCTAVO_GGUF_DEFAULT_ALIGNMENT) {
        gguf_writer_u32(writer, "general.alignment", alignment);
    }
}

static inline void gguf_writer_deinit(gguf_writer *writer) {
    octavo_buffer_deinit(&writer->metadata);
    octavo_buffer_deinit(&writer->tensors);
    octavo_buffer_deinit(&writer->data);
    octavo_buffer_deinit(&writer->file);
}

/* The file's bytes [*size], the writer's until it changes or goes. May be called again. */
static inline const uint8_t *gguf_writer_finish(gguf_writer *writer, size_t *size) {
    octavo_buffer *file = &writer->file;
    octavo_buffer_clear(file);
    octavo_buffer_puts(file, "GGUF");
    gguf_put_u32(file, writer->version);
    gguf_put_u64(file, writer->n_tensors);
    gguf_put_u64(file, writer->n_metadata);
    if (writer->metadata.size > 0) {
        octavo_buffer_append(file, writer->metadata.data, writer->metadata.size);
    }
    if (writer->tensors.size > 0) {
        octavo_buffer_append(file, writer->tensors.data, writer->tensors.size);
    }
    if (writer->data.size > 0) {
        gguf_writer_pad(file, writer->alignment);
        octavo_buffer_append(file, writer->data.data, writer->data.size);
    }
    if (file->failed || writer->metadata.failed || writer->tensors.failed || writer->data.failed) {
        abort();
    }
    *size = file->size;
    return (const uint8_t *)file->data;
}

/* False when the file could not be written. */
static inline bool gguf_writer_save(gguf_writer *writer, const char *path) {
    size_t size;
    const uint8_t *bytes = gguf_writer_finish(writer, &size);
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    bool written = fwrite(bytes, 1, size, file) == size;
    return fclose(file) == 0 && written;
}

#endif
