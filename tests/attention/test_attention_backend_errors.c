/* SPDX-License-Identifier: Apache-2.0
 *
 * What the attention object refuses: each with its status and a message that names the layer and
 * the culprit, and neither cache nor output touched.
 */
#include "../unit.h"
#include "backend_world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static backend_world w0; /* too large for a stack */

static void unknown_layers_are_named(void **state) {
    (void)state;
    backend_make(&w0);
    octavo_error error;
    octavo_attention_backend *backend = backend_create(&w0);
    static const struct {
        const char *bind, *message;
    } steps[] = {
        {NULL, "attention backend (layer model.layers.3.attn): no cache is bound as "
               "'model.layers.3.attn', nor any other; call octavo_attention_backend_bind"},
        {"model.layers.2.attn", "of the 1 that are bound, the nearest is 'model.layers.2.attn'"},
        {"model.layers.10.attn", "of the 2 that are bound, the nearest is 'model.layers.2.attn'"},
        {"model.layers.3.self_attn",
         "of the 3 that are bound, the nearest is 'model.layers.2.attn' or "
         "'model.layers.3.self_attn'"},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i].bind) backend_bind(backend, steps[i].bind, &w0.kv_cache, w0.layout);
        octavo_status status =
            octavo_attention_backend_forward(backend, &w0.layer, &w0.given, &w0.metadata, &error);
        assert_int_equal(status, OCTAVO_ERROR_NOT_FOUND);
        if (strstr(error.message, steps[i].message) == NULL) fail_msg("%s", error.message);
    }
    octavo_attention_backend_destroy(&backend);

    w0.options.kv_sharing_target_layer_name = "model.layers.1.attn";
    backend = backend_create(&w0);
    backend_bind(backend, w0.layer.name, &w0.kv_cache, w0.layout);
    assert_int_equal(
        octavo_attention_backend_forward(backend, &w0.layer, &w0.given, &w0.metadata, &error),
        OCTAVO_ERROR_NOT_FOUND);
    if (strstr(error.message, "(layer model.layers.3.attn): no cache is bound as "
                              "'model.layers.1.attn'") == NULL)
        fail_msg("%s", error.message);
    octavo_attention_backend_destroy(&backend);
}

typedef struct broken {
    const char *message; /* a part of it */
    octavo_status status;
    void (*breaks)(backend_world *w);
} broken;

#define BREAK(name, statement)                                                                     \
    static void name(backend_world *w) {                                                           \
        statement;                                                                                 \
    }

BREAK(options_size, w->options.size = 0)
BREAK(options_heads, w->options.num_heads = 0)
BREAK(options_many, w->options.num_heads = 1 << 20)
BREAK(options_kv, w->options.num_kv_heads = 4)
BREAK(options_kv_negative, w->options.num_kv_heads = -1)
BREAK(options_width, w->options.head_size = 0)
BREAK(options_wide, w->options.head_size = 513)
BREAK(options_no_scale, w->options.scale = 0.0)
BREAK(options_nan, w->options.scale = (double)NAN)
BREAK(options_window, w->options.sliding_window = -1)
BREAK(options_cap, w->options.logits_soft_cap = 1e-300)
BREAK(options_dtype, w->options.kv_cache_dtype = "fp9")
BREAK(options_i32, w->options.kv_cache_dtype = "i32")
BREAK(options_type, w->options.attn_type = (octavo_attention_type)9)
BREAK(options_irope, w->options.use_irope = true)
BREAK(options_chunk, w->options.use_irope = true; w->options.irope_chunk_size = -5)
BREAK(options_target, w->options.kv_sharing_target_layer_name = "")
BREAK(options_precision, w->options.precision = (octavo_attention_precision)5)
BREAK(options_tuning, w->options.num_queries_per_block = -1)
BREAK(options_scratch, w->options.vmem_limit_bytes = 1)
BREAK(options_cross, w->options.attn_type = OCTAVO_ATTENTION_ENCODER_DECODER;
      w->options.sliding_window = 3)

