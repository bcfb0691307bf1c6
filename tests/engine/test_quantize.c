/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo_quantize: what it writes can be read and run and is near to what was there; what it
 * reports is so; what goes wrong leaves no file behind.
 */
#include "../unit.h"
#include "base/compiler.h"
#include "tiny_model.h"

#include "octavo/model.h"
#include "octavo/quantize.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char folder[] = "/tmp/octavo-quantize-XXXXXX";

static const char *path_of(const char *name) {
    static char paths[4][320];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, 320, "%s/%s", folder, name);
    return path;
}

static int setup(void **state) {
    (void)state;
    return mkdtemp(folder) == NULL;
}

/* Removes all files; returns how many there were. */
static int clear_folder(void) {
    int n = 0;
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (struct dirent *one = readdir(all); one; one = readdir(all)) {
        if (one->d_name[0] == '.') continue;
        n++;
        (void)unlink(path_of(one->d_name));
    }
    closedir(all);
    return n;
}

static int teardown(void **state) {
    (void)state;
    clear_folder();
    return rmdir(folder);
}

static void must(octavo_status status, const octavo_error *error) {
    if (status != OCTAVO_OK) fail_msg("%s", error->message);
}

static void refused(octavo_status status, octavo_status expected, const octavo_error *error,
                    const char *part) {
    if (status != expected || !strstr(error->message, part))
        fail_msg("status %d, wanted %d; \"%s\" should say \"%s\"", status, expected, error->message,
                 part);
}

/* ---- models ---- */

/* A model of one layer whose matrices take turns through the types. */
static void write_model(const char *name, const octavo_ggml_type *types, int n_types) {
    char path[64];
    const tiny_options options = {
        .architecture = "llama", .n_layers = 1, .context = 64, .types = types, .n_types = n_types};
    tiny_model_write(&options, path);
    assert_int_equal(rename(path, path_of(name)), 0);
}

static void read_logits(const char *name, float logits[TINY_VOCAB]) {
    static const int32_t ids[] = {5, 17, 42, 99, 5, 256};
    octavo_model_options options;
    octavo_model *model = NULL;
    octavo_sequence *sequence = NULL;
    octavo_error error;
    octavo_model_options_init(&options);
    options.precision = OCTAVO_PRECISION_EXACT;
    options.threads = 1;
    must(octavo_model_open(path_of(name), &options, &model, &error), &error);
    must(octavo_sequence_create(model, &sequence, &error), &error);
    must(octavo_sequence_feed(sequence, ids, OCTAVO_COUNT(ids), OCTAVO_LOGITS_LAST, logits, NULL,
                              &error),
         &error);
    octavo_sequence_destroy(&sequence);
    octavo_model_close(&model);
}

/* RMS of the difference as a share of the RMS. */
static double distance(const float *a, const float *b, int n) {
    double off = 0, size = 0;
    for (int i = 0; i < n; i++) {
        off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)a[i] * (double)a[i];
    }
    return sqrt(off / size);
}

static octavo_status quantize(const char *in, const char *out, const char *type, const char *keep,
                              octavo_quantize_total *total, octavo_error *error) {
    octavo_quantize_options options;
    octavo_quantize_options_init(&options);
    options.type = type;
    options.keep = &keep;
    options.n_keep = keep != NULL;
    options.threads = 2;
    return octavo_quantize(path_of(in), path_of(out), &options, total, error);
}

static const octavo_ggml_type plain = OCTAVO_GGML_F32;

/* ---- what is written ---- */

static void test_runs_near(void **state) {
    static const struct {
        const char *type;
        double logits; /* at most so far away */
    } cases[] = {{"F32", 0},     {"f16", 1e-3},  {"BF16", 1e-2}, {"Q8_0", 2e-2}, {"q6_k", 0.06},
                 {"Q5_1", 0.15}, {"Q5_0", 0.15}, {"Q4_K", 0.25}, {"Q4_1", 0.3},  {"Q4_0", 0.3},
                 {"MXFP4", 0.4}, {"TQ2_0", 2},   {"TQ1_0", 2}};
    static float before[TINY_VOCAB], after[TINY_VOCAB];
    octavo_error error;
    octavo_quantize_total total;
    (void)state;
    write_model("in", &plain, 1);
    read_logits("in", before);
    for (size_t i = 0; i < OCTAVO_COUNT(cases); i++) {
        must(quantize("in", "out", cases[i].type, NULL, &total, &error), &error);
        read_logits("out", after);
        const double away = distance(before, after, TINY_VOCAB);
        if (!(away <= cases[i].logits))
            fail_msg("%s: logits are %g away, at most %g", cases[i].type, away, cases[i].logits);
        assert_int_equal(total.n_tensors, 11);
        assert_int_equal(total.n_converted, i == 0 ? 0 : 8);
        assert_int_equal(total.n_requantized, 0);
        assert_true(total.max_error >= total.rms_error);
        struct stat facts;
        assert_int_equal(stat(path_of("out"), &facts), 0);
        assert_int_equal(facts.st_size, total.file_bytes);
    }
    assert_int_equal(clear_folder(), 2);
}

