/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights loaded in parts, as ranks hold them: each part has the values of the whole, of every
 * family, kind of file and form of codes, and what is held is all that is counted.
 */
#include "../engine/deepseek_gguf.h"
#include "../engine/tiny_model.h"
#include "weights_check.h"

#include <dirent.h>
#include <sys/mman.h>

static octavo_pool *pool;

/* ---- models ---- */

static int check_folder_of_models(const char *folder) {
    int n = 0;
    DIR *all = opendir(folder);
    if (!all) fail_msg("%s cannot be read", folder);
    for (struct dirent *one = readdir(all); one; one = readdir(all)) {
        char path[512];
        const char *end = strrchr(one->d_name, '.');
        if (end && strcmp(end, ".gguf") != 0) continue; /* folders have no dot */
        snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
        n += check_model(path, pool);
    }
    closedir(all);
    return n;
}

static void test_stored_models(void **state) {
    const char *oracle = getenv("OCTAVO_ORACLE");
    (void)state;
    assert_true(check_folder_of_models(TEST_DATA "/models") >= 40);
    if (!oracle) return;
    char path[512];
    snprintf(path, sizeof path, "%s/models", oracle);
    assert_true(check_folder_of_models(path) >= 20);
    snprintf(path, sizeof path, "%s/gguf", oracle);
    assert_true(check_folder_of_models(path) >= 8);
}

static void check_tiny(const tiny_options *options) {
    char path[64], name[80];
    tiny_model_write(options, path);
    snprintf(name, sizeof name, "%s.gguf", path);
    assert_int_equal(rename(path, name), 0);
    assert_true(check_model(name, pool));
    (void)unlink(name);
}

static void test_all_types(void **state) {
    const tiny_options options = {.architecture = "llama",
                                  .n_layers = 4,
                                  .context = 64,
                                  .types = tiny_all_types,
                                  .n_types = OCTAVO_COUNT(tiny_all_types)};
    (void)state;
    check_tiny(&options);
}

static void test_stacks(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_NVFP4, OCTAVO_GGML_Q4_K, OCTAVO_GGML_F16,
                                             OCTAVO_GGML_MXFP4};
    tiny_options options = {
        .architecture = "qwen3moe", .n_layers = 2, .context = 64, .types = types, .n_experts = 5};
    (void)state;
    for (int form = TINY_STACKS; form <= TINY_APART; form++) {
        options.expert_form = (tiny_expert_form)form;
        options.n_types = form == TINY_FUSED ? 1 : OCTAVO_COUNT(types);
        options.has_factors = form != TINY_APART;
        check_tiny(&options);
    }
    options = (tiny_options){.architecture = "gpt-oss",
                             .n_layers = 1,
                             .context = 64,
                             .types = types,
                             .n_types = OCTAVO_COUNT(types),
                             .n_experts = 4};
    check_tiny(&options);
}

static void test_latent(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_BF16, OCTAVO_GGML_Q8_0, OCTAVO_GGML_Q4_0};
    (void)state;
    for (size_t i = 0; i < 2 * OCTAVO_COUNT(types); i++) {
        char path[64], name[80];
        const deepseek_settings with = {
            .type = types[i / 2], .is_split = i % 2, .factor = i == 2 ? 0.5f : 0.0f};
        deepseek_convert(with, path);
        snprintf(name, sizeof name, "%s.gguf", path);
        assert_int_equal(rename(path, name), 0);
        assert_true(check_model(name, pool));
        (void)unlink(name);
    }
}

/* ---- what is not held is not touched ---- */

/* Pages wholly inside the bytes fault from now on, or no more. */
static void guard(const uint8_t *begin, const uint8_t *end, bool is_on) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)begin + page - 1) / page * page,
                    to = (uintptr_t)end / page * page;
    if (from < to)
        assert_int_equal(mprotect((void *)from, to - from, is_on ? PROT_NONE : PROT_READ), 0);
}

/* All but the second quarter of the rows, of a stack of three those of the second matrix. Returns
 * how many tensors are long enough for it. */
static int guard_all(const octavo_checkpoint *checkpoint, bool is_on) {
    int n = 0;
    for (size_t i = 0; i < octavo_checkpoint_n_tensors(checkpoint); i++) {
        const octavo_checkpoint_tensor tensor = octavo_checkpoint_tensor_at(checkpoint, i);
        const size_t matrix = tensor.n_dims == 3 ? tensor.bytes / 3 : tensor.bytes;
        const uint8_t *data = tensor.data + (tensor.n_dims == 3 ? matrix : 0);
        if (tensor.n_dims < 2 || matrix < 1 << 16) continue;
        guard(tensor.data, data + matrix / 4, is_on);
        guard(data + matrix / 2, tensor.data + tensor.bytes, is_on);
        n++;
    }
    return n;
}

