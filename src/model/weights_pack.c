/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing, in the file's type or in another, for which rows are converted a panel at a time. The
 * file's pages are given back to the system strip by strip as they are packed, so nothing is twice
 * in memory for longer than a strip.
 */
#include "model/weights_pack.h"

#include "base/error.h"
#include "base/memory.h"
#include "kernels/weight_convert.h"

#include <stdatomic.h>
#include <string.h>

/* Source bytes that are packed, by all threads, before their pages are given back. */
enum { STRIP_BYTES = 8 << 20 };

typedef struct pack_job {
    octavo_pack_source source;
    const octavo_weight *weight;
    uint8_t *to;
    size_t copy_bytes; /* of a row as it is packed or converted */
    /* [threads][scratch_bytes]: a panel's rows, where they are scattered, and what converting
     * takes; or NULL */
    uint8_t *scratch;
    size_t rows_bytes, scratch_bytes;
    int64_t panel_begin, panel_end; /* of the strip */
    atomic_bool has_failed;         /* some thread met values that cannot be converted */
    atomic_bool is_wrong;           /* some thread met what is no number */
} pack_job;

/* Rows of panels that are neighbours in the file need no copy. */
static bool is_scattered(const octavo_row_map *rows) {
    return rows->stride > 0 && rows->group % OCTAVO_PANEL != 0;
}

/* Columns [row, row + n) of a matrix of floats as rows. */
static void transpose(const octavo_pack_source *source, int64_t k, uint8_t *to, int64_t row,
                      int n) {
    const size_t size = source->row_bytes / (size_t)k;
    const octavo_column_map *map = &source->columns;
    const uint8_t *matrix = source->tensor->data + source->begin;
    for (int64_t j = 0; j < k; j++) {
        const uint8_t *from =
            matrix + (size_t)(j * map->columns + map->first + row * map->step) * size;
        for (int i = 0; i < n; i++)
            memcpy(to + (size_t)i * source->row_bytes + (size_t)j * size,
                   from + (size_t)(i * map->step) * size, size);
    }
}

static const uint8_t *row_of(const octavo_pack_source *source, int64_t row) {
    return source->tensor->data + source->begin +
           (size_t)octavo_source_row(&source->rows, row) * source->row_bytes;
}

bool octavo_pack_source_rows(const octavo_pack_source *source, int64_t k, uint8_t *to, int64_t row,
                             int n) {
    if (source->fill) return source->fill(source->cookie, to, row, n);
    if (source->columns.columns > 0) {
        transpose(source, k, to, row, n);
        return true;
    }
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)i * source->row_bytes, row_of(source, row + i), source->row_bytes);
    return true;
}

/* Rows [row, row + n) of the matrix, one behind the other. */
static const uint8_t *rows_of_panel(pack_job *job, uint8_t *copy, int64_t row, int n) {
    if (job->rows_bytes == 0) return row_of(&job->source, row);
    if (!octavo_pack_source_rows(&job->source, job->weight->k, copy, row, n)) job->is_wrong = true;
    return copy;
}

static void pack_thread(void *arg, int thread, int n_threads) {
    pack_job *job = arg;
    const octavo_weight *weight = job->weight;
    uint8_t *scratch = job->scratch ? job->scratch + (size_t)thread * job->scratch_bytes : NULL;
    const size_t panel_bytes = octavo_weight_panel_bytes(weight->type, weight->k);
    int64_t begin, end;
    octavo_pool_share(job->panel_end - job->panel_begin, 1, thread, n_threads, &begin, &end);
    for (int64_t p = job->panel_begin + begin; p < job->panel_begin + end; p++) {
        int64_t left = weight->n - p * OCTAVO_PANEL;
        int n = left < OCTAVO_PANEL ? (int)left : OCTAVO_PANEL;
        const uint8_t *rows = rows_of_panel(job, scratch, p * OCTAVO_PANEL, n);
        uint8_t *panel = job->to + (size_t)p * panel_bytes;
        if (job->source.type == weight->type)
            octavo_weight_pack(weight->type, panel, rows, job->copy_bytes, n, weight->k);
        else if (!octavo_weight_convert(job->source.type, weight->type, panel, rows,
                                        job->copy_bytes, n, weight->k, scratch + job->rows_bytes))
            job->has_failed = true;
    }
}

static octavo_status keep_matrix(octavo_loader *load, void *matrix) {
    octavo_model_weights *weights = load->weights;
    if (weights->n_matrices == weights->capacity_matrices) {
        int wanted = weights->capacity_matrices ? weights->capacity_matrices * 2 : 64;
        void **moved = octavo_realloc(weights->matrices, (size_t)wanted * sizeof *moved);
        if (!moved)
            return octavo_fail_memory(load->error, "list of matrices",
                                      (uint64_t)wanted * sizeof *moved);
        weights->matrices = moved;
        weights->capacity_matrices = wanted;
    }
    weights->matrices[weights->n_matrices++] = matrix;
    return OCTAVO_OK;
}

