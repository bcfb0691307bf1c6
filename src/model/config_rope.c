/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary embeddings: reading what kind they are. config.json has it in two styles: "rope_theta"
 * beside a "rope_scaling" object, or all in "rope_parameters", there once for the model or once for
 * each kind of layer.
 */
#include "model/config_rope.h"

#include "base/error.h"
#include "base/memory.h"
#include "model/family.h"

#include <math.h>
#include <string.h>

/* What is read, and from where. */
typedef struct source {
    const octavo_config_reader *reader; /* of config.json: the object about scaling */
    const octavo_config_reader *top;    /* the whole description */
    const octavo_model_config *config;
} source;

static octavo_status read_linear(const source *from, octavo_rope_config *rope) {
    const octavo_key factor = {"rope.scaling.factor", "factor"};
    rope->scaling = OCTAVO_ROPE_SCALING_LINEAR;
    return octavo_config_positive(
        from->reader, factor, octavo_config_is_hf(from->reader) ? (double)NAN : 1.0, &rope->factor);
}

static octavo_status read_llama3(const source *from, octavo_rope_config *rope) {
    const octavo_config_reader *reader = from->reader;
    const octavo_key factor = {NULL, "factor"}, low = {NULL, "low_freq_factor"};
    const octavo_key high = {NULL, "high_freq_factor"};
    const octavo_key original = {NULL, "original_max_position_embeddings"};
    octavo_status status;
    rope->scaling = OCTAVO_ROPE_SCALING_LLAMA3;
    if ((status = octavo_config_positive(reader, factor, (double)NAN, &rope->factor)) ||
        (status = octavo_config_positive(reader, low, (double)NAN, &rope->low_factor)) ||
        (status = octavo_config_positive(reader, high, (double)NAN, &rope->high_factor)) ||
        (status = octavo_config_positive(reader, original, (double)NAN, &rope->original_context)))
        return status;
    if (rope->high_factor > rope->low_factor) return OCTAVO_OK;
    return octavo_config_fail(reader, high, OCTAVO_ERROR_FORMAT,
                              "%g is not above low_freq_factor, %g; the file is damaged",
                              (double)rope->high_factor, (double)rope->low_factor);
}

/* The context before scaling, in the object about scaling or beside the model's own, and the factor
 * between the two where it is not written down. */
static octavo_status read_original(const source *from, octavo_rope_config *rope) {
    const octavo_key key = {"rope.scaling.original_context_length",
                            "original_max_position_embeddings"};
    const octavo_key factor = {"rope.scaling.factor", "factor"};
    const octavo_config_reader *reader =
        octavo_config_has(from->reader, key) ? from->reader : from->top;
    int64_t original = 0;
    octavo_status status =
        octavo_config_is_hf(reader)
            ? octavo_config_positive(reader, key, (double)from->config->context,
                                     &rope->original_context)
            : octavo_config_integer(reader, key, from->config->context, 1, 1 << 28, &original);
    if (status) return status;
    if (!octavo_config_is_hf(reader)) rope->original_context = (float)original;
    return octavo_config_positive(from->reader, factor,
                                  (double)from->config->context / (double)rope->original_context,
                                  &rope->factor);
}

static double yarn_scale(double factor, double by) {
    return factor <= 1.0 ? 1.0 : 0.1 * by * log(factor) + 1.0;
}

/* Of cos and sin, from what the files say of it. In GGUF files a factor comes on top. */
static octavo_status read_yarn_scale(const source *from, octavo_rope_config *rope) {
    const octavo_config_reader *reader = from->reader;
    const octavo_key attention = {"rope.scaling.attn_factor", "attention_factor"};
    const octavo_key mscale = {NULL, "mscale"}, all = {NULL, "mscale_all_dim"};
    const octavo_key all_gguf = {"rope.scaling.yarn_log_multiplier", NULL};
    const double factor = (double)rope->factor;
    double usual = yarn_scale(factor, 1.0);
    float by, by_all;
    octavo_status status;
    if (octavo_config_has(reader, mscale) && octavo_config_has(reader, all)) {
        if ((status = octavo_config_positive(reader, mscale, 1.0, &by)) ||
            (status = octavo_config_positive(reader, all, 1.0, &by_all)))
            return status;
        usual = yarn_scale(factor, (double)by) / yarn_scale(factor, (double)by_all);
    }
    if (octavo_config_has(reader, all_gguf)) {
        if ((status = octavo_config_positive(reader, all_gguf, 1.0, &by_all))) return status;
        usual /= yarn_scale(factor, (double)by_all);
    }
    if (octavo_config_is_hf(reader))
        return octavo_config_positive(reader, attention, usual, &rope->scale);
    status = octavo_config_positive(reader, attention, 1.0, &by);
    if (status == OCTAVO_OK) rope->scale = (float)(usual * (double)by);
    return status;
}

