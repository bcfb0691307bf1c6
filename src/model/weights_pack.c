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
#include "model/weights_place.h"

#include <stdatomic.h>
#include <string.h>

/* Source bytes that are packed, by all threads, before their pages are given back. */
enum { STRIP_BYTES = 8 << 20 };

typedef struct pack_job {
    octavo_pack_source source;
    const octavo_weight *weight; /* the part */
    uint8_t *to;
    int64_t row;       /* of the matrix: the part's first */
    int64_t k0, k1;    /* inputs that are read: the part's, out to whole blocks */
    int64_t skip;      /* the first of them that are not the part's */
    size_t copy_bytes; /* of a row of them */
    /* [threads][scratch_bytes]: a panel's rows, where they are scattered, and their floats and what
     * converting takes; or NULL */
    uint8_t *scratch;
    size_t rows_bytes, values_bytes, scratch_bytes;
    int64_t panel_begin, panel_end; /* of the strip */
    atomic_bool has_failed;         /* some thread met values that cannot be converted */
    atomic_bool is_wrong;           /* some thread met what is no number */
} pack_job;

/* Panels of rows that are neighbours in the file need no copy. */
static bool is_scattered(const octavo_row_map *rows, int64_t row) {
    return rows->stride > 0 && (rows->group % OCTAVO_PANEL != 0 || row % OCTAVO_PANEL != 0);
}

/* Inputs [k0, k1) of columns [row, row + n) of a matrix of floats as rows. */
static void transpose(const octavo_pack_source *source, uint8_t *to, int64_t row, int n, int64_t k0,
                      int64_t k1) {
    const size_t size = octavo_pack_row_bytes(source, 1);
    const size_t to_bytes = octavo_pack_row_bytes(source, k1 - k0);
    const octavo_column_map *map = &source->columns;
    const uint8_t *matrix = source->tensor->data + source->begin;
    for (int64_t j = k0; j < k1; j++) {
        const uint8_t *from =
            matrix + (size_t)(j * map->columns + map->first + row * map->step) * size;
        for (int i = 0; i < n; i++)
            memcpy(to + (size_t)i * to_bytes + (size_t)(j - k0) * size,
                   from + (size_t)(i * map->step) * size, size);
    }
}

static const uint8_t *row_of(const octavo_pack_source *source, int64_t row, int64_t k0) {
    return source->tensor->data + source->begin +
           (size_t)octavo_source_row(&source->rows, row) * source->row_bytes +
           octavo_pack_row_bytes(source, k0);
}

bool octavo_pack_source_rows(const octavo_pack_source *source, uint8_t *to, int64_t row, int n,
                             int64_t k0, int64_t k1) {
    const size_t bytes = octavo_pack_row_bytes(source, k1 - k0);
    if (source->fill) return source->fill(source->cookie, to, row, n, k0, k1);
    if (source->columns.columns > 0) {
        transpose(source, to, row, n, k0, k1);
        return true;
    }
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)i * bytes, row_of(source, row + i, k0), bytes);
    return true;
}

/* What is read of n rows from `row` on: them, or a copy of them one behind the other. */
static const uint8_t *rows_of_panel(pack_job *job, uint8_t *copy, int64_t row, int n) {
    if (job->rows_bytes == 0) return row_of(&job->source, row, job->k0);
    if (!octavo_pack_source_rows(&job->source, copy, row, n, job->k0, job->k1))
        job->is_wrong = true;
    return copy;
}

/* Whether a type that the rows are converted to has cuts within their blocks. */
static bool is_cut(const pack_job *job) {
    return job->k1 - job->k0 != job->weight->k;
}

static bool convert(const pack_job *job, uint8_t *panel, const uint8_t *rows, size_t row_bytes,
                    int n, uint8_t *scratch) {
    const octavo_weight *weight = job->weight;
    const int64_t k = job->k1 - job->k0;
    if (!is_cut(job))
        return octavo_weight_convert(job->source.type, weight->type, panel, rows, row_bytes, n, k,
                                     scratch);
    float *values = (float *)(void *)scratch;
    scratch += job->values_bytes;
    octavo_weight_widen(job->source.type, values, rows, row_bytes, n, k, scratch);
    return octavo_weight_convert(OCTAVO_WEIGHT_F32, weight->type, panel,
                                 (const uint8_t *)(values + job->skip), (size_t)k * sizeof *values,
                                 n, weight->k, scratch);
}

