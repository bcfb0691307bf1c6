/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/quantize.h: a plan for all tensors, then one after the other from the old file's map to
 * the new file, a strip of rows at a time. Pages of the old file are given back behind the work, so
 * memory holds a strip and no more.
 */
#include "octavo/quantize.h"

#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/quantize_plan.h"
#include "engine/quantize_rows.h"
#include "formats/gguf_write.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { COPY_BYTES = 8 << 20, MAX_THREADS = 1024, QUANTIZATION_VERSION = 2 };

typedef struct job {
    const octavo_quantize_options *options;
    octavo_gguf *gguf;
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

/* Whether `out` is one of the files that are read. Parts lie beside the first, whose path is whole;
 * messages cut long ones. */
static bool is_input(const octavo_gguf *gguf, const char *path, const char *out) {
    struct stat result, part;
    if (stat(out, &result) != 0) return false;
    const char *slash = strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    bool is_same =
        stat(path, &part) == 0 && part.st_dev == result.st_dev && part.st_ino == result.st_ino;
    for (size_t i = 1; i < octavo_gguf_n_parts(gguf) && !is_same; i++) {
        octavo_buffer name = {0};
        const char *shown = octavo_gguf_part_path(gguf, i), *last = strrchr(shown, '/');
        octavo_buffer_append(&name, path, folder);
        octavo_buffer_puts(&name, last ? last + 1 : shown);
        is_same = !name.failed && stat(name.data, &part) == 0 && part.st_dev == result.st_dev &&
                  part.st_ino == result.st_ino;
        octavo_buffer_deinit(&name);
    }
    return is_same;
}

static bool is_replaced(const char *key) {
    return strcmp(key, "general.file_type") == 0 ||
           strcmp(key, "general.quantization_version") == 0 || strncmp(key, "split.", 6) == 0;
}

static octavo_status write_head(job *j) {
    for (size_t i = 0; i < octavo_gguf_n_metadata(j->gguf); i++)
        if (!is_replaced(octavo_gguf_metadata_key(j->gguf, i)))
            octavo_gguf_writer_copy_metadata(j->writer, j->gguf, i);
    octavo_gguf_writer_put_u32(j->writer, "general.file_type", j->plan.file_type);
    if (j->plan.has_quantized)
        octavo_gguf_writer_put_u32(j->writer, "general.quantization_version", QUANTIZATION_VERSION);
    for (size_t i = 0; i < octavo_gguf_n_tensors(j->gguf); i++) {
        const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(j->gguf, i);
        octavo_gguf_writer_add_tensor(j->writer, tensor, j->plan.tensors[i].type);
        j->all += tensor->bytes;
    }
    return octavo_gguf_writer_begin(j->writer, j->error);
}

/* ---- tensors ---- */

static octavo_status advance(job *j, const octavo_gguf_tensor *tensor, size_t offset,
                             size_t bytes) {
    octavo_gguf_drop(j->gguf, tensor, offset, bytes);
    j->done += bytes;
    if (j->options->progress && j->options->progress(j->options->cookie, j->done, j->all) != 0)
        return octavo_fail(j->error, OCTAVO_ERROR_CANCELLED,
                           "quantising (%s): stopped; nothing was written", tensor->name);
    return OCTAVO_OK;
}

static octavo_status copy_tensor(job *j, const octavo_gguf_tensor *tensor) {
    octavo_status status = OCTAVO_OK;
    for (size_t at = 0; at < tensor->bytes && status == OCTAVO_OK;) {
        const size_t left = tensor->bytes - at, size = left < COPY_BYTES ? left : COPY_BYTES;
        status = octavo_gguf_writer_data(j->writer, tensor->data + at, size, j->error);
        if (status == OCTAVO_OK) status = advance(j, tensor, at, size);
        at += size;
    }
    return status;
}

static octavo_status check_loss(const octavo_row_loss *loss, const octavo_gguf_tensor *tensor,
                                octavo_ggml_type type, octavo_error *error) {
    if (loss->is_bad)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "tensor (%.120s): holds values that are infinite or no numbers; the "
                           "model is damaged, fetch it again, or leave the tensor as it is with "
                           "--keep",
                           tensor->name);
    if (loss->is_large)
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "tensor (%.120s): holds values too large for %s; give it a wider type "
                           "with --keep REGEX=TYPE",
                           tensor->name, octavo_ggml_type_name(type));
    return OCTAVO_OK;
}

static octavo_status convert_rows(job *j, const octavo_gguf_tensor *tensor, octavo_ggml_type type,
                                  octavo_row_converter *converter, octavo_row_loss *loss) {
    const int64_t n_rows = (int64_t)(tensor->bytes / converter->from_bytes);
    octavo_status status = OCTAVO_OK;
    for (int64_t r = 0; r < n_rows && status == OCTAVO_OK;) {
        const int64_t n = n_rows - r < converter->max_rows ? n_rows - r : converter->max_rows;
        const size_t at = (size_t)r * converter->from_bytes;
        octavo_row_converter_run(converter, tensor->data + at, n, loss);
        status = check_loss(loss, tensor, type, j->error);
        if (status == OCTAVO_OK)
            status = octavo_gguf_writer_data(j->writer, converter->rows,
                                             (size_t)n * converter->to_bytes, j->error);
        if (status == OCTAVO_OK) status = advance(j, tensor, at, (size_t)n * converter->from_bytes);
        r += n;
    }
    return status;
}

static octavo_status convert_tensor(job *j, const octavo_gguf_tensor *tensor,
                                    const octavo_tensor_plan *plan, octavo_row_loss *loss) {
    octavo_row_converter converter;
    octavo_status status = octavo_row_converter_init(&converter, j->pool, plan->from, plan->to,
                                                     (int64_t)tensor->extent[0], j->error);
    if (status) return status;
    status = convert_rows(j, tensor, plan->type, &converter, loss);
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
    for (size_t i = 0; i < octavo_gguf_n_tensors(j->gguf); i++) {
        const octavo_gguf_tensor *tensor = octavo_gguf_tensor_at(j->gguf, i);
        const octavo_tensor_plan *plan = &j->plan.tensors[i];
        octavo_row_loss loss = {0};
        octavo_gguf_will_need(j->gguf, tensor);
        octavo_status status =
            plan->is_copied ? copy_tensor(j, tensor) : convert_tensor(j, tensor, plan, &loss);
        if (status) return status;
        report_tensor(j, tensor, plan, &loss);
    }
    j->total.rms_error = share_of(sqrt(j->loss.errors), j->loss.squares, 1.0);
    return OCTAVO_OK;
}

/* ---- the whole ---- */

static octavo_status check_arguments(const char *path, const char *out,
                                     const octavo_quantize_options *options, octavo_error *error) {
    struct stat facts;
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
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "model (%.200s): is a folder; only GGUF files are quantised, convert it "
                           "to GGUF first",
                           path);
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
    if (status || (status = octavo_gguf_open(path, &j.gguf, error))) return status;
    status = octavo_quantize_plan_make(&j.plan, j.gguf, options, error);
    if (status == OCTAVO_OK && is_input(j.gguf, path, out))
        status = octavo_fail(error, OCTAVO_ERROR_INVALID,
                             "file (%.200s): is the model that is read; give another name", out);
    if (status == OCTAVO_OK) status = write_file(&j, out);
    if (status == OCTAVO_OK && total) *total = j.total;
    octavo_quantize_plan_deinit(&j.plan);
    octavo_gguf_close(&j.gguf);
    return status;
}