static const broken bad_options[] = {
    {"(options): not init", OCTAVO_ERROR_INVALID, options_size},
    {"(num_heads): 0", OCTAVO_ERROR_INVALID, options_heads},
    {"(num_heads): 1048576", OCTAVO_ERROR_INVALID, options_many},
    {"(num_kv_heads): 4 for 6", OCTAVO_ERROR_INVALID, options_kv},
    {"(num_kv_heads): -1", OCTAVO_ERROR_INVALID, options_kv_negative},
    {"(head_size): 0", OCTAVO_ERROR_INVALID, options_width},
    {"head width 513", OCTAVO_ERROR_UNSUPPORTED, options_wide},
    {"(scale): 0", OCTAVO_ERROR_INVALID, options_no_scale},
    {"(scale): ", OCTAVO_ERROR_INVALID, options_nan},
    {"(sliding_window): -1", OCTAVO_ERROR_INVALID, options_window},
    {"(logits_soft_cap)", OCTAVO_ERROR_INVALID, options_cap},
    {"(kv_cache_dtype): 'fp9'", OCTAVO_ERROR_NOT_FOUND, options_dtype},
    {"(kv_cache_dtype): 'i32'", OCTAVO_ERROR_NOT_FOUND, options_i32},
    {"(type): 9", OCTAVO_ERROR_INVALID, options_type},
    {"(irope_chunk_size): 0", OCTAVO_ERROR_INVALID, options_irope},
    {"(irope_chunk_size): -5", OCTAVO_ERROR_INVALID, options_chunk},
    {"(kv_sharing_target_layer_name)", OCTAVO_ERROR_INVALID, options_target},
    {"(precision): 5", OCTAVO_ERROR_INVALID, options_precision},
    {"(num_queries_per_block): -1", OCTAVO_ERROR_INVALID, options_tuning},
    {"(vmem_limit_bytes): 1;", OCTAVO_ERROR_INVALID, options_scratch},
    {"leave sliding_window", OCTAVO_ERROR_INVALID, options_cross},
};

static void check_message(const octavo_error *error, octavo_status status, const char *start,
                          const broken *want) {
    if (status != want->status || error->status != status ||
        strncmp(error->message, start, strlen(start)) != 0 ||
        strstr(error->message, want->message) == NULL)
        fail_msg("%s: %s, %s", want->message, octavo_status_name(status), error->message);
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_options / sizeof bad_options[0]; i++) {
        octavo_attention_backend *backend = NULL;
        octavo_error error = {0};
        backend_make(&w0);
        bad_options[i].breaks(&w0);
        octavo_status status =
            octavo_attention_backend_create(&backend, backend_context, &w0.options, &error);
        check_message(&error, status, "attention backend (", &bad_options[i]);
        assert_null(backend);
        assert_int_equal(
            octavo_attention_backend_create(&backend, backend_context, &w0.options, NULL), status);
    }
    octavo_attention_backend *backend = NULL;
    backend_make(&w0);
    assert_int_equal(octavo_attention_backend_create(&backend, NULL, &w0.options, NULL),
                     OCTAVO_ERROR_INVALID);
    assert_int_equal(octavo_attention_backend_create(&backend, backend_context, NULL, NULL),
                     OCTAVO_ERROR_INVALID);
    assert_null(backend);
}

BREAK(cache_axes, w->kv_cache.n_axes = 4)
BREAK(cache_null, w->kv_cache.data = NULL)
BREAK(cache_heads, w->kv_cache.extents[2] = HKV)
BREAK(cache_lanes, w->kv_cache.extents[4] = D)
BREAK(cache_dtype, w->kv_cache.dtype = I32)
BREAK(cache_other, w->kv_cache.dtype = E4M3)
BREAK(cache_huge, w->kv_cache.extents[0] = INT64_MAX / 2)
BREAK(cache_layout, w->layout = OCTAVO_KV_COLUMNS)
BREAK(cache_no_layout, w->layout = (octavo_kv_layout)7)

static const broken bad_caches[] = {
    {"(kv_cache): has 4 axes", OCTAVO_ERROR_INVALID, cache_axes},
    {"(kv_cache): data is NULL", OCTAVO_ERROR_INVALID, cache_null},
    {"(kv_cache): shape", OCTAVO_ERROR_INVALID, cache_heads},
    {"(kv_cache): shape", OCTAVO_ERROR_INVALID, cache_lanes},
    {"the cache is i32, but kv_cache_dtype says f32", OCTAVO_ERROR_INVALID, cache_dtype},
    {"the cache is fp8_e4m3, but", OCTAVO_ERROR_INVALID, cache_other},
    {"(kv_cache): ", OCTAVO_ERROR_LIMIT, cache_huge},
    {"(kv_cache): has 5 axes", OCTAVO_ERROR_INVALID, cache_layout},
    {"(layout): 7", OCTAVO_ERROR_INVALID, cache_no_layout},
};

