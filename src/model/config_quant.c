/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods by name. Sources: the config classes of transformers (FineGrainedFP8Config,
 * GPTQConfig, AwqConfig) and of compressed-tensors and ModelOpt.
 */
#include "model/config_quant.h"

#include "formats/safetensors_scale.h"

#include <string.h>

static octavo_status refuse(const octavo_config_reader *reader, octavo_key key,
                            octavo_gguf_string text, const char *hint) {
    return octavo_config_fail(reader, key, OCTAVO_ERROR_UNSUPPORTED,
                              "\"%.*s\" weights are not in this version; %s",
                              (int)(text.size < 32 ? text.size : 32), text.data, hint);
}

/* A text that must be one of a few. */
static octavo_status check_word(const octavo_config_reader *reader, octavo_key key,
                                const char *const *words, size_t n) {
    octavo_gguf_string text;
    octavo_status status = octavo_config_text(reader, key, words[0], &text);
    if (status) return status;
    for (size_t i = 0; i < n; i++)
        if (octavo_text_is(text, words[i])) return OCTAVO_OK;
    return refuse(reader, key, text, "use the model in F32, F16 or BF16, or a GGUF file");
}

/* ---- 8-bit floats ---- */

static octavo_status read_block(const octavo_config_reader *reader, octavo_quant *quant) {
    const octavo_key key = {NULL, "weight_block_size"};
    const json_t *list = json_object_get(reader->object, key.hf);
    if (!list || json_is_null(list)) return OCTAVO_OK;
    for (size_t i = 0; i < 2; i++) {
        const json_t *extent = json_array_get(list, i);
        const json_int_t value = json_integer_value(extent);
        if (json_array_size(list) != 2 || value < 1 || value > 1 << 20)
            return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                                      "not two whole numbers of rows and columns; the file is "
                                      "damaged or made for another program");
        quant->f8_block[i] = value;
    }
    return OCTAVO_OK;
}

/* Of pack-quantized: all groups of modules must be coded the same way. */
static octavo_status read_packed(const octavo_config_reader *reader, octavo_quant *quant) {
    const octavo_key key = {NULL, "config_groups"};
    json_t *groups = json_object_get(reader->object, key.hf), *group;
    const char *name;
    quant->kind = OCTAVO_QUANT_PACKED;
    json_object_foreach(groups, name, group) {
        const json_t *weights = json_object_get(group, "weights");
        const json_t *type = json_object_get(weights, "type");
        const json_int_t bits = json_integer_value(json_object_get(weights, "num_bits"));
        const json_int_t size = json_integer_value(json_object_get(weights, "group_size"));
        const int64_t inputs = size == 0 ? -1 : size; /* null: a scale for each output */
        const bool is_other = quant->bits != 0 && (bits != quant->bits || inputs != quant->group);
        if ((bits != 4 && bits != 8) || inputs < -1 || inputs > 1 << 22 || is_other ||
            (type && strcmp(json_string_value(type) ? json_string_value(type) : "", "int") != 0))
            return octavo_config_fail(reader, key, OCTAVO_ERROR_UNSUPPORTED,
                                      "weights of \"%.32s\" are not coded as one kind of integers "
                                      "of 4 or 8 bits",
                                      name);
        quant->bits = bits;
        quant->group = inputs;
    }
    if (quant->bits != 0) return OCTAVO_OK;
    return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                              "no groups that say how weights are coded; the file is damaged");
}

static octavo_status read_compressed(const octavo_config_reader *reader, octavo_quant *quant) {
    static const char *const formats[] = {"float-quantized", "naive-quantized", "dense",
                                          "pack-quantized"};
    const octavo_key key = {NULL, "format"};
    octavo_gguf_string text;
    octavo_status status = check_word(reader, key, formats, OCTAVO_COUNT(formats));
    if (status || (status = octavo_config_text(reader, key, formats[0], &text))) return status;
    return octavo_text_is(text, "pack-quantized") ? read_packed(reader, quant) : OCTAVO_OK;
}

static octavo_status read_modelopt(const octavo_config_reader *reader, octavo_quant *quant) {
    static const char *const algorithms[] = {"FP8"};
    (void)quant;
    return check_word(reader, (octavo_key){NULL, "quant_algo"}, algorithms, 1);
}

static octavo_status read_nothing(const octavo_config_reader *reader, octavo_quant *quant) {
    (void)reader, (void)quant;
    return OCTAVO_OK;
}

/* ---- codes of integers ---- */

