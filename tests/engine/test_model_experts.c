/* SPDX-License-Identifier: Apache-2.0
 *
 * GGUF models of experts with stacks of matrices in every type: what a type gives is what its
 * values give in F32, the same bits whatever the chunk and the threads and whichever way the
 * matrices are stored, and files that lack a tensor or have one of another shape.
 */
#include "hf_bits.h"
#include "tiny_model.h"

enum { N_IDS = 12 };

static void write_model(const char *architecture, int n_layers, const octavo_ggml_type *types,
                        int n_types, bool is_expanded, char *path) {
    tiny_model_write(&(tiny_options){.architecture = architecture,
                                     .n_layers = n_layers,
                                     .context = 256,
                                     .types = types,
                                     .n_types = n_types,
                                     .n_experts = 5,
                                     .is_expanded = is_expanded},
                     path);
}

static void run_exact(const char *path, float *logits) {
    octavo_sequence *sequence = NULL;
    octavo_error error;
    int32_t ids[HF_N_IDS];
    octavo_model *model = hf_open(path, (hf_setting){OCTAVO_PRECISION_EXACT, 1, 512, 16});
    hf_make_ids(ids, TINY_VOCAB);
    hf_must(octavo_sequence_create(model, &sequence, &error), &error);
    hf_must(octavo_sequence_feed(sequence, ids, N_IDS, OCTAVO_LOGITS_ALL, logits, NULL, &error),
            &error);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
}

static void test_values(void **state) {
    static float want[N_IDS * TINY_VOCAB], got[N_IDS * TINY_VOCAB];
    (void)state;
    for (size_t t = 0; t < OCTAVO_COUNT(tiny_all_types); t++) {
        char path[64];
        double size = 0.0;
        write_model("qwen3moe", 1, &tiny_all_types[t], 1, true, path);
        run_exact(path, want);
        unlink(path);
        write_model("qwen3moe", 1, &tiny_all_types[t], 1, false, path);
        run_exact(path, got);
        unlink(path);
        for (int i = 0; i < N_IDS * TINY_VOCAB; i++)
            size = fmax(size, fabs((double)want[i]));
        assert_true(size > 0.1);
        for (int i = 0; i < N_IDS * TINY_VOCAB; i++)
            if (!(fabs((double)got[i] - (double)want[i]) <= 1e-5 * size))
                fail_msg("%s, position %d, id %d: %g, in F32 %g",
                         octavo_ggml_type_name(tiny_all_types[t]), i / TINY_VOCAB, i % TINY_VOCAB,
                         (double)got[i], (double)want[i]);
    }
}

/* The logits of a model, written as `options` say. */
static void run_options(const tiny_options *options, float *logits) {
    char path[64];
    tiny_model_write(options, path);
    run_exact(path, logits);
    unlink(path);
}

/* The same matrices in stacks, gate and up in one, and a tensor for each expert. */
static void test_forms(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_Q4_0};
    static float want[N_IDS * TINY_VOCAB], got[N_IDS * TINY_VOCAB];
    tiny_options options = {.architecture = "qwen3moe",
                            .n_layers = 2,
                            .context = 64,
                            .types = types,
                            .n_types = 1,
                            .n_experts = 5};
    char path[64];
    octavo_model *model = NULL;
    octavo_error error;
    (void)state;
    run_options(&options, want);
    options.expert_form = TINY_FUSED;
    run_options(&options, got);
    assert_memory_equal(got, want, sizeof want);
    options.expert_form = TINY_APART;
    run_options(&options, got);
    assert_memory_equal(got, want, sizeof want);
    options.leave_out = "blk.1.ffn_up.3.weight";
    tiny_model_write(&options, path);
    assert_int_equal(octavo_model_open(path, NULL, &model, &error), OCTAVO_ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, options.leave_out));
    unlink(path);
}

/* Factors beside matrices, and beside each of a stack. */
static void test_factors(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_NVFP4, OCTAVO_GGML_TQ2_0,
                                             OCTAVO_GGML_Q8_0};
    static float want[N_IDS * TINY_VOCAB], got[N_IDS * TINY_VOCAB], plain[N_IDS * TINY_VOCAB];
    double size = 0.0, error = 0.0, change = 0.0;
    (void)state;
    for (int n_experts = 0; n_experts <= 3; n_experts += 3) {
        tiny_options options = {.architecture = "qwen3moe",
                                .n_layers = 2,
                                .context = 64,
                                .types = types,
                                .n_types = 3,
                                .n_experts = n_experts,
                                .has_factors = true};
        if (n_experts == 0) options.architecture = "llama";
        run_options(&options, got);
        options.is_expanded = true;
        run_options(&options, want);
        options.has_factors = false;
        run_options(&options, plain);
        for (int i = 0; i < N_IDS * TINY_VOCAB; i++) {
            size = fmax(size, fabs((double)want[i]));
            error = fmax(error, fabs((double)got[i] - (double)want[i]));
            change = fmax(change, fabs((double)plain[i] - (double)want[i]));
        }
        if (!(error <= 1e-5 * size && change > 0.1 * size))
            fail_msg("%d experts: error %g, without factors %g, of %g", n_experts, error, change,
                     size);
    }
}

/* Three stacks in each layer: every type has one. */
static void test_bits(void **state) {
    enum { N_TYPES = OCTAVO_COUNT(tiny_all_types) };
    char path[64];
    (void)state;
    write_model("gpt-oss", (N_TYPES + 2) / 3, tiny_all_types, N_TYPES, false, path);
    hf_check_bits(path);
    unlink(path);
}

static void refused(const char *leave_out, const char *add, octavo_status want,
                    const char *culprit) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_MXFP4, OCTAVO_GGML_Q8_0};
    char path[64];
    octavo_model *model = NULL;
    octavo_error error;
    tiny_model_write(&(tiny_options){.architecture = "gpt-oss",
                                     .n_layers = 1,
                                     .context = 64,
                                     .types = types,
                                     .n_types = 2,
                                     .leave_out = leave_out,
                                     .add = add,
                                     .n_experts = 3},
                     path);
    octavo_status status = octavo_model_open(path, NULL, &model, &error);
    if (status != want || !strstr(error.message, culprit))
        fail_msg("status %s, message \"%s\"; wanted %s and \"%s\"", octavo_status_name(status),
                 error.message, octavo_status_name(want), culprit);
    assert_null(model);
    unlink(path);
}

static void test_tensors(void **state) {
    static const char *const names[] = {
        "blk.0.attn_sinks.weight",          "blk.0.attn_output.bias",
        "blk.0.post_attention_norm.weight", "blk.0.ffn_gate_inp.weight",
        "blk.0.ffn_gate_inp.bias",          "blk.0.ffn_gate_exps.weight",
        "blk.0.ffn_up_exps.weight",         "blk.0.ffn_down_exps.weight",
        "blk.0.ffn_gate_exps.bias",         "blk.0.ffn_up_exps.bias",
        "blk.0.ffn_down_exps.bias",
    };
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(names); i++) {
        refused(names[i], NULL, OCTAVO_ERROR_NOT_FOUND, names[i]);
        refused(names[i], names[i], OCTAVO_ERROR_FORMAT, names[i]);
    }
    refused(names[6], names[6], OCTAVO_ERROR_FORMAT,
            "shape [1] where the metadata asks for [3, 256, 512]");
    refused(NULL, "blk.0.ffn_up_exps.scale", OCTAVO_ERROR_FORMAT,
            "tensor \"blk.0.ffn_up_exps.scale\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_forms),
        cmocka_unit_test(test_factors), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
