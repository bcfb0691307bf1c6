/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo/calibrate.h: the steps themselves measure (attention_op.c); here is what comes of it, as a
 * file
 *
 *     {"kv_scales": 1, "architecture": "llama", "layers": 2, "width": 64, "kv_heads": 1,
 *      "head_width": 32, "vocabulary": 300, "keys": [[9.5], [11.25]], "values": [[1.5], [2]]}
 *
 * whose numbers are largest magnitudes, so that one file serves every type.
 */
#include "engine/calibration.h"

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/model.h"
#include "formats/hf_folder_file.h"

#include "octavo/calibrate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { VERSION = 1 };

struct octavo_calibration {
    octavo_model *model;
};

octavo_status octavo_calibration_create(octavo_model *model, octavo_calibration **out,
                                        octavo_error *error) {
    const octavo_model_config *config = &model->network.config;
    if (model->ranks.n > 0)
        return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                           "calibration (%s): a model that is split over ranks is not measured; "
                           "open it on one",
                           config->architecture);
    if (model->run.kv_tops)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "calibration (%s): the model is measured already; destroy the other one",
                           config->architecture);
    const size_t threads = (size_t)octavo_pool_threads(model->pool);
    const size_t tops = 2 * (size_t)config->n_kv_layers * (size_t)config->n_kv_heads;
    octavo_calibration *made = octavo_alloc_zero(1, sizeof *made);
    float *memory = octavo_alloc_zero(threads * tops, sizeof *memory);
    if (!made || !memory) {
        octavo_free(made);
        octavo_free(memory);
        return octavo_fail_memory(error, "calibration", threads * tops * sizeof *memory);
    }
    made->model = model;
    model->run.n_kv_heads = (int32_t)config->n_kv_heads;
    model->run.kv_tops = memory;
    *out = made;
    return OCTAVO_OK;
}

void octavo_calibration_destroy(octavo_calibration **calibration) {
    if (!calibration || !*calibration) return;
    octavo_run *run = &(*calibration)->model->run;
    octavo_free(run->kv_tops);
    run->kv_tops = NULL;
    octavo_free(*calibration);
    *calibration = NULL;
}

/* ---- writing ---- */

/* What all threads have measured; is_value 0 or 1. */
static double top_of(const octavo_model *model, int layer, int is_value, int64_t head) {
    const octavo_model_config *config = &model->network.config;
    const int64_t n_tops = 2 * config->n_kv_layers * config->n_kv_heads;
    const int64_t at = (2 * (int64_t)layer + is_value) * config->n_kv_heads + head;
    float top = 0.0f;
    for (int thread = 0; thread < octavo_pool_threads(model->pool); thread++) {
        const float own = model->run.kv_tops[thread * n_tops + at];
        if (!(own <= top)) top = own; /* a NaN, too */
    }
    return (double)top;
}

/* [[...], ...] of all layers; NULL without memory. */
static json_t *tops_json(const octavo_model *model, int is_value) {
    const octavo_model_config *config = &model->network.config;
    json_t *layers = json_array();
    for (int i = 0; i < config->n_kv_layers; i++) {
        json_t *heads = json_array();
        for (int64_t h = 0; h < config->n_kv_heads; h++) {
            if (json_array_append_new(heads, json_real(top_of(model, i, is_value, h)))) {
                json_decref(heads);
                heads = NULL;
                break;
            }
        }
        if (!heads || json_array_append_new(layers, heads)) {
            json_decref(layers);
            return NULL;
        }
    }
    return layers;
}

static octavo_status check_tops(const octavo_model *model, octavo_error *error) {
    const octavo_model_config *config = &model->network.config;
    double largest = 0.0;
    for (int i = 0; i < config->n_kv_layers; i++) {
        for (int64_t h = 0; h < 2 * config->n_kv_heads; h++) {
            const int is_value = h >= config->n_kv_heads;
            const double top = top_of(model, i, is_value, h % config->n_kv_heads);
            if (!isfinite(top))
                return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                                   "calibration (layer %d, kv head %lld): its %s are not finite; "
                                   "is the model damaged?",
                                   i, (long long)(h % config->n_kv_heads),
                                   is_value ? "values" : "keys");
            largest = fmax(largest, top);
        }
    }
    if (largest > 0.0) return OCTAVO_OK;
    return octavo_fail(error, OCTAVO_ERROR_INVALID,
                       "calibration (%s): nothing was measured yet; feed a text first",
                       config->architecture);
}

static octavo_status write_json(const json_t *json, const char *path, octavo_error *error) {
    struct stat info;
    FILE *file = fopen(path, "w");
    if (!file)
        return octavo_fail(error, OCTAVO_ERROR_IO, "file (%.200s): cannot be created: %s", path,
                           strerror(errno));
    const bool is_plain = fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode);
    const bool is_written = json_dumpf(json, file, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) == 0 &&
                            fputc('\n', file) != EOF && fflush(file) == 0;
    const int reason = errno;
    if (fclose(file) == 0 && is_written) return OCTAVO_OK;
    if (is_plain) remove(path);
    return octavo_fail(error, OCTAVO_ERROR_IO, "file (%.200s): cannot be written: %s", path,
                       strerror(is_written ? errno : reason));
}

