/* SPDX-License-Identifier: Apache-2.0
 *
 * The offsets of all tensors are known before the first byte of data, for their types and extents
 * are; so the file is written once, without going back.
 */
#include "formats/gguf_write.h"

#include "base/compiler.h"
#include "base/error.h"
#include "base/number.h"
#include "formats/gguf_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 3, MAX_TRIES = 100 };

struct octavo_gguf_writer {
    char *path, *partial;            /* the file's name, and the one it grows under */
    int fd;                          /* -1: closed */
    octavo_buffer metadata, tensors; /* entries and descriptions */
    uint64_t n_metadata, n_tensors;
    uint64_t alignment;
    uint64_t data_bytes; /* of all tensors described, padding included */
    octavo_buffer sizes; /* [n_tensors] uint64_t, bytes of their data */
    uint64_t tensor;     /* whose turn it is */
    uint64_t left;       /* of its bytes */
    uint64_t written;
};

static octavo_status fail_io(const octavo_gguf_writer *writer, const char *what,
                             octavo_error *error) {
    const int reason = errno;
    const char *hint = "";
    if (reason == ENOSPC || reason == EDQUOT) hint = "; make room, or write elsewhere";
    if (reason == EFBIG) hint = "; raise the limit of a file's size, or write elsewhere";
    if (reason == EACCES || reason == EROFS || reason == ENOENT || reason == ENOTDIR)
        hint = "; give a name in a folder that can be written";
    return octavo_fail(error, OCTAVO_ERROR_IO, "file (%.200s): cannot be %s: %s%s", writer->path,
                       what, strerror(reason), hint);
}

/* ---- opening and closing ---- */

/* Beside the file, so that renaming is one step; a name that nobody has. */
static octavo_status create_partial(octavo_gguf_writer *writer, octavo_error *error) {
    for (int i = 0; i < MAX_TRIES; i++) {
        octavo_buffer name = {0};
        octavo_buffer_printf(&name, "%s.%ld-%d.part", writer->path, (long)getpid(), i);
        octavo_free(writer->partial);
        writer->partial = octavo_buffer_take(&name);
        octavo_buffer_deinit(&name);
        if (!writer->partial) return octavo_fail_memory(error, "file name", strlen(writer->path));
        writer->fd = open(writer->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (writer->fd >= 0) return OCTAVO_OK;
        if (errno != EEXIST) break;
    }
    return fail_io(writer, "created", error);
}

octavo_status octavo_gguf_writer_open(const char *path, octavo_gguf_writer **writer,
                                      octavo_error *error) {
    struct stat facts;
    char target[PATH_MAX];
    /* what a link leads to is replaced, not the link, which may be /dev/stdout */
    if (lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode) && realpath(path, target)) path = target;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "file (%.200s): is %s; give the name of a file to write", path,
                           S_ISDIR(facts.st_mode) ? "a folder" : "no plain file");
    octavo_gguf_writer *created = octavo_alloc_zero(1, sizeof *created);
    if (!created) return octavo_fail_memory(error, path, sizeof *created);
    created->fd = -1;
    created->alignment = OCTAVO_GGUF_DEFAULT_ALIGNMENT;
    created->path = octavo_strdup(path);
    octavo_status status = created->path ? create_partial(created, error)
                                         : octavo_fail_memory(error, path, strlen(path) + 1);
    if (status)
        octavo_gguf_writer_close(&created);
    else
        *writer = created;
    return status;
}

void octavo_gguf_writer_close(octavo_gguf_writer **writer) {
    octavo_gguf_writer *closed = *writer;
    if (!closed) return;
    *writer = NULL;
    if (closed->fd >= 0) {
        (void)close(closed->fd);
        (void)unlink(closed->partial);
    }
    octavo_buffer_deinit(&closed->metadata);
    octavo_buffer_deinit(&closed->tensors);
    octavo_buffer_deinit(&closed->sizes);
    octavo_free(closed->path);
    octavo_free(closed->partial);
    octavo_free(closed);
}

/* ---- what stands before the data ---- */

/* Little-endian, at most 8 bytes. */
static void put(octavo_buffer *buffer, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        octavo_buffer_putc(buffer, (char)(value >> (8 * i) & 0xff));
}