/* And the layer keeps the cache that it had. */
static void wrong_caches_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_caches / sizeof bad_caches[0]; i++) {
        octavo_error error = {0};
        backend_make(&w0);
        w0.options.kv_cache_dtype = "float32";
        octavo_attention_backend *backend = backend_create(&w0);
        backend_bind(backend, w0.layer.name, &w0.kv_cache, w0.layout);
        const octavo_array good = w0.kv_cache;
        bad_caches[i].breaks(&w0);
        octavo_status status = octavo_attention_backend_bind(backend, w0.layer.name, &w0.kv_cache,
                                                             w0.layout, 0, &error);
        check_message(&error, status,
                      "attention backend (layer model.layers.3.attn): ", &bad_caches[i]);
        w0.kv_cache = good;
        w0.layout = OCTAVO_KV_ROWS;
        const octavo_attention_args args = backend_direct_args(&w0);
        backend_forward(backend, &w0);
        backend_run_directly(&args);
        backend_check_equal(&w0, "kept");
        assert_int_equal(octavo_attention_backend_bind(backend, "", &good, 0, 0, NULL),
                         OCTAVO_ERROR_INVALID);
        assert_int_equal(octavo_attention_backend_bind(backend, NULL, &good, 0, 0, NULL),
                         OCTAVO_ERROR_INVALID);
        assert_int_equal(octavo_attention_backend_bind(backend, "a", NULL, 0, 0, NULL),
                         OCTAVO_ERROR_INVALID);
        assert_int_equal(octavo_attention_backend_bind(NULL, "a", &good, 0, 0, NULL),
                         OCTAVO_ERROR_INVALID);
        octavo_attention_backend_destroy(&backend);
    }
}

BREAK(call_rows, w->given.size = 1)
BREAK(call_metadata, w->metadata.size = 1)
BREAK(query_absent, w->given.query.n_axes = 0)
BREAK(query_width, w->given.query.extents[1] = HQ * D - 1)
BREAK(query_heads, w->given.query = ARRAY(w->rows, F32, T, HQ / 2, D * 2))
BREAK(query_4d, w->given.query.n_axes = 4)
BREAK(query_axes, w->given.query.n_axes = -3)
BREAK(query_stride, w->given.query.strides[1] = 2)
BREAK(query_null, w->given.query.data = NULL)
BREAK(query_negative, w->given.query.extents[0] = -1)
BREAK(key_absent, w->given.key.n_axes = 0)
BREAK(key_shape, w->given.key = ARRAY(w->rows, F32, T, HQ *D))
BREAK(key_rows, w->given.key.extents[0] = w->given.value.extents[0] = T - 1)
BREAK(key_dtype, w->given.key.dtype = w->given.value.dtype = F16)
BREAK(value_absent, w->given.value.n_axes = 0)
BREAK(value_shape, w->given.value = ARRAY(w->rows, F32, T, HKV, D, 1))
BREAK(output_absent, w->given.output.n_axes = 0)
BREAK(output_shape, w->given.output.extents[1] = D)
BREAK(output_dtype, w->given.output.dtype = BF16)
BREAK(output_scale, w->given.use_output_scale = true)
BREAK(scales_length, w->layer.k_scales = backend_vector(w->k_scales, F32, HQ))
BREAK(no_lens, w->metadata.kv_lens.n_axes = 0)
BREAK(short_length, w->kv_lens[1] = 2)
BREAK(tables_seqs, w->metadata.block_tables.extents[0] = S - 1)
BREAK(tables_apart, w->metadata.block_tables.strides[0] = PER_SEQ + 1;
      w->metadata.block_tables.strides[1] = 1)
BREAK(tables_huge, w->metadata.block_tables.extents[1] = INT64_MAX)
BREAK(tables_3d, w->metadata.block_tables.n_axes = 3)
BREAK(tables_page, w->tables[1] = P)
BREAK(starts_short, w->metadata.query_start_loc.extents[0] = S)
BREAK(kinds_many, w->kinds[2] = S + 1)
BREAK(keys_apart, w->metadata.key_start_loc = ARRAY(w->starts, I32, S + 1))