static void test_untouched(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_F32, OCTAVO_GGML_BF16, OCTAVO_GGML_Q8_0};
    static const octavo_weights kinds[] = {OCTAVO_WEIGHTS_FILE, OCTAVO_WEIGHTS_Q4};
    const tiny_options options = {.architecture = "qwen3moe",
                                  .n_layers = 2,
                                  .context = 64,
                                  .types = types,
                                  .n_types = OCTAVO_COUNT(types),
                                  .n_experts = 3};
    static walk w;
    char path[64], name[80];
    (void)state;
    tiny_model_write(&options, path);
    snprintf(name, sizeof name, "%s.gguf", path);
    assert_int_equal(rename(path, name), 0);
    assert_true(walk_open(&w, name));
    for (size_t i = 0; i < OCTAVO_COUNT(kinds); i++) {
        octavo_model_weights whole, got;
        walk_load_whole(&w, pool, kinds[i], &whole);
        for (int m = 0; m < w.n; m++) {
            octavo_weight_part *part = &w.members[m].part;
            part->n0 = part->n1 / 4;
            part->n1 = part->n1 / 2;
            if (part->e1 > 0) part->e0 = 1, part->e1 = 2;
        }
        assert_true(guard_all(&w.checkpoint, true) >= 15);
        check_load(&w, pool, kinds[i], &whole, &got);
        (void)guard_all(&w.checkpoint, false);
        octavo_weights_deinit(&got);
        octavo_weights_deinit(&whole);
    }
    walk_close(&w);
    (void)unlink(name);
}

/* ---- forms that no stored model has ---- */

/* New extents of a tensor. */
typedef void grow_fn(const char *name, int64_t *extent, size_t n);

/* Gives each tensor the extents that grow says; its values are the old ones over and over. */
static void grow_all(hf_maker *maker, grow_fn *grow) {
    const char *name;
    json_t *entry;
    size_t size = 0;
    uint8_t *data = calloc(16, maker->data_size);
    assert_non_null(data);
    json_object_foreach(maker->header, name, entry) {
        json_t *shape = json_object_get(entry, "shape"),
               *at = json_object_get(entry, "data_offsets");
        const size_t begin = (size_t)json_integer_value(json_array_get(at, 0));
        const size_t bytes = (size_t)json_integer_value(json_array_get(at, 1)) - begin;
        const size_t n = json_array_size(shape);
        int64_t extent[4] = {0}, before = 1, after = 1;
        if (!at) continue; /* __metadata__ */
        assert_true(n <= OCTAVO_COUNT(extent));
        for (size_t i = 0; i < n; i++)
            before *= extent[i] = json_integer_value(json_array_get(shape, i));
        grow(name, extent, n);
        for (size_t i = 0; i < n; i++) {
            after *= extent[i];
            (void)json_array_set_new(shape, i, json_integer(extent[i]));
        }
        const size_t grown = bytes / (size_t)before * (size_t)after;
        assert_true(size + grown <= 16 * maker->data_size);
        for (size_t i = 0; i < grown; i++)
            data[size + i] = maker->data[begin + i % bytes];
        (void)json_array_set_new(at, 0, json_integer((json_int_t)size));
        (void)json_array_set_new(at, 1, json_integer((json_int_t)(size + grown)));
        size += grown;
    }
    free(maker->data);
    maker->data = data;
    maker->data_size = size;
}

static void check_made(hf_maker *maker) {
    hf_maker_write(maker);
    assert_true(check_model(maker->path, pool));
    hf_maker_end(maker);
}

static void grow_heads(const char *name, int64_t *extent, size_t n) {
    (void)name;
    for (size_t i = 0; i < n; i++)
        if (extent[i] == 48 || extent[i] == 144) extent[i] = extent[i] / 48 * 64;
}

/* Queries, keys and values take turns by whole panels, which parts begin within. */
static void test_heads_in_turns(void **state) {
    hf_maker maker;
    (void)state;
    hf_maker_start(&maker, "gpt_neox");
    hf_maker_set(&maker, "hidden_size", "64");
    hf_maker_set(&maker, "num_attention_heads", "2");
    grow_all(&maker, grow_heads);
    check_made(&maker);
}

static void grow_latent(const char *name, int64_t *extent, size_t n) {
    const bool is_scale = strstr(name, "scale_inv") != NULL;
    const int64_t more = is_scale ? 1 : 64;
    if (strstr(name, "kv_b_proj")) extent[n - 1] += more;
    if (strstr(name, "kv_a_proj")) extent[0] += more;
    if (strstr(name, "kv_a_layernorm")) extent[0] += more;
}

/* Codes of keys are swapped from their second block on. */
static void test_latent_blocks(void **state) {
    hf_maker maker;
    (void)state;
    hf_maker_start(&maker, "deepseek_f8_blocks");
    hf_maker_set(&maker, "kv_lora_rank", "128");
    grow_all(&maker, grow_latent);
    check_made(&maker);
}

/* Of one expert inputs are in order, of the others not. */
static void test_some_orders(void **state) {
    hf_maker maker;
    (void)state;
    hf_maker_start(&maker, "moe_gptq4_order");
    const json_t *entry =
        json_object_get(maker.header, "model.layers.1.mlp.experts.0.gate_proj.g_idx");
    const size_t begin =
        (size_t)json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
    for (int32_t i = 0; i < 64; i++) {
        const int32_t group = i / 32;
        memcpy(maker.data + begin + (size_t)i * 4, &group, 4);
    }
    check_made(&maker);
}

static int set_up(void **state) {
    octavo_error error;
    (void)state;
    return octavo_pool_create(&pool, 3, false, &error) ? -1 : 0;
}

static int tear_down(void **state) {
    (void)state;
    octavo_pool_destroy(&pool);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored_models),  cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_stacks),         cmocka_unit_test(test_latent),
        cmocka_unit_test(test_heads_in_turns), cmocka_unit_test(test_latent_blocks),
        cmocka_unit_test(test_some_orders),    cmocka_unit_test(test_untouched),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
