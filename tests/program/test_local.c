/* SPDX-License-Identifier: Apache-2.0
 *
 * The programs of ranks as data: what peers still read is not written over, ranks have the same
 * ops, a wrong part of a weight is refused, and no memory at any moment is an error and no leak.
 */
#include "rank_weights.h"

#include <string.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);

static long left = -1; /* allocations until one fails; -1: none does */

static bool fails(void) {
    return left >= 0 && left-- == 0;
}

void *__wrap_malloc(size_t bytes) {
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes) {
    return fails() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *p, size_t bytes) {
    return fails() ? NULL : __real_realloc(p, bytes);
}

/* ---- a partition ---- */

typedef struct fixture {
    world w;
    octavo_mesh mesh;
    octavo_rules rules;
    octavo_partition partition;
} fixture;

static void set_up(fixture *f, octavo_mesh mesh, int n_experts, bool can_move_weights) {
    octavo_error error;
    f->mesh = mesh;
    world_make(&f->w, &(world_desc){.d = 256,
                                    .n_heads = 4,
                                    .n_kv_heads = 2,
                                    .head_dim = 64,
                                    .ffw = 256,
                                    .vocab = 100,
                                    .n_experts = n_experts,
                                    .n_chosen = 2,
                                    .type = OCTAVO_WEIGHT_F32,
                                    .has_bias = true,
                                    .is_layer_norm = true,
                                    .is_exact = true});
    octavo_rules_init(&f->rules);
    const octavo_partition_options options = {
        .mesh = mesh,
        .rules = &f->rules,
        .machine = {1e9, 1e-6, 1e10, 1e11},
        .n_tokens = WORLD_TOKENS,
        .n_rows = WORLD_ROWS,
        .kv_length = 64,
        .cache_bytes = 4,
        .can_move_weights = can_move_weights,
    };
    if (octavo_partition_make(&f->partition, &f->w.program, &f->w.axes, &options, &error))
        fail_msg("%s", error.message);
}

static void tear_down(fixture *f) {
    octavo_partition_deinit(&f->partition);
    octavo_rules_deinit(&f->rules);
    world_free(&f->w);
}

static octavo_status make(const fixture *f, int rank, const octavo_binding *bindings,
                          const int *processes, octavo_program *local, octavo_error *error) {
    return octavo_local_make(local,
                             &(octavo_local_options){.program = &f->w.program,
                                                     .axes = &f->w.axes,
                                                     .partition = &f->partition,
                                                     .rank = rank,
                                                     .bindings = bindings,
                                                     .processes = processes},
                             error);
}

/* ---- what peers read ---- */

static bool is_in_arena(const octavo_tensor *tensor) {
    return tensor->row_bytes > 0 && tensor->last_op >= 0;
}

static bool overlaps(const octavo_program *program, const octavo_tensor *a,
                     const octavo_tensor *b) {
    const size_t a_end = a->offset + a->row_bytes * octavo_most_rows(program, a);
    const size_t b_end = b->offset + b->row_bytes * octavo_most_rows(program, b);
    return a->offset < b_end && b->offset < a_end;
}

/* No op from the exchange on writes over what it reads until all have met again. */
static void check_source(const octavo_program *local, int index) {
    const octavo_tensor *from = &local->tensors[local->ops[index].in[0]];
    for (int i = index; i < local->n_ops; i++) {
        if (i > index && (local->ops[i].params.is_meeting || i == local->head_begin)) return;
        const octavo_tensor *out = &local->tensors[local->ops[i].out];
        if (is_in_arena(out) && overlaps(local, from, out))
            fail_msg("op %d writes over \"%s\", which op %d has others read", i, from->name, index);
    }
}

static void check_program(const octavo_program *local, const octavo_program *first) {
    int n_exchanges = 0;
    for (int i = 0; i < local->n_ops; i++) {
        const octavo_op *op = &local->ops[i];
        assert_int_equal(op->kind, first->ops[i].kind);
        assert_int_equal(op->params.is_meeting, first->ops[i].params.is_meeting);
        assert_memory_equal(op->in, first->ops[i].in, sizeof op->in);
        assert_int_equal(op->out, first->ops[i].out);
        if (op->kind != OCTAVO_OP_RESHARD || !op->params.is_meeting) continue;
        n_exchanges++;
        check_source(local, i);
    }
    assert_int_equal(local->n_ops, first->n_ops);
    assert_true(n_exchanges > 2 * WORLD_LAYERS);
}

static void test_sources(void **state) {
    static const octavo_mesh meshes[] = {
        {{1, 1, 1, 2}}, {{1, 2, 2, 1}}, {{2, 1, 1, 2}}, {{1, 1, 3, 1}}, {{1, 1, 2, 4}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        for (int n_experts = 0; n_experts <= 6; n_experts += 6) {
            fixture f;
            octavo_program first = {0};
            set_up(&f, meshes[i], n_experts, i % 2 == 0);
            for (int rank = 0; rank < octavo_mesh_ranks(&f.mesh); rank++) {
                rank_weights weights;
                octavo_program local;
                octavo_error error;
                rank_weights_cut(&weights, &f.w, &f.mesh, &f.rules, rank);
                if (make(&f, rank, weights.bindings, NULL, &local, &error))
                    fail_msg("%s", error.message);
                if (rank == 0) {
                    first = local;
                    check_program(&local, &local);
                } else {
                    check_program(&local, &first);
                    octavo_program_deinit(&local);
                }
                rank_weights_free(&weights, &f.w);
            }
            octavo_program_deinit(&first);
            tear_down(&f);
        }
    }
}

/* Parts of another rank's size, and none at all. */
static void test_wrong_part(void **state) {
    fixture f;
    rank_weights weights;
    octavo_program local;
    octavo_error error;
    (void)state;
    set_up(&f, (octavo_mesh){{1, 1, 1, 2}}, 0, false);
    rank_weights_cut(&weights, &f.w, &f.mesh, &f.rules, 0);
    for (int i = 0, id = 0; i < 2; i++) {
        while (!weights.bindings[id].weight)
            id++;
        const octavo_weight *right = weights.bindings[id].weight;
        octavo_weight wrong = *right;
        wrong.n++;
        weights.bindings[id].weight = i == 0 ? &wrong : NULL;
        assert_int_equal(make(&f, 0, weights.bindings, NULL, &local, &error), OCTAVO_ERROR_INVALID);
        assert_non_null(strstr(error.message, f.w.program.tensors[id].name));
        assert_null(local.ops);
        weights.bindings[id].weight = right;
    }
    rank_weights_free(&weights, &f.w);
    tear_down(&f);
}

static void test_no_memory(void **state) {
    static const int processes[] = {0, 1, 0, 1};
    fixture f;
    rank_weights weights;
    octavo_program local;
    octavo_error error;
    octavo_status status = OCTAVO_ERROR_MEMORY;
    (void)state;
    set_up(&f, (octavo_mesh){{1, 2, 1, 2}}, 6, true);
    rank_weights_cut(&weights, &f.w, &f.mesh, &f.rules, 1);
    for (long n = 0; status; n += 1 + n / 40) {
        left = n;
        status = make(&f, 1, weights.bindings, processes, &local, &error);
        left = -1;
        if (status == OCTAVO_OK) break;
        assert_int_equal(status, OCTAVO_ERROR_MEMORY);
        assert_null(local.ops);
    }
    octavo_program_deinit(&local);
    rank_weights_free(&weights, &f.w);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_wrong_part),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
