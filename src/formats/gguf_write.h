/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a GGUF file (version 3, see gguf.h) from front to back: metadata and descriptions of
 * tensors are gathered in memory, data then pass through, a tensor after the other.
 *
 * The file grows under another name beside its own and takes its own when it is whole; so whoever
 * opens it finds the old one, or none, or all of the new. Closing a writer that has not finished
 * removes what there is.
 *
 *   octavo_gguf_writer_open, then copy_metadata and put_..., then add_tensor;
 *   octavo_gguf_writer_begin;
 *   octavo_gguf_writer_data until each tensor, in the order added, has its bytes;
 *   octavo_gguf_writer_finish; octavo_gguf_writer_close.
 *
 * Threads: one at a time.
 */
#ifndef OCTAVO_FORMATS_GGUF_WRITE_H
#define OCTAVO_FORMATS_GGUF_WRITE_H

#include "formats/gguf.h"

typedef struct octavo_gguf_writer octavo_gguf_writer;

/* Creates the file that is to become `path`. What stands there already must be a plain file.
 *   OCTAVO_ERROR_INVALID  there is something else, such as a folder or a device
 *   OCTAVO_ERROR_IO       no file can be made there
 *   OCTAVO_ERROR_MEMORY */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_writer_open(const char *path,
                                                        octavo_gguf_writer **writer,
                                                        octavo_error *error);

/* Takes NULL handles and nulls the handle. */
void octavo_gguf_writer_close(octavo_gguf_writer **writer);

/* Adds entry `index` of another file's metadata, byte for byte. Of general.alignment the writer
 * takes note. */
void octavo_gguf_writer_copy_metadata(octavo_gguf_writer *writer, const octavo_gguf *gguf,
                                      size_t index);
void octavo_gguf_writer_put_u32(octavo_gguf_writer *writer, const char *key, uint32_t value);
void octavo_gguf_writer_put_f32(octavo_gguf_writer *writer, const char *key, float value);
void octavo_gguf_writer_put_bool(octavo_gguf_writer *writer, const char *key, bool value);
void octavo_gguf_writer_put_string(octavo_gguf_writer *writer, const char *key,
                                   octavo_gguf_string value);

/* Begins an array of `count` elements, which put_item and put_text_item then add: numbers of I32,
 * F32 (their bits) and BOOL, and strings. */
void octavo_gguf_writer_put_array(octavo_gguf_writer *writer, const char *key,
                                  octavo_gguf_type type, uint64_t count);
void octavo_gguf_writer_put_item(octavo_gguf_writer *writer, octavo_gguf_type type, uint32_t bits);
void octavo_gguf_writer_put_text_item(octavo_gguf_writer *writer, octavo_gguf_string text);

/* Describes the next tensor: name and extents of `like`, the type given, whose blocks fill rows. */
void octavo_gguf_writer_add_tensor(octavo_gguf_writer *writer, const octavo_gguf_tensor *like,
                                   octavo_ggml_type type);

/* Writes what stands before the data. Memory that ran out since opening shows here.
 * OCTAVO_ERROR_IO, OCTAVO_ERROR_MEMORY. */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_writer_begin(octavo_gguf_writer *writer,
                                                         octavo_error *error);

/* After begin, perhaps with some data written: makes the file as long as it will be, with room on
 * the disk but empty, so that it can be opened under octavo_gguf_writer_partial, its name until it
 * is whole. OCTAVO_ERROR_IO. */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_writer_stretch(octavo_gguf_writer *writer,
                                                           octavo_error *error);
const char *octavo_gguf_writer_partial(const octavo_gguf_writer *writer);

/* The next bytes of the tensor whose turn it is, not beyond its end. OCTAVO_ERROR_IO. */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_writer_data(octavo_gguf_writer *writer,
                                                        const void *bytes, size_t size,
                                                        octavo_error *error);

/* All data is there: gives the file its name. OCTAVO_ERROR_IO. */
OCTAVO_MUST_CHECK octavo_status octavo_gguf_writer_finish(octavo_gguf_writer *writer,
                                                          octavo_error *error);

/* Bytes of the file so far. */
uint64_t octavo_gguf_writer_bytes(const octavo_gguf_writer *writer);

#endif