static octavo_status read_yarn(const source *from, octavo_rope_config *rope) {
    const octavo_config_reader *reader = from->reader;
    const octavo_key fast = {"rope.scaling.yarn_beta_fast", "beta_fast"};
    const octavo_key slow = {"rope.scaling.yarn_beta_slow", "beta_slow"};
    octavo_status status;
    rope->scaling = OCTAVO_ROPE_SCALING_YARN;
    if ((status = read_original(from, rope)) || (status = read_yarn_scale(from, rope)) ||
        (status = octavo_config_positive(reader, fast, 32.0, &rope->high_factor)) ||
        (status = octavo_config_positive(reader, slow, 1.0, &rope->low_factor)) ||
        (status = octavo_config_flag(reader, (octavo_key){NULL, "truncate"}, true,
                                     &rope->has_whole_bounds)))
        return status;
    if (!(rope->high_factor > rope->low_factor))
        return octavo_config_fail(reader, fast, OCTAVO_ERROR_FORMAT,
                                  "%g is not above the other bound, %g; the file is damaged",
                                  (double)rope->high_factor, (double)rope->low_factor);
    if (rope->base > 1.0f) return OCTAVO_OK;
    return octavo_config_fail(reader, fast, OCTAVO_ERROR_FORMAT,
                              "with a rope base of %g, at which no pair turns slower than another; "
                              "the file is damaged",
                              (double)rope->base);
}

/* One positive number for each pair. */
static octavo_status read_list(const source *from, const char *name, float **list) {
    const size_t pairs = (size_t)(from->config->rope_dim / 2);
    const octavo_key key = {NULL, name};
    const json_t *json = json_object_get(from->reader->object, name);
    if (!json_is_array(json) || json_array_size(json) != pairs)
        return octavo_config_fail(from->reader, key, OCTAVO_ERROR_FORMAT,
                                  "not a list of %zu numbers, one for each pair that is rotated",
                                  pairs);
    float *values = octavo_alloc_zero(pairs, sizeof *values);
    if (!values) return octavo_fail_memory(from->reader->error, name, pairs * sizeof *values);
    *list = values;
    for (size_t i = 0; i < pairs; i++) {
        values[i] = (float)json_number_value(json_array_get(json, i));
        if (!(values[i] > 0.0f) || !isfinite(values[i]))
            return octavo_config_fail(from->reader, key, OCTAVO_ERROR_FORMAT,
                                      "entry %zu is no positive number; the file is damaged", i);
    }
    return OCTAVO_OK;
}

/* A tensor of one divisor for each pair; *list stays NULL where the file has none. */
static octavo_status read_tensor(const source *from, const char *name, float **list) {
    const size_t pairs = (size_t)(from->config->rope_dim / 2);
    const octavo_checkpoint *checkpoint = from->reader->checkpoint;
    octavo_error *error = from->reader->error;
    octavo_checkpoint_tensor tensor;
    if (octavo_checkpoint_find(checkpoint, name) < 0) return OCTAVO_OK;
    octavo_status status = octavo_checkpoint_get(checkpoint, name, &tensor, error);
    if (status) return status;
    if (tensor.type != OCTAVO_GGML_F32 || tensor.bytes != pairs * sizeof(float))
        return octavo_fail(error, OCTAVO_ERROR_FORMAT,
                           "tensor \"%s\" (%s): not %zu f32 values; the file is damaged",
                           tensor.name, tensor.path, pairs);
    *list = octavo_alloc_zero(pairs, sizeof(float));
    if (!*list) return octavo_fail_memory(error, name, tensor.bytes);
    memcpy(*list, tensor.data, tensor.bytes);
    return OCTAVO_OK;
}

