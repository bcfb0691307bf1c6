/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs is what was planned: the kinds of collectives of a step and the bytes that ranks get
 * from one another. And what rules oblige to is so: the parts of weights, caches and activations
 * that each rank holds.
 */
#include "engine/model.h"
#include "ranks.h"
#include "tiny_model.h"

static char dense_path[64], expert_path[64];

static octavo_model *open_model(const char *path, const char *mesh, const char *all) {
    octavo_model *model = NULL;
    octavo_error error;
    const ranks_setting s = {.mesh = mesh, .all = all, .precision = OCTAVO_PRECISION_EXACT};
    ranks_must(ranks_open(path, &s, &model, &error), &error, mesh);
    return model;
}

/* ---- traffic ---- */

static octavo_traffic traffic_of(const octavo_model *model) {
    octavo_traffic sum = {0};
    for (int r = 0; r < model->ranks.n; r++)
        for (int c = 0; c < OCTAVO_COLLECTIVES; c++) {
            sum.messages[c] += model->ranks.ranks[r].run.traffic.messages[c];
            sum.bytes[c] += model->ranks.ranks[r].run.traffic.bytes[c];
        }
    return sum;
}

/* Of all ranks. */
static void planned_bytes(const octavo_model *model, octavo_phase phase,
                          double bytes[OCTAVO_COLLECTIVES]) {
    const octavo_partition *partition = &model->ranks.partitions[phase];
    memset(bytes, 0, OCTAVO_COLLECTIVES * sizeof *bytes);
    for (int i = 0; i < partition->n_steps; i++) {
        const octavo_partition_step *step = &partition->steps[i];
        if (step->kind == OCTAVO_STEP_RESHARD)
            bytes[step->transfer.collective] += step->transfer.wire_bytes * model->ranks.n;
    }
}

/* One step of so many ids in each data group. */
static octavo_traffic run_step(octavo_model *model, octavo_sequence *const *sequences, int n_ids,
                               const char *where) {
    const octavo_model_facts facts = octavo_model_describe(model);
    const octavo_traffic before = traffic_of(model);
    int32_t ids[8][RANKS_CHUNK];
    octavo_step_input inputs[8];
    octavo_error error;
    float *logits = calloc(8 * (size_t)facts.vocabulary, sizeof *logits);
    assert_non_null(logits);
    for (int g = 0; g < facts.groups; g++) {
        for (int i = 0; i < n_ids; i++)
            ids[g][i] = ranks_id(model, g, octavo_sequence_length(sequences[g]) + i);
        inputs[g] = (octavo_step_input){.sequence = sequences[g],
                                        .ids = ids[g],
                                        .n_ids = n_ids,
                                        .want = OCTAVO_LOGITS_LAST,
                                        .logits = logits + (int64_t)g * facts.vocabulary};
    }
    ranks_must(octavo_model_step(model, inputs, facts.groups, &error), &error, where);
    free(logits);
    octavo_traffic after = traffic_of(model);
    for (int c = 0; c < OCTAVO_COLLECTIVES; c++) {
        after.messages[c] -= before.messages[c];
        after.bytes[c] -= before.bytes[c];
    }
    return after;
}

static void compare_traffic(const octavo_model *model, octavo_phase phase,
                            const octavo_traffic *got, const char *where) {
    double planned[OCTAVO_COLLECTIVES];
    planned_bytes(model, phase, planned);
    for (int c = 1; c < OCTAVO_COLLECTIVES; c++) {
        const double more = (double)got->bytes[c] - planned[c];
        /* of a permutation some ranks may have theirs; the plan is of those that do not */
        const bool is_so = c == OCTAVO_COLLECTIVE_PERMUTE ? more <= 0.0 : fabs(more) < 0.5;
        if ((planned[c] > 0.0) != (got->messages[c] > 0) || !is_so)
            fail_msg("%s, %s: %s of %.1f bytes planned, %lld moved in %lld messages", where,
                     phase == OCTAVO_PHASE_PREFILL ? "prefill" : "generate",
                     octavo_collective_name((octavo_collective)c), planned[c],
                     (long long)got->bytes[c], (long long)got->messages[c]);
    }
}