static void put_text(octavo_buffer *buffer, octavo_gguf_string text) {
    put(buffer, text.size, 8);
    octavo_buffer_append(buffer, text.data, text.size);
}

static void put_string(octavo_buffer *buffer, const char *text) {
    put_text(buffer, (octavo_gguf_string){text, strlen(text)});
}

void octavo_gguf_writer_copy_metadata(octavo_gguf_writer *writer, const octavo_gguf *gguf,
                                      size_t index) {
    const octavo_gguf_part *part = &gguf->parts[0];
    const octavo_gguf_entry *entry = &part->entries[index];
    octavo_assert(index < part->n_entries);
    const uint8_t *begin = part->data + entry->offset;
    const uint8_t *value = begin + 8 + strlen(entry->key) + 4;
    const uint8_t *end = octavo_gguf_skip(entry->type, value);
    octavo_buffer_append(&writer->metadata, begin, (size_t)(end - begin));
    writer->n_metadata++;
    if (strcmp(entry->key, "general.alignment") == 0) writer->alignment = part->alignment;
}

static void begin_entry(octavo_gguf_writer *writer, const char *key, octavo_gguf_type type) {
    put_string(&writer->metadata, key);
    put(&writer->metadata, type, 4);
    writer->n_metadata++;
}

void octavo_gguf_writer_put_u32(octavo_gguf_writer *writer, const char *key, uint32_t value) {
    begin_entry(writer, key, OCTAVO_GGUF_U32);
    put(&writer->metadata, value, 4);
}

void octavo_gguf_writer_put_f32(octavo_gguf_writer *writer, const char *key, float value) {
    begin_entry(writer, key, OCTAVO_GGUF_F32);
    put(&writer->metadata, octavo_f32_bits(value), 4);
}

void octavo_gguf_writer_put_bool(octavo_gguf_writer *writer, const char *key, bool value) {
    begin_entry(writer, key, OCTAVO_GGUF_BOOL);
    put(&writer->metadata, value, 1);
}

void octavo_gguf_writer_put_string(octavo_gguf_writer *writer, const char *key,
                                   octavo_gguf_string value) {
    begin_entry(writer, key, OCTAVO_GGUF_STRING);
    put_text(&writer->metadata, value);
}

void octavo_gguf_writer_put_array(octavo_gguf_writer *writer, const char *key,
                                  octavo_gguf_type type, uint64_t count) {
    begin_entry(writer, key, OCTAVO_GGUF_ARRAY);
    put(&writer->metadata, type, 4);
    put(&writer->metadata, count, 8);
}

void octavo_gguf_writer_put_item(octavo_gguf_writer *writer, octavo_gguf_type type, uint32_t bits) {
    put(&writer->metadata, bits, type == OCTAVO_GGUF_BOOL ? 1 : 4);
}

void octavo_gguf_writer_put_text_item(octavo_gguf_writer *writer, octavo_gguf_string text) {
    put_text(&writer->metadata, text);
}

static uint64_t padding(const octavo_gguf_writer *writer, uint64_t bytes) {
    return (writer->alignment - bytes % writer->alignment) % writer->alignment;
}

void octavo_gguf_writer_add_tensor(octavo_gguf_writer *writer, const octavo_gguf_tensor *like,
                                   octavo_ggml_type type) {
    /* no product overflows: the tensor is in a file, and no type is wider by more than a small
     * factor */
    uint64_t bytes = 0;
    bool is_whole =
        octavo_ggml_row_bytes(octavo_ggml_type_lookup((uint32_t)type), like->extent[0], &bytes);
    octavo_assert(is_whole);
    (void)is_whole;
    put_string(&writer->tensors, like->name);
    put(&writer->tensors, (uint64_t)like->n_dims, 4);
    for (int i = 0; i < like->n_dims; i++) {
        put(&writer->tensors, like->extent[i], 8);
        if (i > 0) bytes *= like->extent[i];
    }
    put(&writer->tensors, (uint64_t)type, 4);
    put(&writer->tensors, writer->data_bytes, 8);
    octavo_buffer_append(&writer->sizes, &bytes, sizeof bytes);
    writer->data_bytes += bytes + padding(writer, bytes);
    writer->n_tensors++;
}

/* ---- writing ---- */

static octavo_status write_all(octavo_gguf_writer *writer, const void *bytes, size_t size,
                               octavo_error *error) {
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = write(writer->fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_io(writer, "written", error);
        at += n;
        size -= (size_t)n;
        writer->written += (uint64_t)n;
    }
    return OCTAVO_OK;
}

