/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/quantize.h: a plan for all tensors, then one after the other from the old file's map to
 * the new file, a strip of rows at a time. Pages of the old file are given back behind the work, so
 * memory holds a strip and no more.
 */
#include "octavo/quantize.h"

#include "base/cpu.h"
#include "base/error.h"
#include "engine/quantize_plan.h"
#include "engine/quantize_rows.h"
#include "engine/quantize_source.h"

#include <math.h>
#include <string.h>

enum { COPY_BYTES = 8 << 20, MAX_THREADS = 1024, QUANTIZATION_VERSION = 2 };

typedef struct job {
    const octavo_quantize_options *options;
    octavo_quantize_source source;
    octavo_quantize_plan plan;
    octavo_gguf_writer *writer;
    octavo_pool *pool;
    uint64_t done, all; /* bytes of the input's tensors */
    octavo_row_loss loss;
    octavo_quantize_total total;
    octavo_error *error;
} job;

void octavo_quantize_options_init(octavo_quantize_options *options) {
    *options = (octavo_quantize_options){.size = sizeof *options};
}

/* ---- the file's head ---- */

static octavo_status write_head(job *j) {
    octavo_status status = octavo_quantize_source_put(&j->source, j->writer, j->error);
    if (status) return status;
    octavo_gguf_writer_put_u32(j->writer, "general.file_type", j->plan.file_type);
    if (j->plan.has_quantized)
        octavo_gguf_writer_put_u32(j->writer, "general.quantization_version", QUANTIZATION_VERSION);
    for (size_t i = 0; i < octavo_quantize_source_n(&j->source); i++) {
        const octavo_gguf_tensor *tensor = octavo_quantize_source_at(&j->source, i);
        octavo_gguf_writer_add_tensor(j->writer, tensor, j->plan.tensors[i].type);
        j->all += tensor->bytes;
    }
    return octavo_gguf_writer_begin(j->writer, j->error);
}

/* ---- tensors ---- */

static octavo_status advance(job *j, size_t i, int64_t row, int64_t n, size_t bytes) {
    octavo_quantize_source_end(&j->source, i, row, n);
    j->done += bytes;
    if (j->options->progress && j->options->progress(j->options->cookie, j->done, j->all) != 0)
        return octavo_fail(j->error, OCTAVO_ERROR_CANCELLED,
                           "quantising (%s): stopped; nothing was written",
                           octavo_quantize_source_at(&j->source, i)->name);
    return OCTAVO_OK;
}

static octavo_status fail_numbers(const octavo_gguf_tensor *tensor, octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "tensor (%.120s): holds values that are infinite or no numbers; the "
                       "model is damaged, fetch it again, or leave the tensor as it is with "
                       "--keep",
                       tensor->name);
}

static octavo_status copy_tensor(job *j, size_t i) {
    const octavo_gguf_tensor *tensor = octavo_quantize_source_at(&j->source, i);
    const int64_t n_rows = (int64_t)(tensor->extent[1] * tensor->extent[2] * tensor->extent[3]);
    const size_t row_bytes = n_rows > 0 ? tensor->bytes / (size_t)n_rows : 0;
    const int64_t most = row_bytes < COPY_BYTES ? (int64_t)(COPY_BYTES / (row_bytes + 1)) + 1 : 1;
    octavo_status status = octavo_quantize_source_begin(&j->source, i, most, j->error);
    for (int64_t r = 0; r < n_rows && status == OCTAVO_OK && row_bytes > 0; r += most) {
        const int64_t n = n_rows - r < most ? n_rows - r : most;
        const uint8_t *rows = octavo_quantize_source_rows(&j->source, i, r, n);
        if (!rows) return fail_numbers(tensor, j->error);
        status = octavo_gguf_writer_data(j->writer, rows, (size_t)n * row_bytes, j->error);
        if (status == OCTAVO_OK) status = advance(j, i, r, n, (size_t)n * row_bytes);
    }
    return status;
}

static octavo_status check_loss(const octavo_row_loss *loss, const octavo_gguf_tensor *tensor,
                                octavo_ggml_type type, octavo_error *error) {
    if (loss->is_bad) return fail_numbers(tensor, error);
    if (loss->is_large)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "tensor (%.120s): holds values too large for %s; give it a wider type "
                           "with --keep REGEX=TYPE",
                           tensor->name, octavo_ggml_type_name(type));
    return OCTAVO_OK;
}

static octavo_status convert_rows(job *j, size_t i, octavo_row_converter *converter,
                                  octavo_row_loss *loss) {
    const octavo_gguf_tensor *tensor = octavo_quantize_source_at(&j->source, i);
    const int64_t n_rows = (int64_t)(tensor->bytes / converter->from_bytes);
    octavo_status status =
        octavo_quantize_source_begin(&j->source, i, converter->max_rows, j->error);
    for (int64_t r = 0; r < n_rows && status == OCTAVO_OK;) {
        const int64_t n = n_rows - r < converter->max_rows ? n_rows - r : converter->max_rows;
        const uint8_t *rows = octavo_quantize_source_rows(&j->source, i, r, n);
        if (!rows) return fail_numbers(tensor, j->error);
        octavo_row_converter_run(converter, rows, n, loss);
        status = check_loss(loss, tensor, j->plan.tensors[i].type, j->error);
        if (status == OCTAVO_OK)
            status = octavo_gguf_writer_data(j->writer, converter->rows,
                                             (size_t)n * converter->to_bytes, j->error);
        if (status == OCTAVO_OK) status = advance(j, i, r, n, (size_t)n * converter->from_bytes);
        r += n;
    }
    return status;
}