static void check_traffic(const char *path, const char *mesh, const char *all) {
    octavo_model *model = open_model(path, mesh, all);
    const int groups = octavo_model_describe(model).groups;
    octavo_sequence *sequences[8] = {0};
    octavo_error error;
    for (int g = 0; g < groups; g++) {
        ranks_must(octavo_sequence_create(model, &sequences[g], &error), &error, mesh);
        assert_int_equal(sequences[g]->group, g);
    }
    octavo_traffic got = run_step(model, sequences, RANKS_CHUNK / groups, mesh);
    compare_traffic(model, OCTAVO_PHASE_PREFILL, &got, mesh);
    got = run_step(model, sequences, 1, mesh);
    compare_traffic(model, OCTAVO_PHASE_GENERATE, &got, mesh);
    for (int g = 0; g < groups; g++)
        octavo_sequence_destroy(&sequences[g]);
    octavo_model_close(&model);
}

/* Rows and cuts are even, so that what plans say of the mean is so of all together. */
static void test_traffic(void **state) {
    static const char *const meshes[] = {
        "model=2",      "model=4",       "data=2",           "seq=2",
        "seq=4",        "expert=2",      "expert=2,model=2", "data=2,model=2",
        "data=2,seq=2", "seq=2,model=2", "data=2,expert=2",  "data=2,seq=2,model=2",
    };
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(meshes); i++)
        check_traffic(dense_path, meshes[i], NULL);
    check_traffic(dense_path, "model=4", "{\"ffw_hidden_tf\": null}");
    check_traffic(dense_path, "model=2", "{\"logits_tv\": null}");
    check_traffic(dense_path, "model=2", "{\"activation_td\": [null, \"model\"]}");
}

static double all_planned_bytes(const char *mesh, const char *all) {
    octavo_model *model = open_model(dense_path, mesh, all);
    double bytes[OCTAVO_COLLECTIVES], sum = 0.0;
    for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
        planned_bytes(model, (octavo_phase)phase, bytes);
        for (int c = 1; c < OCTAVO_COLLECTIVES; c++)
            sum += bytes[c];
    }
    octavo_model_close(&model);
    return sum;
}

/* Asking for more than a step needs costs bytes. */
static void test_price(void **state) {
    const double plain = all_planned_bytes("model=4", NULL);
    (void)state;
    assert_true(plain > 0.0);
    assert_true(all_planned_bytes("model=4", "{\"ffw_hidden_tf\": null}") > plain);
    assert_true(all_planned_bytes("model=4", "{\"logits_tv\": null}") > plain);
}

/* ---- shards ---- */

/* How each axis is cut: letters of mesh axes, outermost first, "-" for none; by commas. */
typedef struct held {
    const char *name;
    octavo_tensor_kind kind;
    const char *cuts;
} held;

static int mesh_axis(char letter) {
    return (int)(strchr("desm", letter) - "desm");
}

static octavo_range even_part(const octavo_model *model, int rank, const char *cut, int64_t n) {
    const octavo_mesh *mesh = &model->ranks.mesh;
    int64_t degree = 1, index = 0;
    int at[OCTAVO_MESH_AXES];
    for (int a = OCTAVO_MESH_AXES - 1; a >= 0; a--) {
        at[a] = rank % mesh->degree[a];
        rank /= mesh->degree[a];
    }
    for (; *cut && *cut != ','; cut++) {
        if (*cut == '-') continue;
        degree *= mesh->degree[mesh_axis(*cut)];
        index = index * mesh->degree[mesh_axis(*cut)] + at[mesh_axis(*cut)];
    }
    assert_int_equal(n % degree, 0);
    return (octavo_range){index * n / degree, (index + 1) * n / degree};
}

/* A rank has the kv heads that its query heads read. */
static octavo_range part_of(const octavo_model *model, int rank, char letter, const char *cut,
                            int64_t n) {
    if (letter != 'k') return even_part(model, rank, cut, n);
    const int64_t group = TINY_HEADS / n;
    const octavo_range q = even_part(model, rank, cut, TINY_HEADS);
    return (octavo_range){q.begin / group, (q.end + group - 1) / group};
}

/* Mesh axes that split rows, but for those of degree 1. */
static bool is_cut_by(const octavo_model *model, const octavo_split *split, const char *cut) {
    unsigned have = 0, want = 0;
    for (int i = 0; i < split->n; i++)
        have |= 1u << split->axis[i];
    for (; *cut && *cut != ','; cut++)
        if (*cut != '-' && model->ranks.mesh.degree[mesh_axis(*cut)] > 1)
            want |= 1u << mesh_axis(*cut);
    return have == want;
}

