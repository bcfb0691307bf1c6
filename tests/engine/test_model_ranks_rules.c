/* SPDX-License-Identifier: Apache-2.0
 *
 * Random overrides: any named tensor, split in any way, over any mesh, in either phase or both, of
 * all layers or some. Each says what one rank says within 1e-5, or is refused with one of the
 * reasons that this version has. OCTAVO_TEST_SEED=N draws the case N alone, OCTAVO_TEST_FULL=1 ten
 * times as many.
 */
#include "engine/model.h"
#include "ranks.h"
#include "sharding/rules.h"

#include <stdio.h>

/* Dense; experts with biases and coded; experts and a shared one with a gate; latents with biases
 * everywhere. */
static const char *const models[] = {
    TEST_DATA "/models/llama-f32.gguf",
    TEST_DATA "/models/gpt_oss_mxfp4",
    TEST_DATA "/models/qwen2_moe",
    TEST_DATA "/models/deepseek_v3",
};

enum { MODELS = OCTAVO_COUNT(models), CASES = 320, MOST_NAMES = OCTAVO_NAMED_TENSORS };

typedef struct subject {
    int names[MOST_NAMES], n_names; /* of the table, that the model's program has */
    int layers;
    ranks_rows want;
} subject;

static subject subjects[MODELS];

/* What this version does not split, and what no version could. */
static const char *const reasons[] = {
    "a head's width is not split in this version",
    "a head's latent is not split in this version",
    "all matrices of an expert are on the same ranks in this version",
    "which cuts no panels of 32 outputs",
    "that cuts no panels of 32 outputs",
    "tables and matrices of heads are used where they lie",
    "vectors lie in both phases as generate has them",
    "pairs of a layer are the same in all their tensors",
    "other rules of the layer have its experts or tokens otherwise",
    "positions of all layers are split over as many ranks in this version",
    "cuts a norm's sum over",
};

static uint32_t drawn(uint64_t *seed, uint32_t n) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % n;
}

/* ---- text ---- */

typedef struct text {
    char bytes[2000];
    size_t n;
} text;

static void add(text *t, const char *s) {
    assert_true(t->n + strlen(s) < sizeof t->bytes);
    t->n += (size_t)snprintf(t->bytes + t->n, sizeof t->bytes - t->n, "%s", s);
}

static void add_mesh(text *t, const int *degree) {
    char axis[32];
    for (int a = 0; a < OCTAVO_MESH_AXES; a++) {
        snprintf(axis, sizeof axis, "%s%s=%d", a ? "," : "", octavo_mesh_axis_name(a), degree[a]);
        add(t, axis);
    }
}

static void draw_mesh(uint64_t *seed, text *mesh) {
    int degree[OCTAVO_MESH_AXES] = {1, 1, 1, 1};
    const int n_factors = 1 + (int)drawn(seed, 3);
    for (int i = 0; i < n_factors; i++)
        degree[drawn(seed, OCTAVO_MESH_AXES)] *= 2;
    add_mesh(mesh, degree);
}

