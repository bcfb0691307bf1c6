/* SPDX-License-Identifier: Apache-2.0
 *
 * Latent attention in GGUF files: in floats the same as the folder that the file is made of, in
 * codes the same as the values that they stand for; and files that lack something or contradict
 * themselves.
 */
#include "deepseek_gguf.h"
#include "hf_bits.h"

#include "octavo/inspect.h"
#include "octavo/template.h"

static const hf_setting exact = {OCTAVO_PRECISION_EXACT, 1, 512, 16};
static float want[HF_N_IDS * HF_MAX_VOCABULARY], got[HF_N_IDS * HF_MAX_VOCABULARY];

static int32_t run(deepseek_settings with, float *logits) {
    char path[64];
    deepseek_convert(with, path);
    int32_t vocabulary = hf_run(path, exact, logits);
    unlink(path);
    return vocabulary;
}

static void expect_near(const char *what, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-4))
            fail_msg("%s: %g, not %g", what, (double)got[i], (double)want[i]);
}

static void test_floats(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        deepseek_settings with = {.from = i ? "deepseek_v3" : "deepseek_v2",
                                  .type = OCTAVO_GGML_BF16};
        hf_maker maker;
        hf_maker_start(&maker, with.from);
        deepseek_tame(&maker);
        hf_maker_write(&maker);
        const int32_t n = HF_N_IDS * hf_run(maker.path, exact, want);
        hf_maker_end(&maker);
        assert_int_equal(HF_N_IDS * run(with, got), n);
        expect_near(with.from, n);
        memcpy(want, got, sizeof want);
        with.is_split = true;
        run(with, got);
        assert_memory_equal(got, want, (size_t)n * sizeof *want);
    }
}

static void test_codes(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_Q8_0, OCTAVO_GGML_Q4_0};
    (void)state;
    for (int t = 0; t < 2; t++) {
        for (int is_split = 0; is_split < 2; is_split++) {
            deepseek_settings with = {.type = types[t], .is_split = is_split, .is_expanded = true};
            const int32_t n = HF_N_IDS * run(with, want);
            with.is_expanded = false;
            run(with, got);
            expect_near(octavo_ggml_type_name(types[t]), n);
        }
    }
}

/* Factors that are powers of two change no bit. */
static void test_factors(void **state) {
    (void)state;
    for (int is_split = 0; is_split < 2; is_split++) {
        deepseek_settings with = {
            .from = "deepseek_v3", .type = OCTAVO_GGML_F32, .is_split = is_split};
        const int32_t n = HF_N_IDS * run(with, want);
        with.factor = 4.0f;
        run(with, got);
        assert_memory_equal(got, want, (size_t)n * sizeof *want);
    }
}

static void test_bits(void **state) {
    char path[64];
    (void)state;
    for (int is_split = 0; is_split < 2; is_split++) {
        deepseek_convert((deepseek_settings){.type = OCTAVO_GGML_Q8_0, .is_split = is_split}, path);
        hf_check_bits(path);
        unlink(path);
    }
}

/* ---- bad files ---- */

static void refused(deepseek_settings with, octavo_status wanted, const char *culprit) {
    char path[64];
    octavo_model *model = NULL;
    octavo_error error;
    deepseek_convert(with, path);
    octavo_status status = octavo_model_open(path, NULL, &model, &error);
    if (status != wanted || !strstr(error.message, culprit) || !strstr(error.message, path))
        fail_msg("status %s, message \"%s\"; wanted %s and \"%s\"", octavo_status_name(status),
                 error.message, octavo_status_name(wanted), culprit);
    assert_null(model);
    unlink(path);
}