static bool is_held(const octavo_model *model, int rank, octavo_phase phase,
                    const octavo_tensor *tensor, const octavo_tensor *whole, const char *cuts) {
    const octavo_program *program = &model->ranks.ranks[rank].programs[phase];
    for (int i = 0; tensor->axes[i]; i++) {
        const bool has_rows = strchr("trs", tensor->axes[i]) != NULL;
        if (has_rows && !is_cut_by(model, &program->row_splits[tensor->rows], cuts)) return false;
        if (!has_rows) {
            const octavo_range part = part_of(model, rank, tensor->axes[i], cuts, whole->extent[i]);
            if (tensor->begin[i] != part.begin || tensor->extent[i] != part.end - part.begin)
                return false;
        }
        cuts += strcspn(cuts, ",");
        cuts += *cuts == ',';
    }
    return true;
}

static const octavo_tensor *whole_of(const octavo_model *model, const char *name,
                                     octavo_tensor_kind kind) {
    for (int i = 0; i < model->program.n_tensors; i++) {
        const octavo_tensor *tensor = &model->program.tensors[i];
        if (tensor->kind == kind && strcmp(tensor->name, name) == 0) return tensor;
    }
    fail_msg("the program has no %s", name);
    return NULL;
}

/* Of weights and caches there is nothing else; of an activation there may be other layouts on its
 * way to where it is kept, in every layer, or to where it is used. */
static void check_held(const octavo_model *model, int rank, octavo_phase phase, const held *want,
                       const char *where) {
    const octavo_program *program = &model->ranks.ranks[rank].programs[phase];
    const octavo_tensor *whole = whole_of(model, want->name, want->kind);
    int n_held = 0, n_all = 0, n_layers = 0, layer = -2;
    for (int i = 0; i < program->n_tensors; i++) {
        const octavo_tensor *tensor = &program->tensors[i];
        if (tensor->kind != want->kind || strcmp(tensor->name, want->name) != 0) continue;
        const bool is_so = is_held(model, rank, phase, tensor, whole, want->cuts);
        n_all++;
        n_held += is_so;
        if (is_so && tensor->layer != layer) n_layers++;
        if (is_so) layer = tensor->layer;
    }
    const bool is_kept =
        want->kind == OCTAVO_TENSOR_ACTIVATION ? n_layers == 2 : n_all > 0 && n_held == n_all;
    if (!is_kept)
        fail_msg("%s, rank %d, phase %d: %s is not held as (%s): %d of %d, %d layers", where, rank,
                 (int)phase, want->name, want->cuts, n_held, n_all, n_layers);
}

/* What is handed from block to block, and the logits. */
static void check_ends(const octavo_model *model, int rank, octavo_phase phase, const char *between,
                       const char *logits, const char *where) {
    const octavo_program *program = &model->ranks.ranks[rank].programs[phase];
    assert_int_equal(program->n_traces, octavo_model_describe(model).layers);
    for (int i = 0; i < program->n_traces; i++) {
        const octavo_tensor *tensor = &program->tensors[program->traces[i].tensor];
        assert_string_equal(tensor->name, "activation_td");
        if (!is_held(model, rank, phase, tensor,
                     whole_of(model, tensor->name, OCTAVO_TENSOR_ACTIVATION), between))
            fail_msg("%s, rank %d: activation_td %d is not held as (%s)", where, rank, i, between);
    }
    const octavo_tensor *tensor = &program->tensors[program->logits];
    if (!is_held(model, rank, phase, tensor, whole_of(model, "logits_tv", OCTAVO_TENSOR_ACTIVATION),
                 logits))
        fail_msg("%s, rank %d: logits_tv is not held as (%s)", where, rank, logits);
}

/* between, logits: what an override says of both; NULL: the default rules hold. */
static void check_shards(const char *path, const char *mesh, const char *all, const held *want,
                         size_t n, const char *between, const char *logits) {
    static const char *const ends[OCTAVO_PHASES][2] = {{"-,-", "-,-"}, {"d,-", "d,me"}};
    octavo_model *model = open_model(path, mesh, all);
    for (int rank = 0; rank < model->ranks.n; rank++)
        for (int phase = 0; phase < OCTAVO_PHASES; phase++) {
            for (size_t i = 0; i < n; i++)
                check_held(model, rank, (octavo_phase)phase, &want[i], mesh);
            check_ends(model, rank, (octavo_phase)phase, between ? between : ends[phase][0],
                       logits ? logits : ends[phase][1], mesh);
        }
    octavo_model_close(&model);
}