static void pack_thread(void *arg, int thread, int n_threads) {
    pack_job *job = arg;
    const octavo_weight *weight = job->weight;
    uint8_t *scratch = job->scratch ? job->scratch + (size_t)thread * job->scratch_bytes : NULL;
    const size_t panel_bytes = octavo_weight_panel_bytes(weight->type, weight->k);
    const size_t row_bytes = job->rows_bytes ? job->copy_bytes : job->source.row_bytes;
    int64_t begin, end;
    octavo_pool_share(job->panel_end - job->panel_begin, 1, thread, n_threads, &begin, &end);
    for (int64_t p = job->panel_begin + begin; p < job->panel_begin + end; p++) {
        int64_t left = weight->n - p * OCTAVO_PANEL;
        int n = left < OCTAVO_PANEL ? (int)left : OCTAVO_PANEL;
        const uint8_t *rows = rows_of_panel(job, scratch, job->row + p * OCTAVO_PANEL, n);
        uint8_t *panel = job->to + (size_t)p * panel_bytes;
        if (job->source.type == weight->type)
            octavo_weight_pack(weight->type, panel, rows, row_bytes, n, weight->k);
        else if (!convert(job, panel, rows, row_bytes, n, scratch + job->rows_bytes))
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

/* Bytes of the tensor between which the matrix's rows [row, row + n) lie, at least one, perhaps
 * with others. False: they may be no rows of the tensor; then the whole matrix. */
static bool span_of(const octavo_pack_source *source, int64_t row, int64_t n, size_t *begin,
                    size_t *bytes) {
    const int64_t first = octavo_source_row(&source->rows, row);
    const int64_t last = octavo_source_row(&source->rows, row + n - 1);
    *begin = source->begin;
    *bytes = source->row_bytes;
    if (source->columns.columns > 0 || (source->fill && source->rows.all > 0)) {
        *bytes *= (size_t)(source->rows.all ? source->rows.all : source->columns.columns);
        return false;
    }
    *begin += (size_t)first * source->row_bytes;
    *bytes *= (size_t)(last - first + 1);
    return true;
}

/* Of rows that are cut the system itself finds out which pages are wanted. */
static void pack_strips(octavo_loader *load, pack_job *job) {
    const octavo_pack_source *source = &job->source;
    const octavo_checkpoint_tensor *tensor = source->tensor;
    const int64_t n = job->weight->n, n_panels = (n + OCTAVO_PANEL - 1) / OCTAVO_PANEL;
    const size_t panel_bytes = source->row_bytes * OCTAVO_PANEL;
    const int64_t strip = panel_bytes < STRIP_BYTES ? (int64_t)(STRIP_BYTES / panel_bytes) : 1;
    const bool is_plain = source->rows.all == 0 && source->columns.columns == 0;
    size_t begin, bytes;
    const bool is_rows = span_of(source, job->row, n, &begin, &bytes);
    if (job->weight->k == source->k && (is_rows || n == source->n))
        octavo_checkpoint_will_need(load->checkpoint, tensor, begin, bytes);
    for (int64_t p = 0; p < n_panels; p += strip) {
        job->panel_begin = p;
        job->panel_end = p + strip < n_panels ? p + strip : n_panels;
        octavo_pool_run(load->options->pool, pack_thread, job);
        if (!is_plain) continue;
        const size_t from = (size_t)p * panel_bytes, to = (size_t)job->panel_end * panel_bytes;
        octavo_checkpoint_drop(load->checkpoint, tensor, begin + from,
                               (to < bytes ? to : bytes) - from);
    }
    if (source->rows.all > 0) octavo_checkpoint_drop(load->checkpoint, tensor, begin, bytes);
}

static octavo_status alloc(octavo_loader *load, octavo_weight *weight, const char *name) {
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
    if (octavo_pool_teams(load->options->pool) > 1)
        octavo_pool_bind_memory(load->options->pool, load->options->team, data, bytes);
    weight->data = data;
    return OCTAVO_OK;
}

octavo_status octavo_pack_place(octavo_loader *load, octavo_weight *weight,
                                const octavo_checkpoint_tensor *tensor, octavo_weight_part *part) {
    const bool is_stack = weight->stack > 0;
    *part = (octavo_weight_part){.n1 = weight->n, .k1 = weight->k, .e1 = weight->stack};
    octavo_status status = octavo_load_place(load, weight, tensor, weight->type, part);
    if (status) return status;
    if (weight->factors) weight->factors += part->e0;
    if (weight->order) weight->order += part->k0;
    weight->n = part->n1 - part->n0;
    weight->k = part->k1 - part->k0;
    weight->stack = part->e1 - part->e0;
    const bool is_empty = weight->n == 0 || weight->k == 0 || (is_stack && weight->stack == 0);
    if (!load->options->pool || is_empty) return OCTAVO_OK;
    return alloc(load, weight, tensor->name);
}

static bool is_whole(const octavo_weight_part *part, int64_t n, int64_t k) {
    return part->n0 == 0 && part->n1 == n && part->k0 == 0 && part->k1 == k;
}

void octavo_pack_ask(const octavo_loader *load, const octavo_checkpoint_tensor *tensor,
                     size_t matrix_bytes, const octavo_weight *whole,
                     const octavo_weight_part *part) {
    if (load->options->pool && is_whole(part, whole->n, whole->k))
        octavo_checkpoint_will_need(load->checkpoint, tensor, (size_t)part->e0 * matrix_bytes,
                                    (size_t)(part->e1 - part->e0) * matrix_bytes);
}

size_t octavo_pack_row_bytes(const octavo_pack_source *source, int64_t k) {
    const octavo_weight_info *info = octavo_weight_info_of(source->type);
    return (size_t)(k / info->source_inputs) * (size_t)info->source_bytes;
}

/* Sets the inputs that are read. */
static void cut_inputs(pack_job *job, const octavo_weight_part *part) {
    const int64_t block = octavo_weight_info_of(job->source.type)->source_inputs;
    job->k0 = part->k0 - part->k0 % block;
    job->k1 = part->k1 + (block - part->k1 % block) % block; /* k is whole blocks */
    job->skip = part->k0 - job->k0;
}

static bool add_bytes(octavo_weight_type from, octavo_weight_type to, int64_t k, size_t *most) {
    size_t bytes;
    if (!octavo_weight_convert_bytes(from, to, k, &bytes)) return false;
    if (bytes > *most) *most = bytes;
    return true;
}

static octavo_status alloc_scratch(octavo_loader *load, pack_job *job, const char *name) {
    const octavo_pack_source *source = &job->source;
    const octavo_weight *weight = job->weight;
    const size_t n_threads = (size_t)octavo_pool_threads(load->options->pool);
    const int64_t k = job->k1 - job->k0;
    const octavo_weight_type between = is_cut(job) ? OCTAVO_WEIGHT_F32 : weight->type;
    size_t convert_bytes = 0, bytes;
    job->copy_bytes = octavo_pack_row_bytes(source, k);
    if (source->fill || is_scattered(&source->rows, job->row) || source->columns.columns > 0)
        job->rows_bytes = octavo_align_up(job->copy_bytes * OCTAVO_PANEL, OCTAVO_ALIGN);
    if (source->type != weight->type &&
        (!add_bytes(source->type, between, k, &convert_bytes) ||
         !add_bytes(between, weight->type, weight->k, &convert_bytes)))
        return octavo_fail_memory(load->error, name, UINT64_MAX);
    if (is_cut(job))
        job->values_bytes = octavo_align_up((size_t)k * OCTAVO_PANEL * sizeof(float), OCTAVO_ALIGN);
    job->scratch_bytes = job->rows_bytes + job->values_bytes + convert_bytes;
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

/* Of the source, as far as the part is made of them. */
static uint64_t bytes_of_part(const octavo_pack_source *source, const octavo_weight *weight) {
    const uint64_t n = (uint64_t)weight->n, k = (uint64_t)weight->k;
    const uint64_t beside = source->beside_bytes * n / (uint64_t)source->n;
    return (source->row_bytes * k / (uint64_t)source->k) * n + beside * k / (uint64_t)source->k;
}

octavo_status octavo_pack_matrix(octavo_loader *load, const octavo_weight *weight,
                                 const octavo_weight_part *part, int64_t expert,
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
    if (matrix_bytes == 0) return OCTAVO_OK;
    if (load->options->pool) {
        pack_job job = {.source = *source,
                        .weight = weight,
                        .row = part->n0,
                        .to = (uint8_t *)(uintptr_t)weight->data +
                              (size_t)(expert - part->e0) * matrix_bytes};
        cut_inputs(&job, part);
        octavo_status status = alloc_scratch(load, &job, source->tensor->name);
        if (status) return status;
        pack_strips(load, &job);
        octavo_free_aligned(job.scratch);
        if ((status = check_values(load, &job))) return status;
    }
    return octavo_load_report(load, source->tensor, bytes_of_part(source, weight));
}
