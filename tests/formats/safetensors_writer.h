/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes small safetensors files and indexes for tests, in memory or to disk. Nothing is checked: a
 * test may say what no file should. Memory running out aborts the test.
 *
 *   safetensors_writer w = {0};
 *   safetensors_writer_metadata(&w, "format", "pt");
 *   safetensors_writer_tensor(&w, "norm.weight", "F32", "[64]", values, 256);
 *   safetensors_writer_finish(&w, &size)  -> bytes, the writer's until safetensors_writer_deinit
 *   safetensors_writer_deinit(&w);
 */
#ifndef OCTAVO_TESTS_FORMATS_SAFETENSORS_WRITER_H
#define OCTAVO_TESTS_FORMATS_SAFETENSORS_WRITER_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct safetensors_writer {
    octavo_buffer metadata; /* members of "__metadata__" */
    octavo_buffer entries;  /* members of the header */
    octavo_buffer data;     /* of tensors */
    octavo_buffer file;     /* the result */
    size_t padding;         /* blanks behind the header beyond those that align it to 8 */
    bool unaligned;         /* no such blanks */
} safetensors_writer;

static inline void safetensors_put_member(octavo_buffer *members, const char *key) {
    if (members->size > 0) octavo_buffer_putc(members, ',');
    octavo_buffer_json_string(members, key, strlen(key));
    octavo_buffer_putc(members, ':');
}

static inline void safetensors_writer_metadata(safetensors_writer *writer, const char *key,
                                               const char *value) {
    safetensors_put_member(&writer->metadata, key);
    octavo_buffer_json_string(&writer->metadata, value, strlen(value));
}

/* A member of the header as JSON text. */
static inline void safetensors_writer_entry(safetensors_writer *writer, const char *name,
                                            const char *json) {
    safetensors_put_member(&writer->entries, name);
    octavo_buffer_puts(&writer->entries, json);
}

/* The description alone, with any offsets. `shape` is JSON. */
static inline void safetensors_writer_description(safetensors_writer *writer, const char *name,
                                                  const char *dtype, const char *shape,
                                                  uint64_t begin, uint64_t end) {
    safetensors_put_member(&writer->entries, name);
    octavo_buffer_printf(&writer->entries,
                         "{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%llu,%llu]}", dtype,
                         shape, (unsigned long long)begin, (unsigned long long)end);
}

static inline void safetensors_writer_data(safetensors_writer *writer, const void *data,
                                           size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        octavo_buffer_putc(&writer->data, data == NULL ? 0 : ((const char *)data)[i]);
    }
}

/* Description and data, behind those before. `data` [bytes]; NULL for zeros. */
static inline void safetensors_writer_tensor(safetensors_writer *writer, const char *name,
                                             const char *dtype, const char *shape, const void *data,
                                             size_t bytes) {
    size_t begin = writer->data.size;
    safetensors_writer_description(writer, name, dtype, shape, begin, begin + bytes);
    safetensors_writer_data(writer, data, bytes);
}

/* Length, header text and data, as they are. */
static inline void safetensors_put_file(octavo_buffer *file, uint64_t length, const char *header,
                                        const void *data, size_t bytes) {
    for (int i = 0; i < 8; i++) {
        octavo_buffer_putc(file, (char)(length >> (8 * i) & 0xff));
    }
    octavo_buffer_puts(file, header);
    if (bytes > 0) octavo_buffer_append(file, data, bytes);
}

/* The file's bytes [*size], the writer's until it changes or goes. May be called again. */
static inline const uint8_t *safetensors_writer_finish(safetensors_writer *writer, size_t *size) {
    octavo_buffer header = {0};
    octavo_buffer_putc(&header, '{');
    if (writer->metadata.size > 0) {
        octavo_buffer_printf(&header, "\"__metadata__\":{%s}", writer->metadata.data);
        if (writer->entries.size > 0) octavo_buffer_putc(&header, ',');
    }
    if (writer->entries.size > 0) octavo_buffer_puts(&header, writer->entries.data);
    octavo_buffer_putc(&header, '}');
    while (!writer->unaligned && header.size % 8 != 0) {
        octavo_buffer_putc(&header, ' ');
    }
    for (size_t i = 0; i < writer->padding; i++) {
        octavo_buffer_putc(&header, ' ');
    }
    octavo_buffer_clear(&writer->file);
    safetensors_put_file(&writer->file, header.size, header.data, writer->data.data,
                         writer->data.size);
    bool failed = header.failed || writer->metadata.failed || writer->entries.failed ||
                  writer->data.failed || writer->file.failed;
    octavo_buffer_deinit(&header);
    if (failed) abort();
    *size = writer->file.size;
    return (const uint8_t *)writer->file.data;
}

static inline void safetensors_writer_deinit(safetensors_writer *writer) {
    octavo_buffer_deinit(&writer->metadata);
    octavo_buffer_deinit(&writer->entries);
    octavo_buffer_deinit(&writer->data);
    octavo_buffer_deinit(&writer->file);
}

/* False when the file could not be written. */
static inline bool safetensors_save_bytes(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    bool written = fwrite(bytes, 1, size, file) == size;
    return fclose(file) == 0 && written;
}

static inline bool safetensors_writer_save(safetensors_writer *writer, const char *path) {
    size_t size;
    const uint8_t *bytes = safetensors_writer_finish(writer, &size);
    return safetensors_save_bytes(path, bytes, size);
}

#endif