static void test_default_rules(void **state) {
    static const char *const meshes[] = {
        "model=2",          "model=4",      "data=2,model=2",        "seq=2,model=2",
        "expert=2,model=2", "data=2,seq=2", "data=2,expert=2,seq=2",
    };
    static const held want[] = {
        {"attn_q_weight_dnh", OCTAVO_TENSOR_WEIGHT, "-,m,-"},
        {"attn_k_weight_dkh", OCTAVO_TENSOR_WEIGHT, "-,m,-"},
        {"attn_v_weight_dkh", OCTAVO_TENSOR_WEIGHT, "-,m,-"},
        {"attn_o_weight_nhd", OCTAVO_TENSOR_WEIGHT, "m,-,-"},
        {"ffw_weight_df", OCTAVO_TENSOR_WEIGHT, "-,me"},
        {"ffw_weight_fd", OCTAVO_TENSOR_WEIGHT, "me,-"},
        {"vocab_vd", OCTAVO_TENSOR_WEIGHT, "dem,-"},
        {"norm_scale", OCTAVO_TENSOR_VECTOR, "-"},
        {"keyvalue_skh", OCTAVO_TENSOR_CACHE, "d,m,-"},
    };
    static const held of_experts[] = {
        {"moe_weights_edf", OCTAVO_TENSOR_WEIGHT, "e,-,m"},
        {"moe_weights_efd", OCTAVO_TENSOR_WEIGHT, "e,m,-"},
        {"moe_router_de", OCTAVO_TENSOR_WEIGHT, "-,e"},
        {"keyvalue_skh", OCTAVO_TENSOR_CACHE, "d,m,-"},
    };
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(meshes); i++) {
        check_shards(dense_path, meshes[i], NULL, want, OCTAVO_COUNT(want), NULL, NULL);
        check_shards(expert_path, meshes[i], NULL, of_experts, OCTAVO_COUNT(of_experts), NULL,
                     NULL);
    }
}

static void test_overrides(void **state) {
    static const held whole_hidden[] = {{"ffw_hidden_tf", OCTAVO_TENSOR_ACTIVATION, "-,-"}};
    static const held by_rows[] = {{"ffw_hidden_tf", OCTAVO_TENSOR_ACTIVATION, "dm,-"}};
    static const held weights[] = {
        {"ffw_weight_df", OCTAVO_TENSOR_WEIGHT, "s,m"},
        {"attn_o_weight_nhd", OCTAVO_TENSOR_WEIGHT, "-,-,sm"},
        {"norm_scale", OCTAVO_TENSOR_VECTOR, "m"},
    };
    static const held cache[] = {{"keyvalue_skh", OCTAVO_TENSOR_CACHE, "-,m,-"}};
    (void)state;
    check_shards(dense_path, "data=2,model=2", "{\"ffw_hidden_tf\": null}", whole_hidden, 1, NULL,
                 NULL);
    check_shards(dense_path, "data=2,model=2", "{\"ffw_hidden_tf\": [[\"data\", \"model\"], null]}",
                 by_rows, 1, NULL, NULL);
    check_shards(dense_path, "seq=2,model=2",
                 "{\"ffw_weight_df\": [\"seq\", \"model\"], \"norm_scale\": \"model\", "
                 "\"attn_o_weight_nhd\": [null, null, [\"seq\", \"model\"]]}",
                 weights, OCTAVO_COUNT(weights), NULL, NULL);
    check_shards(dense_path, "data=2,model=2", "{\"keyvalue_skh\": [null, \"model\", null]}", cache,
                 1, NULL, NULL);
    check_shards(
        dense_path, "data=2,seq=2,model=2",
        "{\"activation_td\": [[\"data\", \"seq\"], \"model\"], \"logits_tv\": [[\"data\"], "
        "\"seq\"]}",
        NULL, 0, "ds,m", "d,s");
    check_shards(dense_path, "model=4",
                 "{\"activation_td\": [\"model\", null], \"logits_tv\": null}", NULL, 0, "m,-",
                 "-,-");
}

/* ---- set-up ---- */

static int write_models(void **state) {
    static const octavo_ggml_type types[] = {OCTAVO_GGML_F32};
    tiny_options options = {
        .architecture = "llama", .n_layers = 2, .context = 256, .types = types, .n_types = 1};
    (void)state;
    tiny_model_write(&options, dense_path);
    options.architecture = "qwen3moe";
    options.n_experts = 8;
    tiny_model_write(&options, expert_path);
    return 0;
}

static int remove_models(void **state) {
    (void)state;
    unlink(dense_path);
    unlink(expert_path);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_price),
        cmocka_unit_test(test_default_rules),
        cmocka_unit_test(test_overrides),
    };
    return cmocka_run_group_tests(tests, write_models, remove_models);
}