static octavo_status convert_tensor(job *j, size_t i, octavo_row_loss *loss) {
    const octavo_tensor_plan *plan = &j->plan.tensors[i];
    octavo_row_converter converter;
    octavo_status status = octavo_row_converter_init(
        &converter, j->pool, plan->from, plan->to,
        (int64_t)octavo_quantize_source_at(&j->source, i)->extent[0], j->error);
    if (status) return status;
    status = convert_rows(j, i, &converter, loss);
    octavo_row_converter_deinit(&converter);
    return status;
}

/* What share of the RMS of n values an error is. */
static double share_of(double error, double squares, double n) {
    return squares > 0.0 ? error / sqrt(squares / n) : 0.0;
}

static void report_tensor(job *j, const octavo_gguf_tensor *tensor, const octavo_tensor_plan *plan,
                          const octavo_row_loss *loss) {
    octavo_quantize_total *total = &j->total;
    const octavo_ggml_type_info *from = octavo_ggml_type_lookup((uint32_t)tensor->type);
    const octavo_ggml_type_info *to = octavo_ggml_type_lookup((uint32_t)plan->type);
    const double n = (double)(tensor->bytes / from->block_bytes) * from->block_values;
    const octavo_quantized_tensor what = {
        .name = tensor->name,
        .from = from->name,
        .to = to->name,
        .extent = tensor->extent,
        .n_dims = tensor->n_dims,
        .from_bytes = tensor->bytes,
        .to_bytes = tensor->bytes / from->block_bytes * from->block_values / to->block_values *
                    to->block_bytes,
        .is_copied = plan->is_copied,
        .rms_error = share_of(sqrt(loss->errors / n), loss->squares, n),
        .max_error = share_of(loss->most, loss->squares, n),
        .note = plan->note,
    };
    total->n_tensors++;
    total->n_converted += !plan->is_copied;
    total->n_requantized += !plan->is_copied && from->block_values > 1;
    total->from_bytes += what.from_bytes;
    total->to_bytes += what.to_bytes;
    if (what.max_error > total->max_error) total->max_error = what.max_error;
    octavo_row_loss_add(&j->loss, loss);
    if (j->options->report) j->options->report(j->options->cookie, &what);
}

static octavo_status write_tensors(job *j) {
    for (size_t i = 0; i < octavo_quantize_source_n(&j->source); i++) {
        const octavo_tensor_plan *plan = &j->plan.tensors[i];
        octavo_row_loss loss = {0};
        octavo_status status = OCTAVO_OK;
        if (i == octavo_quantize_source_n_first(&j->source))
            status = octavo_quantize_source_check(&j->source, j->writer, j->error);
        if (status == OCTAVO_OK)
            status = plan->is_copied ? copy_tensor(j, i) : convert_tensor(j, i, &loss);
        if (status) return status;
        report_tensor(j, octavo_quantize_source_at(&j->source, i), plan, &loss);
    }
    j->total.rms_error = share_of(sqrt(j->loss.errors), j->loss.squares, 1.0);
    return OCTAVO_OK;
}

/* ---- the whole ---- */

static octavo_status check_arguments(const char *path, const char *out,
                                     const octavo_quantize_options *options, octavo_error *error) {
    if (!path || !out || !options || options->size != sizeof *options || !options->type ||
        (options->n_keep > 0 && !options->keep))
        return octavo_fail(
            error, OCTAVO_ERROR_INVALID,
            "octavo_quantize (arguments): path, out and options of this version with "
            "a type are needed");
    if (options->threads < 0 || options->threads > MAX_THREADS)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "threads (%d): out of range; give 1 to %d, or 0 for all cores",
                           options->threads, MAX_THREADS);
    return OCTAVO_OK;
}

static octavo_status write_file(job *j, const char *out) {
    const int threads = j->options->threads ? j->options->threads : octavo_cpu_cores();
    octavo_status status = octavo_pool_create(&j->pool, threads, false, j->error);
    if (status == OCTAVO_OK) status = octavo_gguf_writer_open(out, &j->writer, j->error);
    if (status == OCTAVO_OK) status = write_head(j);
    if (status == OCTAVO_OK) status = write_tensors(j);
    if (status == OCTAVO_OK) status = octavo_gguf_writer_finish(j->writer, j->error);
    if (status == OCTAVO_OK) j->total.file_bytes = octavo_gguf_writer_bytes(j->writer);
    octavo_gguf_writer_close(&j->writer);
    octavo_pool_destroy(&j->pool);
    return status;
}

octavo_status octavo_quantize(const char *path, const char *out,
                              const octavo_quantize_options *options, octavo_quantize_total *total,
                              octavo_error *error) {
    job j = {.options = options, .error = error};
    octavo_status status = check_arguments(path, out, options, error);
    if (status || (status = octavo_quantize_source_open(path, &j.source, error))) return status;
    status = octavo_quantize_plan_make(&j.plan, &j.source, options, error);
    if (status == OCTAVO_OK && octavo_quantize_source_has(&j.source, path, out))
        status = octavo_fail(error, OCTAVO_ERROR_INVALID,
                             "file (%.200s): is the model that is read; give another name", out);
    if (status == OCTAVO_OK) status = write_file(&j, out);
    if (status == OCTAVO_OK && total) *total = j.total;
    octavo_quantize_plan_deinit(&j.plan);
    octavo_quantize_source_close(&j.source);
    return status;
}
