/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention object against direct calls of octavo_ragged_paged_attention: output and cache have
 * the same bits whatever the options, dtypes and shapes; and its bindings.
 */
#include "../unit.h"
#include "backend_world.h"

#include <stdio.h>
#include <string.h>

static backend_world w0; /* too large for a stack */

static void options_reach_the_call(void **state) {
    (void)state;
    uint8_t plain[sizeof w0.output];
    backend_random_state = 1;
    backend_make(&w0);
    backend_compare(&w0, "plain");
    memcpy(plain, w0.output, sizeof plain);
    for (int k = 0; k < 10; k++) {
        backend_random_state = 1; /* the same numbers */
        backend_make(&w0);
        octavo_attention_backend_options *o = &w0.options;
        if (k == 0) o->scale = -0.7;
        if (k == 1) o->sliding_window = 4;
        if (k == 2) o->logits_soft_cap = 0.3;
        if (k == 3) o->alibi_slopes = w0.slopes;
        if (k == 4) o->sinks = w0.sinks;
        if (k == 5) o->attn_type = OCTAVO_ATTENTION_ENCODER;
        if (k == 6) o->use_irope = true, o->irope_chunk_size = 6;
        if (k == 7) o->precision = OCTAVO_ATTENTION_BF16;
        if (k == 8) w0.layer.use_k_scale = true, w0.layer.k_scale = 0.4;
        if (k == 9) w0.layer.use_q_scale = true, w0.layer.q_scale = 0.3;
        char what[20];
        snprintf(what, sizeof what, "option %d", k);
        backend_compare(&w0, what);
        if (memcmp(plain, w0.output, sizeof plain) == 0) fail_msg("%s changes nothing", what);
    }
    backend_make(&w0);
    w0.options.irope_chunk_size = 6; /* not looked at */
    w0.options.kv_cache_dtype = "float";
    backend_compare(&w0, "no chunks");
}

static void dtypes_and_layouts(void **state) {
    (void)state;
    static const octavo_dtype queries[] = {F32, F16, BF16};
    static const octavo_dtype caches[] = {F32, F16, BF16, E4M3, E5M2, I8};
    for (int i = 0; i < 3 * 6 * 2 * 2; i++) {
        const octavo_dtype q = queries[i % 3], cache = caches[i / 3 % 6];
        const octavo_kv_layout layout = i / 18 % 2 ? OCTAVO_KV_COLUMNS : OCTAVO_KV_ROWS;
        const bool is_converted = i / 36 == 0;
        backend_make(&w0);
        backend_set_types(&w0, q, is_converted ? cache : q, cache, layout);
        w0.options.kv_cache_dtype = i % 2 ? NULL : octavo_dtype_name(cache);
        w0.options.sliding_window = i % 4 ? 0 : 5;
        w0.layer.use_k_scale = true;
        w0.layer.k_scale = cache == I8 ? 0.02 : 0.6;
        if (i % 5 == 0) {
            w0.layer.v_scales = backend_vector(w0.v_scales, F32, HKV);
            w0.layer.k_scales = backend_vector(w0.k_scales, F32, HKV);
        } else {
            w0.layer.use_v_scale = true;
            w0.layer.v_scale = cache == I8 ? 0.03 : 0.7;
        }
        char what[80];
        snprintf(what, sizeof what, "%s queries, %s cache, layout %d, %s", octavo_dtype_name(q),
                 octavo_dtype_name(cache), (int)layout, is_converted ? "as they are" : "quantised");
        backend_compare(&w0, what);
    }
}

static void narrow_outputs(void **state) {
    (void)state;
    static const octavo_dtype narrow[] = {E4M3, E5M2, I8};
    for (int i = 0; i < 3; i++) {
        backend_make(&w0);
        w0.given.output = ARRAY(w0.output, narrow[i], T, HQ, D);
        w0.given.use_output_scale = true;
        w0.given.output_scale = 0.01;
        backend_compare(&w0, octavo_dtype_name(narrow[i]));
    }
}

