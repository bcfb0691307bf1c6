/* SPDX-License-Identifier: Apache-2.0
 *
 * Coded folders (8-bit floats, GPTQ, AWQ) that lack something, contradict themselves or hold what
 * is no number: a status and a message that names the file and the key or tensor.
 */
#include "hf_bad.h"

#define Q          "quantization_config"
#define GPTQ(more) "{\"quant_method\": \"gptq\", " more "}"
#define PACKED(groups)                                                                             \
    "{\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\", "                  \
    "\"config_groups\": {" groups "}}"
#define AWQ(more) "{\"quant_method\": \"awq\", " more "}"
#define FP8(size) "{\"quant_method\": \"fp8\", \"weight_block_size\": " size "}"

static void test_configs(void **state) {
    static const bad_config gptq[] = {
        {Q, GPTQ("\"group_size\": 32"), OCTAVO_ERROR_NOT_FOUND, "\"quantization_config.bits\""},
        {Q, GPTQ("\"bits\": 5, \"group_size\": 32"), OCTAVO_ERROR_UNSUPPORTED, ".bits\""},
        {Q, GPTQ("\"bits\": 4"), OCTAVO_ERROR_NOT_FOUND, ".group_size\""},
        {Q, GPTQ("\"bits\": 4, \"group_size\": 0"), OCTAVO_ERROR_FORMAT, ".group_size\""},
        {Q, GPTQ("\"bits\": 4, \"group_size\": 32, \"checkpoint_format\": \"marlin\""),
         OCTAVO_ERROR_UNSUPPORTED, ".checkpoint_format\""},
    };
    static const bad_config awq[] = {
        {Q, AWQ("\"bits\": 8, \"group_size\": 32"), OCTAVO_ERROR_UNSUPPORTED, ".bits\""},
        {Q, AWQ("\"w_bit\": 3, \"q_group_size\": 32"), OCTAVO_ERROR_UNSUPPORTED, ".w_bit\""},
        {Q, AWQ("\"bits\": 4, \"group_size\": 32, \"version\": \"gemv\""), OCTAVO_ERROR_UNSUPPORTED,
         ".version\""},
        {Q, AWQ("\"w_bit\": 4, \"q_group_size\": 32"), OCTAVO_OK, NULL},
    };
    static const bad_config f8[] = {
        {Q, FP8("[64]"), OCTAVO_ERROR_FORMAT, ".weight_block_size\""},
        {Q, FP8("[0, 64]"), OCTAVO_ERROR_FORMAT, ".weight_block_size\""},
        {Q, FP8("128"), OCTAVO_ERROR_FORMAT, ".weight_block_size\""},
        {Q, "{\"quant_method\": \"compressed-tensors\", \"format\": \"int-quantized\"}",
         OCTAVO_ERROR_UNSUPPORTED, "int-quantized"},
        {Q, "{\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\"}", OCTAVO_ERROR_UNSUPPORTED,
         ".quant_algo\""},
        {Q, "{\"quant_method\": \"modelopt\", \"quant_algo\": \"FP8\"}", OCTAVO_OK, NULL},
        {Q, FP8("null"), OCTAVO_OK, NULL}, /* blocks of 128 x 128 */
        {Q, "", OCTAVO_OK, NULL},
    };
    static const bad_config packed[] = {
        {Q, PACKED(""), OCTAVO_ERROR_FORMAT, ".config_groups\""},
        {Q, PACKED("\"a\": {\"weights\": {\"num_bits\": 3}}"), OCTAVO_ERROR_UNSUPPORTED,
         ".config_groups\""},
        {Q, PACKED("\"a\": {\"weights\": {\"num_bits\": 4, \"type\": \"float\"}}"),
         OCTAVO_ERROR_UNSUPPORTED, ".config_groups\""},
        {Q,
         PACKED("\"a\": {\"weights\": {\"num_bits\": 8}}, \"b\": {\"weights\": {\"num_bits\": "
                "4}}"),
         OCTAVO_ERROR_UNSUPPORTED, "\"b\""},
        {Q, PACKED("\"a\": {\"weights\": {\"num_bits\": 8}}"), OCTAVO_OK, NULL},
    };
    check_configs("llama_packed8", packed, OCTAVO_COUNT(packed), "config.json");
    (void)state;
    check_configs("phi3_gptq4", gptq, OCTAVO_COUNT(gptq), "config.json");
    check_configs("phi3_awq", awq, OCTAVO_COUNT(awq), "config.json");
    check_configs("llama_f8_blocks", f8, OCTAVO_COUNT(f8), "config.json");
}