static void pack_strips(octavo_loader *load, pack_job *job) {
    const octavo_checkpoint_tensor *tensor = job->source.tensor;
    const int64_t n_panels = (job->weight->n + OCTAVO_PANEL - 1) / OCTAVO_PANEL;
    const size_t panel_bytes = job->source.row_bytes * OCTAVO_PANEL;
    const int64_t strip = panel_bytes < STRIP_BYTES ? (int64_t)(STRIP_BYTES / panel_bytes) : 1;
    const bool is_plain = job->source.rows.all == 0 && job->source.columns.columns == 0;
    const size_t bytes = job->source.row_bytes * (size_t)job->weight->n;
    if (job->source.begin == 0) octavo_checkpoint_will_need(load->checkpoint, tensor);
    for (int64_t p = 0; p < n_panels; p += strip) {
        job->panel_begin = p;
        job->panel_end = p + strip < n_panels ? p + strip : n_panels;
        octavo_pool_run(load->options->pool, pack_thread, job);
        if (!is_plain) continue;
        size_t begin = (size_t)p * panel_bytes, end = (size_t)job->panel_end * panel_bytes;
        octavo_checkpoint_drop(load->checkpoint, tensor, job->source.begin + begin,
                               (end < bytes ? end : bytes) - begin);
    }
    if (job->source.rows.all > 0)
        octavo_checkpoint_drop(load->checkpoint, tensor, job->source.begin,
                               job->source.row_bytes * (size_t)job->source.rows.all);
}

octavo_status octavo_pack_alloc(octavo_loader *load, octavo_weight *weight, const char *name) {
    if (!load->options->pool) return OCTAVO_OK;
    size_t bytes = octavo_weight_bytes(weight->type, weight->n, weight->k);
    if (weight->stack > 0 && bytes > SIZE_MAX / (size_t)weight->stack)
        return octavo_fail_memory(load->error, name, UINT64_MAX);
    if (weight->stack > 0) bytes *= (size_t)weight->stack;
    uint8_t *data = octavo_alloc_aligned(bytes);
    if (!data) return octavo_fail_memory(load->error, name, bytes);
    octavo_status status = keep_matrix(load, data);
    if (status) {
        octavo_free_aligned(data);
        return status;
    }
    weight->data = data;
    return OCTAVO_OK;
}

size_t octavo_pack_row_bytes(const octavo_pack_source *source, int64_t k) {
    const octavo_weight_info *info = octavo_weight_info_of(source->type);
    if (!source->fill) return source->row_bytes;
    return (size_t)(k / info->source_inputs) * (size_t)info->source_bytes;
}

static octavo_status alloc_scratch(octavo_loader *load, pack_job *job, const char *name) {
    const octavo_pack_source *source = &job->source;
    const size_t n_threads = (size_t)octavo_pool_threads(load->options->pool);
    size_t convert_bytes = 0, bytes;
    job->copy_bytes = octavo_pack_row_bytes(source, job->weight->k);
    if (source->fill || is_scattered(&source->rows) || source->columns.columns > 0)
        job->rows_bytes = octavo_align_up(job->copy_bytes * OCTAVO_PANEL, OCTAVO_ALIGN);
    if (source->type != job->weight->type &&
        !octavo_weight_convert_bytes(source->type, job->weight->type, job->weight->k,
                                     &convert_bytes))
        return octavo_fail_memory(load->error, name, UINT64_MAX);
    job->scratch_bytes = job->rows_bytes + convert_bytes;
    if (job->scratch_bytes == 0) return OCTAVO_OK;
    if (!octavo_size_mul(n_threads, job->scratch_bytes, &bytes))
        return octavo_fail_memory(load->error, name, UINT64_MAX);
    job->scratch = octavo_alloc_aligned(bytes);
    return job->scratch ? OCTAVO_OK : octavo_fail_memory(load->error, name, bytes);
}

static octavo_status check_values(octavo_loader *load, const pack_job *job) {
    const octavo_checkpoint_tensor *tensor = job->source.tensor;
    if (job->is_wrong)
        return octavo_fail_at(load->error, OCTAVO_ERROR_FORMAT, tensor->offset,
                              "tensor \"%s\" (%s): it, or its scales, holds what is no finite "
                              "number; the file is damaged",
                              tensor->name, tensor->path);
    if (!job->has_failed) return OCTAVO_OK;
    return octavo_fail_at(load->error, OCTAVO_ERROR_FORMAT, tensor->offset,
                          "tensor \"%s\" (%s): holds values that are infinite, no numbers, or too "
                          "large for %s; load the weights as they are in the file",
                          tensor->name, tensor->path,
                          octavo_weight_info_of(job->weight->type)->name);
}

octavo_status octavo_pack_matrix(octavo_loader *load, const octavo_weight *weight, int expert,
                                 const octavo_pack_source *source) {
    const size_t matrix_bytes = octavo_weight_bytes(weight->type, weight->n, weight->k);
    load->weights->packed_bytes += matrix_bytes;
    if (load->options->visit) {
        const octavo_bound bound = {
            .role = load->role,
            .layer = load->layer,
            .is_second = source->rows.first > 0 || source->columns.first > 0,
            .n = weight->n,
            .k = weight->k,
            .stack = weight->stack,
            .source = source,
            .error = load->error,
        };
        octavo_status status = load->options->visit(load->options->cookie, &bound);
        if (status) return status;
    }
    if (!load->options->pool) return OCTAVO_OK;
    pack_job job = {.source = *source,
                    .weight = weight,
                    .to = (uint8_t *)(uintptr_t)weight->data + (size_t)expert * matrix_bytes};
    octavo_status status = alloc_scratch(load, &job, source->tensor->name);
    if (status) return status;
    pack_strips(load, &job);
    octavo_free_aligned(job.scratch);
    if ((status = check_values(load, &job))) return status;
    return octavo_load_report(load, source->tensor,
                              (uint64_t)weight->n * source->row_bytes + source->beside_bytes);
}