/* Dense 2-D and 3-D rows, one row, an output whose rows are apart; 1-D and strided 2-D tables. */
static void shapes_of_arrays(void **state) {
    (void)state;
    backend_make(&w0);
    w0.given.query = ARRAY(w0.rows, F32, T, HQ * D);
    w0.given.key = ARRAY(w0.rows, F32, T, HKV, D);
    w0.given.value = ARRAY(w0.rows + 400, F32, T, HKV * D);
    w0.given.output = ARRAY(w0.output, F32, T, HQ, D);
    w0.metadata.block_tables = ARRAY(w0.tables, I32, (int64_t)S * PER_SEQ);
    backend_compare(&w0, "dense");
    backend_make(&w0);
    w0.metadata.block_tables.strides[0] = PER_SEQ;
    w0.metadata.block_tables.strides[1] = 1;
    backend_compare(&w0, "tables with strides");

    static float apart[T][HQ * D + 7];
    backend_make(&w0);
    memset(apart, 0x11, sizeof apart);
    w0.given.output.data = apart;
    w0.given.output.strides[0] = HQ * D + 7;
    w0.given.output.strides[1] = 1;
    octavo_attention_backend *backend = backend_create(&w0);
    backend_bind(backend, w0.layer.name, &w0.kv_cache, w0.layout);
    backend_forward(backend, &w0);
    octavo_attention_args args = backend_direct_args(&w0);
    backend_run_directly(&args);
    for (int t = 0; t < T; t++) {
        assert_memory_equal(apart[t], w0.want + (size_t)t * HQ * D * sizeof(float),
                            HQ * D * sizeof(float));
        assert_true(backend_is_constant((const uint8_t *)(apart[t] + HQ * D), 7 * sizeof(float)));
    }
    octavo_attention_backend_destroy(&backend);
}

static void cross_attention(void **state) {
    (void)state;
    backend_make(&w0);
    w0.options.attn_type = OCTAVO_ATTENTION_ENCODER_DECODER;
    memcpy(w0.key_starts, (int32_t[]){0, 4, 6, 6, -1}, sizeof w0.key_starts);
    w0.metadata.key_start_loc = ARRAY(w0.key_starts, I32, S + 1);
    backend_compare(&w0, "new keys");

    /* no new keys: what is given is not looked at */
    w0.metadata.key_start_loc.n_axes = 0;
    w0.metadata.key_start_loc.data = NULL;
    w0.given.key.n_axes = w0.given.value.n_axes = 0;
    memcpy(w0.same, w0.cache, sizeof w0.same);
    octavo_attention_backend *backend = backend_create(&w0);
    backend_bind(backend, w0.layer.name, &w0.kv_cache, w0.layout);
    backend_forward(backend, &w0);
    octavo_attention_args args = backend_direct_args(&w0);
    args.keys = args.values = ARRAY(w0.rows, F32, 0, HKV, D);
    backend_run_directly(&args);
    backend_check_equal(&w0, "no new keys");
    octavo_attention_backend_destroy(&backend);
}

/* Layers that share a cache read the target's and write none, their own binding or not. */
static void sharing_reads_the_target(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        char target[NAME] = "model.layers.1.attn";
        backend_make(&w0);
        w0.options.kv_sharing_target_layer_name = target;
        octavo_attention_backend *backend = backend_create(&w0);
        memset(target, 'x', sizeof target - 1); /* the name was copied */
        backend_bind(backend, "model.layers.1.attn", &w0.kv_cache, w0.layout);
        octavo_array own = w0.kv_cache;
        static uint8_t untouched[CACHE_BYTES];
        memset(untouched, 0x7b, sizeof untouched);
        own.data = untouched;
        if (i == 1) backend_bind(backend, w0.layer.name, &own, w0.layout);
        octavo_attention_args args = backend_direct_args(&w0);
        args.update_kv_cache = false;
        if (i == 2) w0.given.key.n_axes = w0.given.value.n_axes = 0;
        backend_forward(backend, &w0);
        backend_run_directly(&args);
        backend_check_equal(&w0, "shared");
        assert_true(backend_is_constant(untouched, sizeof untouched));
        octavo_attention_backend_destroy(&backend);
    }
}