/* From every type that can be read. */
static void test_from_every_type(void **state) {
    static float before[TINY_VOCAB], after[TINY_VOCAB];
    octavo_error error;
    octavo_quantize_total total;
    (void)state;
    for (size_t i = 0; i < OCTAVO_COUNT(tiny_all_types); i++) {
        const int bytes = (int)octavo_ggml_type_lookup((uint32_t)tiny_all_types[i])->block_values;
        write_model("in", &tiny_all_types[i], 1);
        must(quantize("in", "out", "F32", NULL, &total, &error), &error);
        read_logits("in", before);
        read_logits("out", after);
        /* the same values, though not in the same order of sums */
        if (distance(before, after, TINY_VOCAB) > 1e-5)
            fail_msg("%s: not the same values", octavo_ggml_type_name(tiny_all_types[i]));
        assert_true(total.rms_error == 0 && total.max_error == 0);
        assert_int_equal(total.n_requantized, bytes > 1 ? total.n_converted : 0);
    }
    clear_folder();
}

/* Which type each tensor got, by a file that is read again. */
static octavo_ggml_type type_in(const octavo_gguf *gguf, const char *name) {
    const octavo_gguf_tensor *tensor = NULL;
    octavo_error error;
    must(octavo_gguf_get_tensor(gguf, name, &tensor, &error), &error);
    return tensor->type;
}

static void test_patterns(void **state) {
    static const char *const keep[] = {"ffn_(gate|up)=q5_0", "ffn", "^token_embd\\.=F16",
                                       "norm|embd"};
    octavo_quantize_options options;
    octavo_error error;
    octavo_gguf *gguf = NULL;
    (void)state;
    write_model("in", &plain, 1);
    octavo_quantize_options_init(&options);
    options.type = "Q4_0";
    options.keep = keep;
    options.n_keep = 4;
    must(octavo_quantize(path_of("in"), path_of("out"), &options, NULL, &error), &error);
    must(octavo_gguf_open(path_of("out"), &gguf, &error), &error);
    assert_int_equal(type_in(gguf, "blk.0.ffn_gate.weight"), OCTAVO_GGML_Q5_0);
    assert_int_equal(type_in(gguf, "blk.0.ffn_up.weight"), OCTAVO_GGML_Q5_0);
    assert_int_equal(type_in(gguf, "blk.0.ffn_down.weight"), OCTAVO_GGML_F32);
    assert_int_equal(type_in(gguf, "token_embd.weight"), OCTAVO_GGML_F16);
    assert_int_equal(type_in(gguf, "blk.0.attn_q.weight"), OCTAVO_GGML_Q4_0);
    assert_int_equal(type_in(gguf, "blk.0.attn_norm.weight"), OCTAVO_GGML_F32);
    octavo_gguf_close(&gguf);
    refused(quantize("in", "none", "Q4_0", "no_such_name=F16", NULL, &error), OCTAVO_ERROR_INVALID,
            &error, "no_such_name");
    refused(quantize("in", "none", "Q4_0", "ffn=Q9_9", NULL, &error), OCTAVO_ERROR_INVALID, &error,
            "Q9_9");
    refused(quantize("in", "none", "Q4_0", "ffn_(", NULL, &error), OCTAVO_ERROR_INVALID, &error,
            "regular expression");
    refused(quantize("in", "none", "Q4_0", "=F16", NULL, &error), OCTAVO_ERROR_INVALID, &error,
            "empty");
    refused(quantize("in", "none", "Q9", NULL, NULL, &error), OCTAVO_ERROR_INVALID, &error,
            "Q9): there is no such type");
    refused(quantize("in", "none", "Q5_K", NULL, NULL, &error), OCTAVO_ERROR_UNSUPPORTED, &error,
            "Q5_K): models of it are read");
    assert_int_equal(clear_folder(), 2);
}

/* ---- what is reported ---- */

typedef struct report {
    octavo_quantized_tensor odd, wide;
    char notes[2][80];
    int n;
} report;