static const broken bad_calls[] = {
    {"rows are not initialised", OCTAVO_ERROR_INVALID, call_rows},
    {"metadata are not initialised", OCTAVO_ERROR_INVALID, call_metadata},
    {"query is absent; it must be [T, 6 * 24] or [T, 6, 24]", OCTAVO_ERROR_INVALID, query_absent},
    {"query is [9, 143]", OCTAVO_ERROR_INVALID, query_width},
    {"query is [9, 3, 48]", OCTAVO_ERROR_INVALID, query_heads},
    {"query has 4 axes", OCTAVO_ERROR_INVALID, query_4d},
    {"query has -3 axes", OCTAVO_ERROR_INVALID, query_axes},
    {"query has a stride", OCTAVO_ERROR_INVALID, query_stride},
    {"(queries): data is NULL", OCTAVO_ERROR_INVALID, query_null},
    {"(queries): extent -1", OCTAVO_ERROR_INVALID, query_negative},
    {"key is absent", OCTAVO_ERROR_INVALID, key_absent},
    {"key is [9, 144]; it must be [T, 2 * 24]", OCTAVO_ERROR_INVALID, key_shape},
    {"(keys): 8 rows", OCTAVO_ERROR_INVALID, key_rows},
    {"(keys): dtype is f16", OCTAVO_ERROR_INVALID, key_dtype},
    {"value is absent", OCTAVO_ERROR_INVALID, value_absent},
    {"value has 4 axes", OCTAVO_ERROR_INVALID, value_shape},
    {"output is absent", OCTAVO_ERROR_INVALID, output_absent},
    {"output is [9, 24]", OCTAVO_ERROR_INVALID, output_shape},
    {"(output): dtype is bf16", OCTAVO_ERROR_INVALID, output_dtype},
    {"(output): dtype is f32", OCTAVO_ERROR_INVALID, output_scale},
    {"(k_scales): 6 values", OCTAVO_ERROR_INVALID, scales_length},
    {"(kv_lens): has 0 axes", OCTAVO_ERROR_INVALID, no_lens},
    {"(kv_lens): sequence 1", OCTAVO_ERROR_INVALID, short_length},
    {"block_tables are [3, 3]", OCTAVO_ERROR_INVALID, tables_seqs},
    {"with strides 4, 1", OCTAVO_ERROR_INVALID, tables_apart},
    {"block_tables are [4, 9223372036854775807]", OCTAVO_ERROR_INVALID, tables_huge},
    {"(block_tables): has 3 axes", OCTAVO_ERROR_INVALID, tables_3d},
    {"(block_tables): entry 1 of sequence 0", OCTAVO_ERROR_INVALID, tables_page},
    {"(query_start_loc): 4 entries", OCTAVO_ERROR_INVALID, starts_short},
    {"(distribution): 5 sequences", OCTAVO_ERROR_INVALID, kinds_many},
    {"(key_start_loc): only encoder-decoder", OCTAVO_ERROR_INVALID, keys_apart},
};

static void wrong_calls_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_calls / sizeof bad_calls[0]; i++) {
        octavo_error error = {0};
        backend_make(&w0);
        octavo_attention_backend *backend = backend_create(&w0);
        backend_bind(backend, w0.layer.name, &w0.kv_cache, w0.layout);
        memset(w0.output, 0x5a, sizeof w0.output);
        bad_calls[i].breaks(&w0);
        octavo_status status =
            octavo_attention_backend_forward(backend, &w0.layer, &w0.given, &w0.metadata, &error);
        check_message(&error, status,
                      "attention backend (layer model.layers.3.attn): ", &bad_calls[i]);
        assert_int_equal(
            octavo_attention_backend_forward(backend, &w0.layer, &w0.given, &w0.metadata, NULL),
            status);
        assert_true(backend_is_constant(w0.output, sizeof w0.output));
        assert_memory_equal(w0.cache, w0.same, sizeof w0.cache);
        octavo_attention_backend_destroy(&backend);
    }
}

