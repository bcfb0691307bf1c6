/* SPDX-License-Identifier: Apache-2.0
 *
 * The internal phases as a step uses them: f32 keys and values are rounded on their way into a
 * 16-bit cache, strided inputs are read where they are, one plan serves many layers, and what comes
 * out has the bits of the public call on rounded inputs.
 */
#include "../unit.h"
#include "attention/attention.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/thread.h"
#include "rpa_context.h"

#include <stdlib.h>
#include <string.h>

enum { T = 9, HQ = 4, HKV = 2, D = 24, P = 4, PAGE = 8, LAYERS = 2, QKV = (HQ + 2 * HKV) * D };

typedef struct step {
    octavo_attention_plan plan;
    octavo_attention_kernels kernels;
    octavo_attention_op ops[LAYERS];
    octavo_pool *pool;
    void *workspace;
} step;

static void run(void *arg, int thread, int n_threads) {
    step *s = arg;
    for (int i = 0; i < LAYERS; i++) {
        octavo_attention_update(&s->plan, &s->kernels, &s->ops[i], thread, n_threads);
        octavo_pool_barrier(s->pool, thread);
        octavo_attention_attend(&s->plan, &s->kernels, &s->ops[i], s->workspace, thread);
        octavo_pool_barrier(s->pool, thread);
        octavo_attention_merge(&s->plan, &s->kernels, &s->ops[i], s->workspace, thread, n_threads);
        octavo_pool_barrier(s->pool, thread);
    }
}

static uint16_t narrow(octavo_dtype dtype, float x) {
    return dtype == OCTAVO_DTYPE_F16 ? octavo_f32_to_f16(x) : octavo_f32_to_bf16(x);
}

/* The public call on keys and values rounded beforehand. */
static void run_public(float *qkv, octavo_dtype dtype, uint16_t *cache, float *out,
                       const octavo_attention_batch *batch) {
    uint16_t keys[T * HKV * D], values[T * HKV * D];
    for (int t = 0; t < T; t++) {
        for (int i = 0; i < HKV * D; i++) {
            keys[t * HKV * D + i] = narrow(dtype, qkv[t * QKV + HQ * D + i]);
            values[t * HKV * D + i] = narrow(dtype, qkv[t * QKV + (HQ + HKV) * D + i]);
        }
    }
    int32_t lens[2], starts[3], tables[2 * 2], kinds[3] = {0, 0, 2};
    memcpy(lens, batch->kv_lens, sizeof lens);
    memcpy(starts, batch->query_start_loc, sizeof starts);
    memcpy(tables, batch->block_tables, sizeof tables);
    octavo_attention_args args;
    octavo_attention_args_init(&args);
    args.queries = octavo_array_dense(qkv, OCTAVO_DTYPE_F32, 3, (int64_t[]){T, HQ, D});
    memcpy(args.queries.strides, (int64_t[]){QKV, D, 1}, 3 * sizeof(int64_t));
    args.keys = octavo_array_dense(keys, dtype, 3, (int64_t[]){T, HKV, D});
    args.values = octavo_array_dense(values, dtype, 3, (int64_t[]){T, HKV, D});
    args.kv_cache = octavo_array_dense(cache, dtype, 5, (int64_t[]){P, PAGE, HKV, 2, 128});
    args.output = octavo_array_dense(out, OCTAVO_DTYPE_F32, 3, (int64_t[]){T, HQ, D});
    args.kv_lens = octavo_array_dense(lens, OCTAVO_DTYPE_I32, 1, (int64_t[]){2});
    args.query_start_loc = octavo_array_dense(starts, OCTAVO_DTYPE_I32, 1, (int64_t[]){3});
    args.block_tables = octavo_array_dense(tables, OCTAVO_DTYPE_I32, 1, (int64_t[]){4});
    args.distribution = octavo_array_dense(kinds, OCTAVO_DTYPE_I32, 1, (int64_t[]){3});
    args.softmax_scale = 0.2;
    octavo_attention_context *context = rpa_context(NULL, 1);
    octavo_error error;
    if (octavo_ragged_paged_attention(context, &args, &error) != OCTAVO_OK)
        fail_msg("%s", error.message);
    octavo_attention_context_destroy(&context);
}

static void check_type(octavo_dtype dtype) {
    static const int32_t lens[] = {5, 9}, starts[] = {0, 5, 8}, tables[] = {2, 0, 3, 1};
    const octavo_attention_batch batch = {.n_tokens = T,
                                          .n_seqs = 2,
                                          .page_size = PAGE,
                                          .pages_per_seq = 2,
                                          .kv_lens = lens,
                                          .query_start_loc = starts,
                                          .block_tables = tables};
    const octavo_attention_limits limits = {
        .heads = {HQ, HKV, D, 0, 0, 0}, .max_tokens = T, .max_seqs = 2, .n_threads = 2};
    static float qkv[LAYERS][T * QKV], out[LAYERS][T * HQ * D], want[T * HQ * D];
    static uint16_t cache[LAYERS][P * PAGE * HKV * 2 * 128], want_cache[P * PAGE * HKV * 2 * 128];
    memset(cache, 0, sizeof cache);
    memset(out, 0xff, sizeof out);
    uint32_t state = 7;
    for (int i = 0; i < LAYERS * T * QKV; i++) {
        state = state * 1664525u + 1013904223u;
        (&qkv[0][0])[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    step s = {.pool = NULL};
    octavo_cpu_flags flags;
    octavo_error error;
    assert_int_equal(octavo_cpu_select(NULL, &flags, &error), OCTAVO_OK);
    octavo_attention_kernels_init(&s.kernels, flags);
    assert_int_equal(octavo_pool_create(&s.pool, 2, false, &error), OCTAVO_OK);
    void *memory = octavo_alloc_aligned(octavo_attention_plan_bytes(&limits));
    s.workspace = octavo_alloc_aligned(octavo_attention_workspace_bytes(&limits));
    assert_true(memory && s.workspace);
    octavo_attention_plan_make(&s.plan, &limits, &batch, (octavo_attention_mask){0}, memory);
    for (int i = 0; i < LAYERS; i++) {
        octavo_attention_op *op = &s.ops[i];
        octavo_attention_op_init(op, &limits.heads, dtype, OCTAVO_KV_ROWS, PAGE);
        op->queries = qkv[i];
        op->keys = qkv[i] + HQ * D;
        op->values = qkv[i] + (HQ + HKV) * D;
        op->q_token_stride = op->k_token_stride = op->v_token_stride = QKV;
        op->kv_cache = cache[i];
        op->output = out[i];
        op->scale = 0.2f;
    }
    octavo_pool_run(s.pool, run, &s);
    for (int i = 0; i < LAYERS; i++) {
        memset(want_cache, 0, sizeof want_cache);
        run_public(qkv[i], dtype, want_cache, want, &batch);
        assert_memory_equal(cache[i], want_cache, sizeof want_cache);
        assert_memory_equal(out[i], want, sizeof want);
    }
    octavo_pool_destroy(&s.pool);
    octavo_free_aligned(memory);
    octavo_free_aligned(s.workspace);
}

static void a_step_rounds_and_equals_the_call(void **state) {
    (void)state;
    check_type(OCTAVO_DTYPE_F16);
    check_type(OCTAVO_DTYPE_BF16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_rounds_and_equals_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