static octavo_status write_padding(octavo_gguf_writer *writer, octavo_error *error) {
    static const uint8_t zeros[4096];
    uint64_t left = padding(writer, writer->written);
    while (left > 0) {
        const size_t size = left < sizeof zeros ? (size_t)left : sizeof zeros;
        octavo_status status = write_all(writer, zeros, size, error);
        if (status) return status;
        left -= size;
    }
    return OCTAVO_OK;
}

static void begin_tensor(octavo_gguf_writer *writer) {
    writer->left = 0;
    if (writer->tensor < writer->n_tensors)
        memcpy(&writer->left, writer->sizes.data + writer->tensor * sizeof writer->left,
               sizeof writer->left);
}

octavo_status octavo_gguf_writer_begin(octavo_gguf_writer *writer, octavo_error *error) {
    octavo_buffer head = {0};
    octavo_buffer_puts(&head, "GGUF");
    put(&head, VERSION, 4);
    put(&head, writer->n_tensors, 8);
    put(&head, writer->n_metadata, 8);
    octavo_status status = OCTAVO_OK;
    if (head.failed || writer->metadata.failed || writer->tensors.failed || writer->sizes.failed)
        status =
            octavo_fail_memory(error, writer->path, writer->metadata.size + writer->tensors.size);
    if (status == OCTAVO_OK) status = write_all(writer, head.data, head.size, error);
    if (status == OCTAVO_OK)
        status = write_all(writer, writer->metadata.data, writer->metadata.size, error);
    if (status == OCTAVO_OK)
        status = write_all(writer, writer->tensors.data, writer->tensors.size, error);
    if (status == OCTAVO_OK) status = write_padding(writer, error);
    octavo_buffer_deinit(&head);
    if (status == OCTAVO_OK) begin_tensor(writer);
    return status;
}

octavo_status octavo_gguf_writer_stretch(octavo_gguf_writer *writer, octavo_error *error) {
    uint64_t left = 0, size;
    for (uint64_t i = writer->tensor; i < writer->n_tensors; i++) {
        memcpy(&size, writer->sizes.data + i * sizeof size, sizeof size);
        if (i == writer->tensor) size = writer->left;
        left += size;
        left += padding(writer, writer->written + left);
    }
    /* with its room taken: on some systems reading a hole of a file takes a page, and kills where
     * there is none */
    int reason;
    do
        reason = posix_fallocate(writer->fd, (off_t)writer->written, (off_t)left);
    while (reason == EINTR);
    if (reason == EINVAL || reason == EOPNOTSUPP) /* nothing left, or not known there */
        reason = ftruncate(writer->fd, (off_t)(writer->written + left)) == 0 ? 0 : errno;
    errno = reason;
    return reason == 0 ? OCTAVO_OK : fail_io(writer, "made long enough", error);
}

const char *octavo_gguf_writer_partial(const octavo_gguf_writer *writer) {
    return writer->partial;
}

octavo_status octavo_gguf_writer_data(octavo_gguf_writer *writer, const void *bytes, size_t size,
                                      octavo_error *error) {
    octavo_assert(size <= writer->left);
    octavo_status status = write_all(writer, bytes, size, error);
    if (status) return status;
    writer->left -= size;
    if (writer->left > 0) return OCTAVO_OK;
    writer->tensor++;
    begin_tensor(writer);
    return write_padding(writer, error);
}

octavo_status octavo_gguf_writer_finish(octavo_gguf_writer *writer, octavo_error *error) {
    octavo_assert(writer->tensor == writer->n_tensors && writer->left == 0);
    /* on the disk before the old file goes: some systems tell only now that it is full */
    if (fsync(writer->fd) != 0 && errno != EINVAL && errno != ENOSYS)
        return fail_io(writer, "written", error);
    if (rename(writer->partial, writer->path) != 0) return fail_io(writer, "given its name", error);
    const int fd = writer->fd;
    writer->fd = -1;
    if (close(fd) != 0 && errno != EINTR) return fail_io(writer, "written", error);
    return OCTAVO_OK;
}

uint64_t octavo_gguf_writer_bytes(const octavo_gguf_writer *writer) {
    return writer->written;
}