/* Quantising needs both scales; a layer that has no name, or none was initialised. */
static void layers_that_lack_something(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        octavo_error error = {0};
        backend_make(&w0);
        backend_set_types(&w0, BF16, BF16, E4M3, OCTAVO_KV_ROWS);
        octavo_attention_backend *backend = backend_create(&w0);
        backend_bind(backend, w0.layer.name, &w0.kv_cache, w0.layout);
        w0.layer.use_k_scale = i == 1 || i == 3;
        w0.layer.use_v_scale = i == 2 || i == 3;
        if (i == 3) w0.layer.v_scale = 0.0;
        if (i == 4) w0.layer.name = NULL;
        if (i == 5) w0.layer.size = 0;
        static const broken want[] = {
            {"keys of the queries' dtype with both k_scale and v_scale", OCTAVO_ERROR_INVALID,
             NULL},
            {"(v_scale): 0", OCTAVO_ERROR_INVALID, NULL},
            {"(layer): has no name", OCTAVO_ERROR_INVALID, NULL},
            {"(layer): not initialised", OCTAVO_ERROR_INVALID, NULL},
        };
        octavo_status status =
            octavo_attention_backend_forward(backend, &w0.layer, &w0.given, &w0.metadata, &error);
        check_message(&error, status,
                      i < 4 ? "attention backend (layer model.layers.3.attn): "
                            : "attention backend (layer)",
                      &want[i < 3 ? 0 : i - 2]);
        assert_int_equal(
            octavo_attention_backend_forward(backend, NULL, &w0.given, &w0.metadata, NULL),
            OCTAVO_ERROR_INVALID);
        assert_int_equal(
            octavo_attention_backend_forward(NULL, &w0.layer, &w0.given, &w0.metadata, NULL),
            OCTAVO_ERROR_INVALID);
        octavo_attention_backend_destroy(&backend);
    }
}

/* However long the layer's name, the reason is still there. */
static void long_names_leave_room(void **state) {
    (void)state;
    char name[3000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    backend_make(&w0);
    w0.layer.name = name;
    octavo_attention_backend *backend = backend_create(&w0);
    backend_bind(backend, name, &w0.kv_cache, w0.layout);
    w0.kv_lens[1] = 2;
    octavo_error error = {0};
    octavo_status status =
        octavo_attention_backend_forward(backend, &w0.layer, &w0.given, &w0.metadata, &error);
    const broken want = {"(kv_lens): sequence 1", OCTAVO_ERROR_INVALID, NULL};
    check_message(&error, status, "attention backend (layer nnn", &want);
    octavo_attention_backend_destroy(&backend);
}

/* Of a long name both ends are shown, and no character is cut, wherever it begins. */
static void long_names_keep_their_characters(void **state) {
    (void)state;
    static const char character[] = "\xf0\x9f\x98\x80"; /* U+1F600, four bytes */
    backend_make(&w0);
    octavo_attention_backend *backend = backend_create(&w0);
    for (size_t before = 0; before < 8; before++) {
        char name[1024];
        memset(name, '<', before);
        for (size_t i = 0; i < 200; i++)
            memcpy(name + before + 4 * i, character, 4);
        memset(name + before + 800, '>', 8 - before);
        name[808] = '\0';
        w0.layer.name = name;
        octavo_error error = {0};
        octavo_status status =
            octavo_attention_backend_forward(backend, &w0.layer, &w0.given, &w0.metadata, &error);
        const broken want = {"): no cache is bound as '", OCTAVO_ERROR_NOT_FOUND, NULL};
        check_message(&error, status, "attention backend (layer ", &want);
        const char *text = strstr(error.message, "(layer ") + strlen("(layer ");
        const char *end = strstr(text, "): ");
        assert_true(end - text <= 120 && end - text > 120 - 8);
        size_t n_open = strspn(text, "<"), n_characters = 0;
        assert_int_equal(n_open, before);
        for (text += n_open; text < end && *text != '>'; text += 4, n_characters++) {
            if (memcmp(text, "...", 3) == 0) text += 3;
            assert_memory_equal(text, character, 4);
        }
        assert_true(n_characters >= 25);
        assert_int_equal(end - text, 8 - before);
    }
    octavo_attention_backend_destroy(&backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_layers_are_named),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(wrong_caches_are_refused),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(layers_that_lack_something),
        cmocka_unit_test(long_names_leave_room),
        cmocka_unit_test(long_names_keep_their_characters),
    };
    return cmocka_run_group_tests(tests, backend_context_make, backend_context_free);
}