/* config.json against the tensors. */
static void test_shapes(void **state) {
    static const bad_config gptq[] = {
        {Q, GPTQ("\"bits\": 8, \"group_size\": 32"), OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.self_attn.qkv_proj.qweight\""},
        {Q, GPTQ("\"bits\": 4, \"group_size\": 64"), OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.self_attn.qkv_proj.qzeros\""},
        {Q, "", OCTAVO_ERROR_NOT_FOUND, "\"model.layers.0.self_attn.qkv_proj.weight\""},
        {"intermediate_size", "96", OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.mlp.gate_up_proj.qweight\""},
        {"num_hidden_layers", "3", OCTAVO_ERROR_NOT_FOUND,
         "\"model.layers.2.self_attn.qkv_proj.qweight\""},
    };
    static const bad_config f8[] = {
        {Q, FP8("[64, 64]"), OCTAVO_ERROR_FORMAT,
         "\"model.layers.0.self_attn.q_proj.weight_scale_inv\""},
    };
    (void)state;
    check_configs("phi3_gptq4", gptq, OCTAVO_COUNT(gptq), "model.safetensors");
    check_configs("llama_f8_blocks", f8, OCTAVO_COUNT(f8), "model.safetensors");
}

/* Every tensor of layer 0; without its scales a matrix of 8-bit floats is the one to blame. */
static void test_tensors(void **state) {
    static const char *const names[] = {"phi3_gptq4", "llama_awq", "llama_f8_blocks",
                                        "llama_packed8"};
    (void)state;
    for (size_t m = 0; m < OCTAVO_COUNT(names); m++) {
        hf_maker maker;
        const char *name;
        json_t *entry;
        size_t n = 0;
        hf_maker_start(&maker, names[m]);
        json_object_foreach(maker.header, name, entry) {
            char culprit[160];
            const char *scale = strstr(name, "_scale_inv");
            if (!strstr(name, ".layers.0.") || strstr(name, ".g_idx") || strstr(name, "_shape"))
                continue;
            snprintf(culprit, sizeof culprit, "%.*s", scale ? (int)(scale - name) : 160, name);
            check_tensor(names[m], name, culprit);
            n++;
        }
        assert_true(n >= 14);
        hf_maker_end(&maker);
    }
}

/* ---- what is no number ---- */

static uint8_t *bytes_of(hf_maker *maker, const char *name) {
    const json_t *offsets = json_object_get(json_object_get(maker->header, name), "data_offsets");
    assert_non_null(offsets);
    return maker->data + json_integer_value(json_array_get(offsets, 0));
}

static void check_bytes(const char *from, const char *changed, size_t at, const void *bytes,
                        size_t size, const char *culprit) {
    hf_maker maker;
    octavo_error error;
    hf_maker_start(&maker, from);
    memcpy(bytes_of(&maker, changed) + at, bytes, size);
    hf_maker_write(&maker);
    refused(open_path(maker.path, &error), OCTAVO_ERROR_FORMAT, &error, culprit,
            "model.safetensors");
    hf_maker_end(&maker);
}

#define Q_PROJ "model.layers.0.self_attn.q_proj"

static void test_values(void **state) {
    static const uint8_t nan8 = 0xff, infinity8 = 0x7c, nan_e8m0 = 255;
    static const uint16_t nan16 = 0x7e00;
    static const uint32_t infinity = 0x7f800000u, large = 0x7f000000u;
    static const int32_t group = 2, negative = -1;
    (void)state;
    check_bytes("llama_f8", Q_PROJ ".weight", 100, &nan8, 1, Q_PROJ ".weight");
    check_bytes("llama_f8_odd", Q_PROJ ".weight", 100, &nan8, 1, Q_PROJ ".weight");
    check_bytes("llama_f8", "model.layers.0.self_attn.o_proj.weight", 70, &infinity8, 1,
                "model.layers.0.self_attn.o_proj.weight");
    check_bytes("llama_f8_blocks", Q_PROJ ".weight_scale_inv", 4, &infinity, 4, Q_PROJ ".weight");
    check_bytes("llama_f8_blocks", Q_PROJ ".weight_scale_inv", 4, &large, 4, Q_PROJ ".weight");
    check_bytes("llama_awq", Q_PROJ ".scales", 6, &nan16, 2, Q_PROJ ".qweight");
    check_bytes("llama_gptq4_odd", Q_PROJ ".scales", 6, &nan16, 2, Q_PROJ ".qweight");
    check_bytes("llama_gptq4_order", Q_PROJ ".g_idx", 8, &group, 4, Q_PROJ ".g_idx");
    check_bytes("llama_gptq4_order", Q_PROJ ".g_idx", 0, &negative, 4, Q_PROJ ".g_idx");
    check_bytes("gpt_oss_mxfp4", "model.layers.0.mlp.experts.down_proj_scales", 3, &nan_e8m0, 1,
                "model.layers.0.mlp.experts.down_proj_blocks");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configs),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