static void take_report(void *cookie, const octavo_quantized_tensor *tensor) {
    report *seen = cookie;
    seen->n++;
    if (strcmp(tensor->name, "odd.weight") == 0) {
        seen->odd = *tensor;
        snprintf(seen->notes[0], sizeof seen->notes[0], "%s", tensor->note);
    }
    if (strcmp(tensor->name, "wide.weight") == 0) {
        seen->wide = *tensor;
        snprintf(seen->notes[1], sizeof seen->notes[1], "%s", tensor->note);
    }
}

/* Rows of 48 values fit no block, rows of 96 those of 32; alignment 128; a scalar of every kind. */
static void write_odd(const char *name, const float *values) {
    gguf_writer w;
    gguf_writer_init(&w, 2, 128);
    gguf_writer_string(&w, "general.architecture", "none");
    gguf_writer_u32(&w, "general.file_type", 0);
    gguf_writer_f64(&w, "a.double", 0.1);
    gguf_writer_bool(&w, "a.bool", true);
    gguf_writer_integer(&w, "a.i8", OCTAVO_GGUF_I8, -3);
    gguf_writer_strings(&w, "a.strings", (const char *const[]){"x", "", "yz"}, 3);
    gguf_writer_tensor(&w, "norm.weight", OCTAVO_GGML_F32, 1, (const uint64_t[]){5}, values, 20);
    gguf_writer_tensor(&w, "odd.weight", OCTAVO_GGML_F32, 2, (const uint64_t[]){48, 40}, values,
                       48 * 40 * 4);
    gguf_writer_tensor(&w, "wide.weight", OCTAVO_GGML_F32, 3, (const uint64_t[]){96, 7, 5}, values,
                       96 * 7 * 5 * 4);
    gguf_writer_tensor(&w, "small.weight", OCTAVO_GGML_F32, 2, (const uint64_t[]){32, 31}, values,
                       32 * 31 * 4);
    gguf_writer_tensor(&w, "rows.bias", OCTAVO_GGML_F32, 2, (const uint64_t[]){64, 32}, values,
                       64 * 32 * 4);
    gguf_writer_tensor(&w, "ids", OCTAVO_GGML_I32, 1, (const uint64_t[]){3}, values, 12);
    assert_true(gguf_writer_save(&w, path_of(name)));
    gguf_writer_deinit(&w);
}

static void fill(float *values, int n) {
    for (int i = 0; i < n; i++)
        values[i] = sinf((float)i * 1.7f) * (1.0f + 0.01f * (float)(i % 97));
}

static void check_metadata(const octavo_gguf *in, const octavo_gguf *out) {
    for (size_t i = 0; i < octavo_gguf_n_metadata(in); i++) {
        const char *key = octavo_gguf_metadata_key(in, i);
        octavo_buffer a = {0}, b = {0};
        ptrdiff_t at = octavo_gguf_metadata_find(out, key);
        if (strcmp(key, "general.file_type") == 0) continue;
        assert_true(at >= 0);
        assert_int_equal(octavo_gguf_metadata_type(in, i),
                         octavo_gguf_metadata_type(out, (size_t)at));
        octavo_gguf_metadata_json(in, i, 100, &a);
        octavo_gguf_metadata_json(out, (size_t)at, 100, &b);
        assert_string_equal(a.data, b.data);
        octavo_buffer_deinit(&a);
        octavo_buffer_deinit(&b);
    }
}