octavo_status octavo_calibration_write(const octavo_calibration *calibration, const char *path,
                                       octavo_error *error) {
    const octavo_model *model = calibration->model;
    const octavo_model_config *config = &model->network.config;
    octavo_status status = check_tops(model, error);
    if (status) return status;
    json_t *json =
        json_pack("{s:i, s:s, s:i, s:I, s:I, s:I, s:I, s:o, s:o}", "kv_scales", (int)VERSION,
                  "architecture", config->architecture, "layers", config->n_kv_layers, "width",
                  (json_int_t)config->d, "kv_heads", (json_int_t)config->n_kv_heads, "head_width",
                  (json_int_t)config->head_dim, "vocabulary", (json_int_t)config->vocab, "keys",
                  tops_json(model, 0), "values", tops_json(model, 1));
    if (!json) return octavo_fail_memory(error, "calibration", 0);
    status = write_json(json, path, error);
    json_decref(json);
    return status;
}

/* ---- reading ---- */

static octavo_status fail_key(const char *path, const char *key, const char *why,
                              octavo_error *error) {
    return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                       "kv scales \"%s\" (%s): %s; make the file with octavo calibrate", key,
                       octavo_hf_shown_path(path), why);
}

static octavo_status check_number(const json_t *root, const char *path, const char *key,
                                  int64_t wanted, octavo_error *error) {
    const json_t *value = json_object_get(root, key);
    if (!json_is_integer(value)) return fail_key(path, key, "no whole number", error);
    if (json_integer_value(value) == wanted) return OCTAVO_OK;
    return octavo_fail(
        error, OCTAVO_ERROR_INVALID,
        "kv scales \"%s\" (%s): %lld, but the model has %lld; the file is of another "
        "model",
        key, octavo_hf_shown_path(path), (long long)json_integer_value(value), (long long)wanted);
}

/* Is the file one of ours, and of this model? */
static octavo_status check_header(const json_t *root, const char *path,
                                  const octavo_model_config *config, octavo_error *error) {
    const struct {
        const char *key;
        int64_t wanted;
    } numbers[] = {
        {"layers", config->n_kv_layers},  {"width", config->d},
        {"kv_heads", config->n_kv_heads}, {"head_width", config->head_dim},
        {"vocabulary", config->vocab},
    };
    const json_t *version = json_object_get(root, "kv_scales");
    if (!json_is_integer(version)) return fail_key(path, "kv_scales", "no such key", error);
    if (json_integer_value(version) != VERSION)
        return fail_key(path, "kv_scales", "of another version of octavo", error);
    const char *architecture = json_string_value(json_object_get(root, "architecture"));
    if (!architecture) return fail_key(path, "architecture", "no text", error);
    if (strcmp(architecture, config->architecture) != 0)
        return octavo_fail(error, OCTAVO_ERROR_INVALID,
                           "kv scales \"architecture\" (%s): %.40s, but the model is %s; the file "
                           "is of another model",
                           octavo_hf_shown_path(path), architecture, config->architecture);
    for (size_t i = 0; i < OCTAVO_COUNT(numbers); i++) {
        octavo_status status = check_number(root, path, numbers[i].key, numbers[i].wanted, error);
        if (status) return status;
    }
    return OCTAVO_OK;
}

/* scales [n_layers, n_heads] from the magnitudes under a key. */
static octavo_status read_scales(const json_t *root, const char *path, const char *key,
                                 float largest, const octavo_kv_scales *shape, float *scales,
                                 octavo_error *error) {
    const json_t *layers = json_object_get(root, key);
    if (json_array_size(layers) != (size_t)shape->n_layers)
        return fail_key(path, key, "no list with one list for each layer", error);
    for (int32_t i = 0; i < shape->n_layers; i++) {
        const json_t *heads = json_array_get(layers, (size_t)i);
        if (json_array_size(heads) != (size_t)shape->n_heads)
            return fail_key(path, key, "not one number for each kv head in every layer", error);
        for (int32_t h = 0; h < shape->n_heads; h++) {
            const json_t *number = json_array_get(heads, (size_t)h);
            const double top = json_number_value(number);
            const float scale = (float)top / largest;
            if (!json_is_number(number) || !(top >= 0.0) || !isfinite(scale))
                return fail_key(path, key, "a number that is no magnitude", error);
            /* what was always 0 while it was measured may have any */
            if (isnormal(scale)) scales[(int64_t)i * shape->n_heads + h] = scale;
        }
    }
    return OCTAVO_OK;
}

octavo_status octavo_calibration_read(const char *path, octavo_dtype dtype,
                                      const octavo_model_config *config, octavo_kv_scales *scales,
                                      octavo_error *error) {
    const float largest = octavo_attention_largest(dtype);
    octavo_kv_scales made = {0};
    json_t *root = NULL;
    octavo_status status = octavo_hf_json_read(path, &root, error);
    if (status) return status;
    if ((status = check_header(root, path, config, error)) ||
        (status = octavo_kv_scales_init(&made, config->n_kv_layers, (int32_t)config->n_kv_heads,
                                        error)) ||
        (status = read_scales(root, path, "keys", largest, &made, made.key, error)) ||
        (status = read_scales(root, path, "values", largest, &made, made.value, error)))
        octavo_kv_scales_deinit(&made);
    else
        *scales = made;
    json_decref(root);
    return status;
}