static void test_tensors(void **state) {
    static const char *const names[] = {
        "blk.0.attn_q.weight",         "blk.1.attn_kv_a_mqa.weight",  "blk.1.attn_kv_a_norm.weight",
        "blk.1.attn_kv_b.weight",      "blk.0.attn_output.weight",    "blk.0.ffn_gate.weight",
        "blk.1.ffn_gate_shexp.weight", "blk.1.ffn_down_shexp.weight", "blk.1.ffn_gate_exps.weight",
    };
    static const char *const apart[] = {"blk.0.attn_k_b.weight", "blk.0.attn_v_b.weight"};
    deepseek_settings with = {.type = OCTAVO_GGML_F32};
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++) {
        with.leave_out = names[i];
        with.bend = NULL;
        refused(with, OCTAVO_ERROR_NOT_FOUND, names[i]);
        with.leave_out = NULL;
        with.bend = names[i];
        refused(with, OCTAVO_ERROR_FORMAT, names[i]);
    }
    with.is_split = true;
    for (size_t i = 0; i < 2; i++) {
        with.leave_out = NULL;
        with.bend = apart[i];
        refused(with, OCTAVO_ERROR_FORMAT, apart[i]);
    }
    with.bend = NULL;
    with.leave_out = apart[1];
    refused(with, OCTAVO_ERROR_NOT_FOUND, apart[1]);
    with.leave_out = apart[0]; /* then it is a file of the older kind */
    refused(with, OCTAVO_ERROR_NOT_FOUND, "blk.0.attn_kv_b.weight");
}

static void test_metadata(void **state) {
    static const struct {
        const char *key;
        uint32_t number; /* 0: left out */
        octavo_status status;
    } list[] = {
        {"deepseek2.attention.kv_lora_rank", 0, OCTAVO_ERROR_NOT_FOUND},
        {"deepseek2.attention.kv_lora_rank", 577, OCTAVO_ERROR_FORMAT},
        {"deepseek2.attention.kv_lora_rank", 560, OCTAVO_ERROR_UNSUPPORTED},
        {"deepseek2.attention.key_length", 0, OCTAVO_ERROR_NOT_FOUND},
        {"deepseek2.attention.value_length", 0, OCTAVO_ERROR_NOT_FOUND},
        {"deepseek2.rope.dimension_count", 0, OCTAVO_ERROR_NOT_FOUND},
        {"deepseek2.rope.dimension_count", 48, OCTAVO_ERROR_FORMAT},
        {"deepseek2.rope.dimension_count", 15, OCTAVO_ERROR_UNSUPPORTED},
        {"deepseek2.expert_gating_func", 3, OCTAVO_ERROR_UNSUPPORTED},
        {"deepseek2.expert_group_count", 3, OCTAVO_ERROR_FORMAT},
        {"deepseek2.expert_group_used_count", 5, OCTAVO_ERROR_FORMAT},
        {"deepseek2.expert_used_count", 9, OCTAVO_ERROR_FORMAT},
        {"deepseek2.expert_feed_forward_length", 0, OCTAVO_ERROR_NOT_FOUND},
    };
    (void)state;
    refused((deepseek_settings){.type = OCTAVO_GGML_F32,
                                .bend = "deepseek2.expert_used_count",
                                .number = 3},
            OCTAVO_ERROR_FORMAT, "deepseek2.expert_group_used_count");
    for (size_t i = 0; i < OCTAVO_COUNT(list); i++) {
        deepseek_settings with = {.type = OCTAVO_GGML_F32, .number = list[i].number};
        *(list[i].number ? &with.bend : &with.leave_out) = list[i].key;
        refused(with, list[i].status, list[i].key);
    }
}

/* The cache keeps the latent and what rotates, once for all heads. */
static void test_cache(void **state) {
    octavo_inspect_options options;
    octavo_error error;
    char path[64], *text = NULL;
    (void)state;
    deepseek_convert((deepseek_settings){.type = OCTAVO_GGML_F32}, path);
    octavo_model *model = hf_open(path, exact);
    const octavo_model_facts facts = octavo_model_describe(model);
    assert_int_equal(facts.kv_heads, 1);
    assert_int_equal(facts.head_width, 32 + 16);
    assert_int_equal(facts.position_bytes, 2 * (32 + 16) * 4);
    octavo_model_close(&model);
    octavo_inspect_options_init(&options);
    options.with_program = true;
    hf_must(octavo_inspect(path, &options, &text, &error), &error);
    unlink(path);
    assert_non_null(strstr(text, "\"op\":\"head_matmul\""));
    assert_non_null(strstr(text, "\"value_lanes\":32"));
    assert_non_null(strstr(text, "\"groups\":4,\"chosen_groups\":1"));
    assert_non_null(strstr(text, "\"first_lane\":32"));
    octavo_text_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),  cmocka_unit_test(test_codes),
        cmocka_unit_test(test_bits),    cmocka_unit_test(test_factors),
        cmocka_unit_test(test_tensors), cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