/* GGUF files give no formula but the number that comes out. */
static octavo_status read_longrope(const source *from, octavo_rope_config *rope) {
    const octavo_key attention = {"rope.scaling.attn_factor", "attention_factor"};
    const bool is_hf = octavo_config_is_hf(from->reader);
    octavo_status status;
    if ((status = read_original(from, rope)) ||
        (status = is_hf ? read_list(from, "short_factor", &rope->divisors)
                        : read_tensor(from, "rope_factors_short.weight", &rope->divisors)) ||
        (status = is_hf ? read_list(from, "long_factor", &rope->long_divisors)
                        : read_tensor(from, "rope_factors_long.weight", &rope->long_divisors)))
        return status;
    if (!rope->divisors || !rope->long_divisors)
        return octavo_config_fail(from->reader, (octavo_key){"rope.scaling.type", NULL},
                                  OCTAVO_ERROR_NOT_FOUND,
                                  "longrope, but the tensors rope_factors_short.weight and "
                                  "rope_factors_long.weight are not both there");
    double scale = 1.0, factor = (double)rope->factor;
    if (is_hf && factor > 1.0 && rope->original_context > 1.0f)
        scale = sqrt(1.0 + log(factor) / log((double)rope->original_context));
    return octavo_config_positive(from->reader, attention, scale, &rope->scale);
}

/* Also for "dynamic", whose base would grow in sequences longer than the model's context: there are
 * none. */
static octavo_status read_none(const source *from, octavo_rope_config *rope) {
    (void)from;
    rope->scaling = OCTAVO_ROPE_SCALING_NONE;
    return OCTAVO_OK;
}

/* GGUF files of Llama 3 have its divisors as a tensor, so the kind is not among theirs. */
static const struct {
    const char *gguf, *hf;
    octavo_status (*read)(const source *from, octavo_rope_config *rope);
} kinds[] = {
    {"none", "default", read_none}, {"linear", "linear", read_linear},
    {NULL, "llama3", read_llama3},  {NULL, "dynamic", read_none},
    {"yarn", "yarn", read_yarn},    {"longrope", "longrope", read_longrope},
    {NULL, "su", read_longrope},
};

static octavo_status read_kind(const source *from, octavo_key key, octavo_gguf_string kind,
                               octavo_rope_config *rope) {
    const bool is_hf = octavo_config_is_hf(from->reader);
    for (size_t i = 0; i < OCTAVO_COUNT(kinds); i++) {
        const char *name = is_hf ? kinds[i].hf : kinds[i].gguf;
        if (name && octavo_text_is(kind, name)) return kinds[i].read(from, rope);
    }
    return octavo_config_fail(from->reader, key, OCTAVO_ERROR_UNSUPPORTED,
                              "rope scaling \"%.*s\" is not in this version; %s",
                              (int)(kind.size < 32 ? kind.size : 32), kind.data,
                              is_hf ? "default, linear, dynamic, llama3, yarn and longrope are"
                                    : "none, linear, yarn and longrope are");
}

/* Divisors lie in tensors, whether or not the kind of scaling is written down. */
static octavo_status read_gguf(const source *from, const octavo_rope_source *about,
                               octavo_rope_config *rope) {
    const octavo_key key = {"rope.scaling.type", NULL};
    octavo_gguf_string kind;
    octavo_status status =
        octavo_config_positive(from->reader, about->base, about->fallback, &rope->base);
    if (status || !about->is_scaled) return status;
    if (octavo_checkpoint_find(from->reader->checkpoint, "rope_factors_long.weight") >= 0)
        return read_longrope(from, rope);
    if ((status = read_tensor(from, "rope_freqs.weight", &rope->divisors)) ||
        (status = octavo_config_text(from->reader, key, "none", &kind)))
        return status;
    return read_kind(from, key, kind, rope);
}