static void test_report(void **state) {
    static float values[96 * 7 * 5];
    octavo_quantize_options options;
    octavo_gguf *in = NULL, *out = NULL;
    octavo_error error;
    report seen = {0};
    uint32_t number;
    double errors = 0, squares = 0, most = 0;
    (void)state;
    fill(values, 96 * 7 * 5);
    write_odd("in", values);
    octavo_quantize_options_init(&options);
    options.type = "Q4_K";
    options.report = take_report;
    options.cookie = &seen;
    must(octavo_quantize(path_of("in"), path_of("out"), &options, NULL, &error), &error);
    must(octavo_gguf_open(path_of("in"), &in, &error), &error);
    must(octavo_gguf_open(path_of("out"), &out, &error), &error);
    check_metadata(in, out);
    must(octavo_gguf_get_u32(out, "general.file_type", &number, &error), &error);
    assert_int_equal(number, 14);
    must(octavo_gguf_get_u32(out, "general.quantization_version", &number, &error), &error);
    assert_int_equal(number, 2);
    assert_int_equal(octavo_gguf_version(out), 3);
    assert_int_equal(seen.n, 6);
    assert_int_equal(type_in(out, "odd.weight"), OCTAVO_GGML_F16);
    assert_int_equal(type_in(out, "wide.weight"), OCTAVO_GGML_Q5_0);
    assert_int_equal(type_in(out, "small.weight"), OCTAVO_GGML_F32);
    assert_int_equal(type_in(out, "rows.bias"), OCTAVO_GGML_F32);
    assert_int_equal(type_in(out, "ids"), OCTAVO_GGML_I32);
    assert_non_null(strstr(seen.notes[0], "wider"));
    assert_non_null(strstr(seen.notes[1], "wider"));
    assert_false(seen.odd.is_copied);
    for (size_t i = 0; i < octavo_gguf_n_tensors(out); i++) {
        const octavo_gguf_tensor *a = octavo_gguf_tensor_at(in, i);
        const octavo_gguf_tensor *b = octavo_gguf_tensor_at(out, i);
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->n_dims, b->n_dims);
        assert_memory_equal(a->extent, b->extent, sizeof a->extent);
        assert_int_equal(b->offset % 128, 0);
        if (a->type == b->type) assert_memory_equal(a->data, b->data, a->bytes);
    }
    /* the loss of rounding to f16, by the definition */
    for (int i = 0; i < 48 * 40; i++) {
        const double x = (double)values[i];
        const double off = (double)octavo_f16_to_f32(octavo_f32_to_f16(values[i])) - x;
        errors += off * off;
        squares += x * x;
        if (fabs(off) > most) most = fabs(off);
    }
    const double rms = sqrt(errors / squares), top = most / sqrt(squares / (48 * 40));
    assert_true(rms > 0 && fabs(seen.odd.rms_error - rms) < 1e-9 * rms);
    assert_true(fabs(seen.odd.max_error - top) < 1e-9 * top);
    octavo_gguf_close(&in);
    octavo_gguf_close(&out);
    assert_int_equal(clear_folder(), 2);
}

static void assert_same_files(const char *a, const char *b) {
    FILE *x = fopen(path_of(a), "rb"), *y = fopen(path_of(b), "rb");
    int c;
    assert_non_null(x);
    assert_non_null(y);
    while ((c = fgetc(x)) != EOF)
        if (c != fgetc(y)) fail_msg("%s and %s differ", a, b);
    assert_int_equal(fgetc(y), EOF);
    fclose(x);
    fclose(y);
}

static void test_threads_same_bytes(void **state) {
    octavo_quantize_options options;
    octavo_quantize_total one, three;
    octavo_error error;
    (void)state;
    write_model("in", &plain, 1);
    octavo_quantize_options_init(&options);
    options.type = "Q4_K";
    options.threads = 1;
    must(octavo_quantize(path_of("in"), path_of("one"), &options, &one, &error), &error);
    options.threads = 3;
    must(octavo_quantize(path_of("in"), path_of("three"), &options, &three, &error), &error);
    assert_same_files("one", "three");
    assert_true(one.max_error == three.max_error);
    assert_true(one.rms_error == three.rms_error);
    clear_folder();
}

static void write_part(const char *name, int part, const char *tensor, const float *values) {
    gguf_writer w;
    gguf_writer_init(&w, 3, 32);
    if (part == 0) gguf_writer_string(&w, "general.architecture", "none");
    gguf_writer_integer(&w, "split.no", OCTAVO_GGUF_U16, part);
    gguf_writer_integer(&w, "split.count", OCTAVO_GGUF_U16, 2);
    gguf_writer_integer(&w, "split.tensors.count", OCTAVO_GGUF_I32, 2);
    gguf_writer_tensor(&w, tensor, OCTAVO_GGML_F32, 2, (const uint64_t[]){32, 64}, values,
                       32 * 64 * 4);
    assert_true(gguf_writer_save(&w, path_of(name)));
    gguf_writer_deinit(&w);
}