/* Each mesh axis on one of the tensor's axes, or on none. */
static void draw_rule(uint64_t *seed, const char *axes, text *t) {
    int order[OCTAVO_MESH_AXES] = {0, 1, 2, 3}, on[OCTAVO_MESH_AXES];
    const uint32_t n = (uint32_t)strlen(axes);
    for (int i = OCTAVO_MESH_AXES - 1; i > 0; i--) {
        const int j = (int)drawn(seed, (uint32_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (int a = 0; a < OCTAVO_MESH_AXES; a++) {
        on[a] = (int)drawn(seed, n + 1);
        /* most would be refused if these were drawn as often as others */
        if (on[a] < (int)n && strchr("hs", axes[on[a]]) && drawn(seed, 8) > 0) on[a] = (int)n;
    }
    add(t, "[");
    for (uint32_t i = 0; i < n; i++) {
        int count = 0;
        add(t, i ? ", [" : "[");
        for (int k = 0; k < OCTAVO_MESH_AXES; k++) {
            if (on[order[k]] != (int)i) continue;
            add(t, count++ ? ", \"" : "\"");
            add(t, octavo_mesh_axis_name(order[k]));
            add(t, "\"");
        }
        add(t, "]");
    }
    add(t, "]");
}

static const char *draw_phase(uint64_t *seed) {
    static const char *const phases[] = {"all", "all", "prefill", "generate"};
    return phases[drawn(seed, OCTAVO_COUNT(phases))];
}

static void add_override(uint64_t *seed, const octavo_named_tensor *tensor, text *t) {
    add(t, "\"");
    add(t, draw_phase(seed));
    add(t, "\": {\"");
    add(t, tensor->name);
    add(t, "\": ");
    draw_rule(seed, tensor->axes, t);
    add(t, "}");
}

static void add_part(uint64_t *seed, const subject *s, const octavo_named_tensor *tensor, text *t) {
    static const char *const blocks[] = {"attention", "dense", "moe"};
    const uint32_t kind = drawn(seed, OCTAVO_COUNT(blocks));
    const int first = (int)drawn(seed, (uint32_t)s->layers);
    const int last = first + (int)drawn(seed, (uint32_t)(s->layers - first));
    const bool has_block = tensor->blocks >> kind & 1 && drawn(seed, 2) == 0;
    char where[80];
    if (has_block)
        snprintf(where, sizeof where, "{\"block\": \"%s\", ", blocks[kind]);
    else
        snprintf(where, sizeof where, "{\"layers\": \"%d-%d\", ", first, last);
    add(t, where);
    add_override(seed, tensor, t);
    add(t, "}");
}

/* One to three overrides, each in a part of its own or for the whole model. */
static void draw_rules(uint64_t *seed, const subject *s, text *t) {
    const uint32_t n = 1 + drawn(seed, 3);
    text parts = {.n = 0};
    const octavo_named_tensor *first =
        octavo_named_tensor_at(s->names[drawn(seed, (uint32_t)s->n_names)]);
    add(t, "{\"sharding\": {\"logical_rules\": {");
    add_override(seed, first, t);
    for (uint32_t i = 1; i < n; i++) {
        const octavo_named_tensor *tensor =
            octavo_named_tensor_at(s->names[drawn(seed, (uint32_t)s->n_names)]);
        if (tensor->blocks == 0) continue;
        if (parts.n > 0) add(&parts, ", ");
        add_part(seed, s, tensor, &parts);
    }
    add(t, ", \"parts\": [");
    add(t, parts.bytes);
    add(t, "]}}}");
}

/* ---- cases ---- */

static bool is_known(const char *message) {
    for (size_t i = 0; i < OCTAVO_COUNT(reasons); i++)
        if (strstr(message, reasons[i])) return true;
    return false;
}

/* False: the rules are refused. */
static bool check_case(uint64_t number, const char *file) {
    uint64_t seed = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
    const size_t m = number % MODELS;
    text mesh = {.n = 0}, rules = {.n = 0}, where = {.n = 0};
    char title[64];
    octavo_model *model = NULL;
    octavo_error error;
    ranks_rows got;
    for (int i = 0; i < 4; i++)
        (void)drawn(&seed, 2);
    draw_mesh(&seed, &mesh);
    draw_rules(&seed, &subjects[m], &rules);
    snprintf(title, sizeof title, "case %llu: ", (unsigned long long)number);
    add(&where, title);
    add(&where, strrchr(models[m], '/') + 1);
    add(&where, ", ");
    add(&where, mesh.bytes);
    add(&where, ", ");
    add(&where, rules.bytes);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fputs(rules.bytes, out);
    fclose(out);
    const ranks_setting s = {.mesh = mesh.bytes, .file = file, .precision = OCTAVO_PRECISION_EXACT};
    if (ranks_open(models[m], &s, &model, &error) != OCTAVO_OK) {
        if (!is_known(error.message)) fail_msg("%s: %s", where.bytes, error.message);
        return false;
    }
    ranks_run(model, true, &got, where.bytes);
    octavo_model_close(&model);
    const double difference = ranks_difference(&subjects[m].want, &got);
    ranks_rows_deinit(&got);
    if (!(difference <= 1e-5)) fail_msg("%s: other by %g", where.bytes, difference);
    return true;
}

static void test_rules(void **state) {
    const char *only = getenv("OCTAVO_TEST_SEED");
    const int n = getenv("OCTAVO_TEST_FULL") ? 10 * CASES : CASES;
    char file[] = "/tmp/octavo-rules-XXXXXX";
    int n_run = 0;
    (void)state;
    const int descriptor = mkstemp(file);
    assert_true(descriptor >= 0);
    close(descriptor);
    if (only) {
        print_message("%s\n", check_case(strtoull(only, NULL, 10), file) ? "the same" : "refused");
    } else {
        for (int i = 0; i < n; i++)
            n_run += check_case((uint64_t)i, file);
        print_message("%d of %d run\n", n_run, n);
        assert_true(n_run >= n * 3 / 4 && n_run >= 200);
    }
    unlink(file);
}

/* ---- set-up ---- */

static bool has_tensor(const octavo_program *program, const char *name) {
    for (int i = 0; i < program->n_tensors; i++)
        if (strcmp(program->tensors[i].name, name) == 0) return true;
    return false;
}

static int open_subjects(void **state) {
    (void)state;
    for (size_t m = 0; m < MODELS; m++) {
        subject *s = &subjects[m];
        octavo_model *model = NULL;
        octavo_error error;
        const ranks_setting whole = {.precision = OCTAVO_PRECISION_EXACT};
        ranks_must(ranks_open(models[m], &whole, &model, &error), &error, models[m]);
        s->layers = (int)octavo_model_describe(model).layers;
        for (int i = 0; i < OCTAVO_NAMED_TENSORS; i++)
            if (has_tensor(&model->program, octavo_named_tensor_at(i)->name))
                s->names[s->n_names++] = i;
        assert_in_range(s->n_names, 15, MOST_NAMES);
        octavo_model_close(&model);
        s->want = ranks_run_whole(models[m], OCTAVO_PRECISION_EXACT, true);
    }
    return 0;
}

static int close_subjects(void **state) {
    (void)state;
    for (size_t m = 0; m < MODELS; m++)
        ranks_rows_deinit(&subjects[m].want);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules)};
    return cmocka_run_group_tests(tests, open_subjects, close_subjects);
}