static octavo_status read_group(const octavo_config_reader *reader, octavo_key key,
                                int64_t fallback, octavo_quant *quant) {
    octavo_status status = octavo_config_integer(reader, key, fallback, -1, 1 << 22, &quant->group);
    if (status || quant->group != 0) return status;
    return octavo_config_fail(reader, key, OCTAVO_ERROR_FORMAT,
                              "0: a group has inputs, or is -1; the file is damaged");
}

static octavo_status read_gptq(const octavo_config_reader *reader, octavo_quant *quant) {
    const octavo_key bits = {NULL, "bits"}, format = {NULL, "checkpoint_format"};
    static const char *const formats[] = {"gptq", "gptq_v2"};
    octavo_gguf_string text;
    octavo_status status;
    if ((status = octavo_config_integer(reader, bits, OCTAVO_REQUIRED, 2, 8, &quant->bits)) ||
        (status = read_group(reader, (octavo_key){NULL, "group_size"}, OCTAVO_REQUIRED, quant)) ||
        (status = check_word(reader, format, formats, OCTAVO_COUNT(formats))) ||
        (status = octavo_config_text(reader, format, formats[0], &text)))
        return status;
    quant->has_lesser_zeros = octavo_text_is(text, "gptq");
    if (quant->bits == 2 || quant->bits == 3 || quant->bits == 4 || quant->bits == 8)
        return OCTAVO_OK;
    return octavo_config_fail(reader, bits, OCTAVO_ERROR_UNSUPPORTED,
                              "codes of %lld bits cannot be read; 2, 3, 4 and 8 can",
                              (long long)quant->bits);
}

static octavo_status read_awq(const octavo_config_reader *reader, octavo_quant *quant) {
    octavo_key bits = {NULL, "bits"}, group = {NULL, "group_size"};
    static const char *const versions[] = {"gemm", "GEMM"};
    if (!octavo_config_has(reader, bits)) bits.hf = "w_bit";
    if (!octavo_config_has(reader, group)) group.hf = "q_group_size";
    octavo_status status;
    if ((status = octavo_config_integer(reader, bits, OCTAVO_REQUIRED, 1, 16, &quant->bits)) ||
        (status = read_group(reader, group, OCTAVO_REQUIRED, quant)) ||
        (status =
             check_word(reader, (octavo_key){NULL, "version"}, versions, OCTAVO_COUNT(versions))))
        return status;
    if (quant->bits == 4) return OCTAVO_OK;
    return octavo_config_fail(reader, bits, OCTAVO_ERROR_UNSUPPORTED,
                              "codes of %lld bits cannot be read; 4 can", (long long)quant->bits);
}

/* ---- all ---- */

typedef octavo_status read_fn(const octavo_config_reader *reader, octavo_quant *quant);

octavo_status octavo_config_quant(const octavo_config_reader *reader, const char *own,
                                  octavo_quant *quant) {
    static const struct {
        const char *name;
        octavo_quant_kind kind;
        read_fn *read;
    } methods[] = {
        {"fp8", OCTAVO_QUANT_F8, read_block},
        {"fbgemm_fp8", OCTAVO_QUANT_F8, read_nothing},
        {"compressed-tensors", OCTAVO_QUANT_F8, read_compressed},
        {"modelopt", OCTAVO_QUANT_F8, read_modelopt},
        {"gptq", OCTAVO_QUANT_GPTQ, read_gptq},
        {"awq", OCTAVO_QUANT_AWQ, read_awq},
    };
    const octavo_key key = {NULL, "quant_method"};
    const int64_t block = OCTAVO_SAFETENSORS_SCALE_BLOCK;
    octavo_config_reader whole = *reader, inner;
    octavo_gguf_string method;
    *quant = (octavo_quant){.f8_block = {block, block}};
    if (!octavo_config_is_hf(reader)) return OCTAVO_OK;
    if (!octavo_config_has(reader, (octavo_key){NULL, "quantization_config"}))
        whole.object = reader->checkpoint->config;
    octavo_status status = octavo_config_section(&whole, "quantization_config", &inner);
    if (status || !inner.object) return status;
    if ((status = octavo_config_text(&inner, key, "", &method))) return status;
    if (own && octavo_text_is(method, own)) {
        quant->kind = OCTAVO_QUANT_OWN;
        return OCTAVO_OK;
    }
    for (size_t i = 0; i < OCTAVO_COUNT(methods); i++) {
        if (!octavo_text_is(method, methods[i].name)) continue;
        quant->kind = methods[i].kind;
        return methods[i].read(&inner, quant);
    }
    return refuse(&inner, key, method, "use the model in F32, F16 or BF16, or a GGUF file");
}