static void test_parts_become_one(void **state) {
    static float values[32 * 64];
    octavo_gguf *out = NULL;
    octavo_error error;
    (void)state;
    fill(values, 32 * 64);
    write_part("m-00001-of-00002.gguf", 0, "a.weight", values);
    write_part("m-00002-of-00002.gguf", 1, "b.weight", values);
    must(quantize("m-00001-of-00002.gguf", "out", "Q8_0", NULL, NULL, &error), &error);
    must(octavo_gguf_open(path_of("out"), &out, &error), &error);
    assert_int_equal(octavo_gguf_n_parts(out), 1);
    assert_int_equal(octavo_gguf_metadata_find(out, "split.count"), -1);
    assert_int_equal(type_in(out, "a.weight"), OCTAVO_GGML_Q8_0);
    assert_int_equal(type_in(out, "b.weight"), OCTAVO_GGML_Q8_0);
    octavo_gguf_close(&out);
    refused(quantize("m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "Q8_0", NULL, NULL, &error),
            OCTAVO_ERROR_INVALID, &error, "is the model that is read");
    assert_int_equal(clear_folder(), 3);
}

/* ---- what goes wrong ---- */

static void test_bad_places(void **state) {
    octavo_error error;
    (void)state;
    write_model("in", &plain, 1);
    assert_int_equal(link(path_of("in"), path_of("other-name")), 0);
    refused(quantize("in", "in", "Q8_0", NULL, NULL, &error), OCTAVO_ERROR_INVALID, &error,
            "is the model that is read");
    refused(quantize("in", "other-name", "Q8_0", NULL, NULL, &error), OCTAVO_ERROR_INVALID, &error,
            "is the model that is read");
    refused(quantize("in", "no/folder", "Q8_0", NULL, NULL, &error), OCTAVO_ERROR_IO, &error,
            "no/folder");
    refused(quantize("in", ".", "Q8_0", NULL, NULL, &error), OCTAVO_ERROR_INVALID, &error,
            "is a folder");
    refused(quantize("in", "../../dev/null", "Q8_0", NULL, NULL, &error), OCTAVO_ERROR_INVALID,
            &error, "no plain file");
    refused(quantize(".", "out", "Q8_0", NULL, NULL, &error), OCTAVO_ERROR_NOT_FOUND, &error,
            "config.json");
    refused(quantize("absent", "out", "Q8_0", NULL, NULL, &error), OCTAVO_ERROR_NOT_FOUND, &error,
            "absent");
    assert_int_equal(clear_folder(), 2);
}

/* What a file system says that is full; what stood there stays. */
static void test_no_room(void **state) {
    struct rlimit before, low;
    octavo_error error;
    octavo_status status;
    (void)state;
    write_model("in", &plain, 1);
    must(quantize("in", "out", "Q8_0", NULL, NULL, &error), &error);
    must(quantize("in", "copy", "Q8_0", NULL, NULL, &error), &error);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    low = before;
    low.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    status = quantize("in", "out", "F16", NULL, NULL, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    refused(status, OCTAVO_ERROR_IO, &error, "cannot be written");
    assert_same_files("out", "copy");
    assert_int_equal(clear_folder(), 3);
}

static int stop_halfway(void *cookie, uint64_t done, uint64_t total) {
    (void)cookie;
    return done > total / 2;
}

static void test_stopped(void **state) {
    octavo_quantize_options options;
    octavo_error error;
    (void)state;
    write_model("in", &plain, 1);
    octavo_quantize_options_init(&options);
    options.type = "Q8_0";
    options.progress = stop_halfway;
    refused(octavo_quantize(path_of("in"), path_of("out"), &options, NULL, &error),
            OCTAVO_ERROR_CANCELLED, &error, "stopped");
    options.size--;
    refused(octavo_quantize(path_of("in"), path_of("out"), &options, NULL, &error),
            OCTAVO_ERROR_INVALID, &error, "octavo_quantize");
    assert_int_equal(clear_folder(), 1);
}

static void test_bad_values(void **state) {
    static float values[96 * 7 * 5];
    octavo_error error;
    (void)state;
    fill(values, 96 * 7 * 5);
    values[1500] = INFINITY;
    write_odd("in", values);
    refused(quantize("in", "out", "Q8_0", NULL, NULL, &error), OCTAVO_ERROR_FORMAT, &error,
            "odd.weight): holds values that are infinite");
    must(quantize("in", "out", "Q8_0", "odd|wide", NULL, &error), &error);
    values[1500] = 1e6f;
    write_odd("in", values);
    refused(quantize("in", "none", "F16", NULL, NULL, &error), OCTAVO_ERROR_FORMAT, &error,
            "odd.weight): holds values too large for F16");
    must(quantize("in", "out", "F16", "odd|wide=BF16", NULL, &error), &error);
    assert_int_equal(clear_folder(), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_near),
        cmocka_unit_test(test_from_every_type),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_threads_same_bytes),
        cmocka_unit_test(test_parts_become_one),
        cmocka_unit_test(test_bad_places),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_bad_values),
    };
    return cmocka_run_group_tests_name("quantize", tests, setup, teardown);
}