/* "rope_type", which was "type" before; some writers put down both. */
static octavo_status read_hf_kind(const source *from, octavo_rope_config *rope) {
    const octavo_config_reader *reader = from->reader;
    const octavo_key key = {NULL, "rope_type"}, old_key = {NULL, "type"};
    octavo_gguf_string kind, old;
    octavo_status status;
    if ((status = octavo_config_text(reader, key, NULL, &kind)) ||
        (status = octavo_config_text(reader, old_key, NULL, &old)))
        return status;
    if (kind.data && old.data &&
        (kind.size != old.size || memcmp(kind.data, old.data, kind.size) != 0))
        return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                  "\"type\" beside it says another kind; leave one out");
    if (kind.data) return read_kind(from, key, kind, rope);
    if (old.data) return read_kind(from, old_key, old, rope);
    if (octavo_config_has(reader, (octavo_key){NULL, "factor"}))
        return octavo_config_fail(reader, key, OCTAVO_ERROR_NOT_FOUND,
                                  "the key is missing, so the kind of scaling is not known");
    return OCTAVO_OK;
}

/* The object about scaling; ->object is NULL without one. */
static octavo_status find_scaling(const octavo_config_reader *reader, const char *layer_type,
                                  octavo_config_reader *scaling, bool *is_by_layer) {
    octavo_config_reader old, inner;
    octavo_status status;
    if ((status = octavo_config_section(reader, "rope_parameters", scaling)) ||
        (status = octavo_config_section(reader, "rope_scaling", &old)))
        return status;
    if (scaling->object && old.object && !json_equal(scaling->object, old.object))
        return octavo_config_fail(reader, (octavo_key){NULL, "rope_scaling"}, OCTAVO_ERROR_FORMAT,
                                  "\"rope_parameters\" says otherwise; leave one out");
    if (!scaling->object) *scaling = old;
    *is_by_layer = false;
    if (!scaling->object || !layer_type) return OCTAVO_OK;
    status = octavo_config_section(scaling, layer_type, &inner);
    if (status || !inner.object) return status;
    *scaling = inner;
    *is_by_layer = true;
    return OCTAVO_OK;
}

static octavo_status read_hf(const source *from, const octavo_rope_source *about,
                             octavo_rope_config *rope) {
    const octavo_config_reader *reader = from->top;
    const octavo_key base_key = {NULL, "rope_theta"};
    octavo_config_reader scaling;
    bool is_by_layer = false;
    octavo_status status = find_scaling(reader, about->layer_type, &scaling, &is_by_layer);
    if (status) return status;
    const bool is_about_this = scaling.object && (about->is_scaled || is_by_layer);
    const bool has_inner = is_about_this && octavo_config_has(&scaling, base_key);
    status = has_inner ? octavo_config_positive(&scaling, base_key, 0.0, &rope->base)
                       : octavo_config_positive(reader, about->base, about->fallback, &rope->base);
    if (status) return status;
    if (has_inner && octavo_config_has(reader, about->base)) {
        float outer;
        status = octavo_config_positive(reader, about->base, 0.0, &outer);
        if (status) return status;
        if (outer != rope->base)
            return octavo_config_fail(reader, about->base, OCTAVO_ERROR_FORMAT,
                                      "%g here, but %g in \"%s\"; leave one out", (double)outer,
                                      (double)rope->base, scaling.section);
    }
    octavo_config_note_number(reader->notes, about->base.gguf, rope->base);
    if (!is_about_this) return OCTAVO_OK;
    return read_hf_kind(&(source){&scaling, reader, from->config}, rope);
}

octavo_status octavo_family_rope(const octavo_config_reader *reader, octavo_model_config *config,
                                 int index, const octavo_rope_source *about) {
    const source from = {reader, reader, config};
    octavo_rope_config *rope = &config->ropes[index];
    *rope = (octavo_rope_config){.factor = 1.0f, .scale = 1.0f};
    if (index >= config->n_ropes) config->n_ropes = index + 1;
    return octavo_config_is_hf(reader) ? read_hf(&from, about, rope)
                                       : read_gguf(&from, about, rope);
}