/* Texts and arrays of the options may go after create; backends share a context. */
static void options_are_copied(void **state) {
    (void)state;
    backend_make(&w0);
    char dtype[NAME] = "float32", name[NAME] = "model.layers.3.attn";
    float slopes[HQ], sinks[HQ];
    memcpy(slopes, w0.slopes, sizeof slopes);
    memcpy(sinks, w0.sinks, sizeof sinks);
    w0.options.kv_cache_dtype = dtype;
    w0.options.alibi_slopes = slopes;
    w0.options.sinks = sinks;
    octavo_attention_backend *backend = backend_create(&w0);
    octavo_attention_args args = backend_direct_args(&w0);
    w0.options.alibi_slopes = NULL;
    octavo_attention_backend *other = backend_create(&w0);
    backend_bind(backend, name, &w0.kv_cache, w0.layout);
    memset(dtype, 'x', sizeof dtype - 1);
    memset(name, 'x', sizeof name - 1);
    memset(slopes, 0, sizeof slopes);
    memset(sinks, 0, sizeof sinks);
    backend_bind(other, w0.layer.name, &w0.kv_cache, w0.layout);
    backend_forward(other, &w0);
    backend_forward(backend, &w0);
    backend_run_directly(&args);
    backend_check_equal(&w0, "copied");
    octavo_attention_backend_destroy(&other);
    octavo_attention_backend_destroy(&backend);
    octavo_attention_backend_destroy(&backend);
    octavo_attention_backend_destroy(NULL);
}

/* Which of n layers has which cache, while they are bound, bound again and unbound at random: a
 * call writes the cache that was bound last and no other. */
static void bindings_are_found(void **state) {
    (void)state;
    enum { N = 70, CACHES = 3 };
    static uint8_t caches[CACHES][CACHE_BYTES];
    int bound[N];
    for (int i = 0; i < N; i++)
        bound[i] = -1;
    backend_make(&w0);
    octavo_attention_backend *backend = backend_create(&w0);
    for (int turn = 0; turn < 600; turn++) {
        char name[NAME];
        const int layer = (int)(backend_random() % N);
        snprintf(name, sizeof name, "model.layers.%d", layer);
        w0.layer.name = name;
        if (turn % 3 == 0) {
            octavo_array cache = w0.kv_cache;
            bound[layer] = (int)(backend_random() % CACHES);
            cache.data = caches[bound[layer]];
            backend_bind(backend, name, &cache, w0.layout);
        } else if (turn % 7 == 0) {
            octavo_status want = bound[layer] >= 0 ? OCTAVO_OK : OCTAVO_ERROR_NOT_FOUND;
            assert_int_equal(octavo_attention_backend_unbind(backend, name, NULL), want);
            bound[layer] = -1;
        }
        memset(caches, 0, sizeof caches);
        octavo_status status =
            octavo_attention_backend_forward(backend, &w0.layer, &w0.given, &w0.metadata, NULL);
        assert_int_equal(status, bound[layer] >= 0 ? OCTAVO_OK : OCTAVO_ERROR_NOT_FOUND);
        for (int i = 0; i < CACHES; i++)
            assert_int_equal(backend_is_constant(caches[i], CACHE_BYTES), i != bound[layer]);
    }
    octavo_attention_backend_destroy(&backend);
}

static void spellings_of_dtypes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        octavo_dtype dtype;
    } names[] = {
        {"float32", F32}, {"float", F32},     {"f32", F32},       {"float16", F16},
        {"half", F16},    {"f16", F16},       {"bfloat16", BF16}, {"bf16", BF16},
        {"fp8", E4M3},    {"fp8_e4m3", E4M3}, {"fp8_e5m2", E5M2}, {"int8", I8},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (int dtype = 0; dtype <= (int)I8; dtype++) {
            backend_make(&w0);
            backend_set_cache(&w0, (octavo_dtype)dtype, OCTAVO_KV_ROWS);
            w0.options.kv_cache_dtype = names[i].name;
            octavo_attention_backend *backend = backend_create(&w0);
            assert_int_equal(
                octavo_attention_backend_bind(backend, "a", &w0.kv_cache, OCTAVO_KV_ROWS, 0, NULL),
                (int)names[i].dtype == dtype ? OCTAVO_OK : OCTAVO_ERROR_INVALID);
            octavo_attention_backend_destroy(&backend);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_reach_the_call), cmocka_unit_test(dtypes_and_layouts),
        cmocka_unit_test(narrow_outputs),         cmocka_unit_test(shapes_of_arrays),
        cmocka_unit_test(cross_attention),        cmocka_unit_test(sharing_reads_the_target),
        cmocka_unit_test(options_are_copied),     cmocka_unit_test(bindings_are_found),
        cmocka_unit_test(spellings_of_dtypes),
    };
    return cmocka_run_group_tests(tests, backend_context_make, backend_context_free);
}
