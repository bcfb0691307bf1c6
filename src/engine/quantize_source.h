/* SPDX-License-Identifier: Apache-2.0
 *
 * What is quantised: the tensors of a GGUF file as they lie there, or those of a folder as a GGUF
 * file has them (model/export.h).
 */
#ifndef OCTAVO_ENGINE_QUANTIZE_SOURCE_H
#define OCTAVO_ENGINE_QUANTIZE_SOURCE_H

#include "formats/gguf_write.h"
#include "model/export.h"

typedef struct octavo_quantize_source {
    octavo_gguf *gguf; /* NULL: a folder, which the rest is about */
    octavo_checkpoint checkpoint;
    octavo_export model;
    uint8_t *rows, *scratch; /* of the tensor at hand */
} octavo_quantize_source;

/* On failure there is nothing to end. Statuses as octavo_gguf_open, octavo_checkpoint_open_folder
 * and octavo_export_init. */
OCTAVO_MUST_CHECK octavo_status octavo_quantize_source_open(const char *path,
                                                            octavo_quantize_source *source,
                                                            octavo_error *error);
void octavo_quantize_source_close(octavo_quantize_source *source);

/* Whether `out` is one of the files that are read; `path` as it was opened. */
bool octavo_quantize_source_has(const octavo_quantize_source *source, const char *path,
                                const char *out);

size_t octavo_quantize_source_n(const octavo_quantize_source *source);
const octavo_gguf_tensor *octavo_quantize_source_at(const octavo_quantize_source *source, size_t i);
/* Tensors, the first, that have to be written before octavo_quantize_source_check. */
size_t octavo_quantize_source_n_first(const octavo_quantize_source *source);

/* All metadata but those about quantisation. */
OCTAVO_MUST_CHECK octavo_status octavo_quantize_source_put(const octavo_quantize_source *source,
                                                           octavo_gguf_writer *writer,
                                                           octavo_error *error);
/* Of a folder: that the file under the writer's hands says what the folder does. */
OCTAVO_MUST_CHECK octavo_status octavo_quantize_source_check(octavo_quantize_source *source,
                                                             octavo_gguf_writer *writer,
                                                             octavo_error *error);

/* Prepares for rows of tensor i, of which at most `max` are asked for at a time. */
OCTAVO_MUST_CHECK octavo_status octavo_quantize_source_begin(octavo_quantize_source *source,
                                                             size_t i, int64_t max,
                                                             octavo_error *error);
/* Rows [row, row + n), until the next call; NULL where they hold what is no number. */
const uint8_t *octavo_quantize_source_rows(octavo_quantize_source *source, size_t i, int64_t row,
                                           int64_t n);
/* They are done with. */
void octavo_quantize_source_end(octavo_quantize_source *source, size_t i, int64_t row, int64_t n);

#endif
