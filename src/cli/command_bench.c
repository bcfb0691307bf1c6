/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo bench MODEL: speeds, and what share of the machine's limits they are.
 */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "cli/bench_run.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/report.h"

#include "octavo/inspect.h"
#include "octavo/template.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

typedef struct bench_options {
    octavo_bench_load load;
    bool has_no_limits, is_json;
} bench_options;

#define FIELD(name) offsetof(bench_options, name)

static const octavo_option OPTIONS[] = {
    {"--prompt", OCTAVO_OPTION_INT, "N", "tokens of a prompt; 0: none (512)", FIELD(load.prompt), 0,
     INT32_MAX},
    {"--generate", OCTAVO_OPTION_INT, "N", "tokens of an answer; 0: none (128)",
     FIELD(load.generate), 0, INT32_MAX},
    {"--depth", OCTAVO_OPTION_INT, "N", "tokens in the cache before (0)", FIELD(load.depth), 0,
     INT32_MAX},
    {"--streams", OCTAVO_OPTION_INT, "N", "sequences at a time (1)", FIELD(load.streams), 1, 65536},
    {"--shared-prefix", OCTAVO_OPTION_INT, "N", "tokens that all streams begin with (0)",
     FIELD(load.shared_prefix), 0, INT32_MAX},
    {"--repeat", OCTAVO_OPTION_INT, "N", "times that each phase is run (5)", FIELD(load.repeat), 1,
     10000},
    {"--no-limits", OCTAVO_OPTION_FLAG, NULL,
     "do not measure the machine, which takes two seconds: no shares then", FIELD(has_no_limits), 0,
     0},
    {"--json", OCTAVO_OPTION_FLAG, NULL, "one JSON document", FIELD(is_json), 0, 0},
};

/* All that there is to say. Zeros stand for what was not measured. */
typedef struct bench_report {
    const char *path;
    char architecture[64];
    octavo_model_facts facts; /* numbers and `isa` only: the model is closed by now */
    octavo_bench_load load;
    bool is_exact;
    double load_s;
    unsigned long long peak_rss;
    octavo_bench_speeds speeds;
    octavo_machine_limits limits;
    double operations;   /* of one prompt token, without attention's share that grows with depth */
    bool is_int8;        /* most of these are products of integers */
    double weight_bytes; /* read for each token: a step's, shared by its streams */
    double cache_bytes;  /* read for each token, on average over the run */
} bench_report;

/* ---- what a token costs ---- */

static bool is_plain_type(const char *type) {
    return strcmp(type, "f32") == 0 || strcmp(type, "f16") == 0 || strcmp(type, "bf16") == 0;
}

/* Whether an operation multiplies with quantised weights. */
static bool is_quantised(const json_t *program, const json_t *op) {
    size_t i;
    json_t *id;
    json_array_foreach(json_object_get(op, "in"), i, id) {
        const json_t *tensor =
            json_array_get(json_object_get(program, "tensors"), (size_t)json_integer_value(id));
        const char *kind = json_string_value(json_object_get(tensor, "kind"));
        const char *type = json_string_value(json_object_get(tensor, "type"));
        if (kind && type && strcmp(kind, "weight") == 0) return !is_plain_type(type);
    }
    return false;
}

/* The operations of the program that every token goes through; the head is only for logits. */
static void sum_operations(const json_t *program, bench_report *report) {
    double integer = 0.0;
    size_t i;
    json_t *op;
    json_array_foreach(json_object_get(program, "ops"), i, op) {
        const char *part = json_string_value(json_object_get(op, "part"));
        const double n = json_number_value(json_object_get(op, "operations_per_row"));
        if (!part || strcmp(part, "body") != 0) continue;
        report->operations += n;
        if (is_quantised(program, op)) integer += n;
    }
    report->is_int8 = !report->is_exact && 2.0 * integer > report->operations;
}

static octavo_status count_costs(bench_report *report, octavo_error *error) {
    octavo_inspect_options options;
    char *json = NULL;
    octavo_inspect_options_init(&options);
    options.with_program = true;
    options.is_exact = report->is_exact;
    options.weights = report->facts.weights;
    octavo_status status = octavo_inspect(report->path, &options, &json, error);
    if (status) return status;
    json_t *document = json_loads(json, 0, NULL);
    octavo_text_free(json);
    if (!document) return octavo_fail_memory(error, "description", 0);
    sum_operations(json_object_get(document, "program"), report);
    json_decref(document);

    const octavo_bench_load *load = &report->load;
    double positions = (double)load->depth + (double)(load->generate - 1) / 2.0;
    report->weight_bytes = (double)report->facts.step_bytes / (double)load->streams;
    report->cache_bytes = (double)report->facts.position_bytes * positions;
    return OCTAVO_OK;
}

static double decode_gbps(const bench_report *r) {
    return r->speeds.decode.best * (r->weight_bytes + r->cache_bytes) * 1e-9;
}

static double prefill_gops(const bench_report *r) {
    return r->speeds.prefill.best * r->operations * 1e-9;
}

static double peak_gops(const bench_report *r) {
    return r->is_int8 && r->limits.int8_gops > 0.0 ? r->limits.int8_gops : r->limits.f32_gflops;
}

/* ---- the report ---- */

static void put_prefill(const bench_report *r, octavo_buffer *out) {
    if (r->load.prompt == 0) {
        octavo_buffer_puts(out, "null");
        return;
    }
    octavo_buffer_puts(out, "{\"tokens_per_s\":");
    octavo_spread_print(&r->speeds.prefill, out);
    octavo_buffer_printf(out, ",\"operations_per_token\":%.9g,\"gops\":%.6g", r->operations,
                         prefill_gops(r));
    if (r->limits.threads)
        octavo_buffer_printf(out, ",\"peak\":\"%s\",\"peak_gops\":%.6g,\"peak_share\":%.6g",
                             r->is_int8 ? "int8" : "f32", peak_gops(r),
                             prefill_gops(r) / peak_gops(r));
    octavo_buffer_putc(out, '}');
}

static void put_decode(const bench_report *r, octavo_buffer *out) {
    if (r->load.generate == 0) {
        octavo_buffer_puts(out, "null");
        return;
    }
    octavo_buffer_puts(out, "{\"tokens_per_s\":");
    octavo_spread_print(&r->speeds.decode, out);
    octavo_buffer_printf(
        out, ",\"weight_bytes_per_token\":%.9g,\"cache_bytes_per_token\":%.9g,\"gbps\":%.6g",
        r->weight_bytes, r->cache_bytes, decode_gbps(r));
    if (r->limits.threads)
        octavo_buffer_printf(out, ",\"read_gbps\":%.6g,\"bandwidth_share\":%.6g",
                             r->limits.read_gbps, decode_gbps(r) / r->limits.read_gbps);
    octavo_buffer_putc(out, '}');
}

static octavo_status print_json(const bench_report *r, octavo_error *error) {
    octavo_buffer out = {0};
    octavo_status status = OCTAVO_OK;
    octavo_buffer_puts(&out, "{\"model\":");
    octavo_buffer_json_string(&out, r->path, strlen(r->path));
    octavo_buffer_printf(
        &out,
        ",\"architecture\":\"%s\",\"isa\":\"%s\",\"threads\":%d,\"precision\":"
        "\"%s\",\"weights\":\"%s\",\"kv_dtype\":\"%s\",\"prompt\":%lld,\"generate\":%lld,"
        "\"depth\":%lld,\"streams\":%lld,\"shared_prefix\":%lld,\"repeat\":%lld",
        r->architecture, r->facts.isa, r->facts.threads, r->is_exact ? "exact" : "fast",
        octavo_weights_name(r->facts.weights), octavo_dtype_name(r->facts.kv_dtype),
        (long long)r->load.prompt, (long long)r->load.generate, (long long)r->load.depth,
        (long long)r->load.streams, (long long)r->load.shared_prefix, (long long)r->load.repeat);
    octavo_buffer_puts(&out, ",\"prefill\":");
    put_prefill(r, &out);
    octavo_buffer_puts(&out, ",\"decode\":");
    put_decode(r, &out);
    octavo_buffer_puts(&out, ",\"machine\":");
    if (r->limits.threads)
        octavo_limits_print(&r->limits, &out);
    else
        octavo_buffer_puts(&out, "null");
    octavo_buffer_printf(&out, ",\"load_s\":%.6g,\"peak_rss_bytes\":%llu}\n", r->load_s,
                         r->peak_rss);
    if (out.failed)
        status = octavo_fail_memory(error, "JSON", out.size);
    else
        fwrite(out.data, 1, out.size, stdout);
    octavo_buffer_deinit(&out);
    return status;
}

static void print_speed(const char *what, long long n, const octavo_spread *speed) {
    char label[40];
    snprintf(label, sizeof label, "%s %lld", what, n);
    printf("%-16s %9.1f tokens/s  (best %.1f, least %.1f)\n", label, speed->median, speed->best,
           speed->least);
}

static void print_text(const bench_report *r) {
    printf("%s: %s, %s, %d thread%s, %s, weights %s, cache %s, depth %lld, %lld stream%s\n",
           r->path, r->architecture, r->facts.isa, r->facts.threads,
           r->facts.threads > 1 ? "s" : "", r->is_exact ? "exact" : "fast",
           octavo_weights_name(r->facts.weights), octavo_dtype_name(r->facts.kv_dtype),
           (long long)r->load.depth, (long long)r->load.streams, r->load.streams > 1 ? "s" : "");
    if (r->load.prompt) {
        print_speed("prefill", r->load.prompt, &r->speeds.prefill);
        printf("%-16s %9.1f Gop/s", "", prefill_gops(r));
        if (r->limits.threads)
            printf("     %.0f%% of the %s peak of %.0f", 100.0 * prefill_gops(r) / peak_gops(r),
                   r->is_int8 ? "int8" : "f32", peak_gops(r));
        putchar('\n');
    }
    if (r->load.generate) {
        print_speed("decode", r->load.generate, &r->speeds.decode);
        printf("%-16s %9.1f GB/s", "", decode_gbps(r));
        if (r->limits.threads)
            printf("      %.0f%% of the read bandwidth of %.1f",
                   100.0 * decode_gbps(r) / r->limits.read_gbps, r->limits.read_gbps);
        printf("\n%-16s %9.1f MB of weights and %.2f MB of cache read per token\n", "",
               r->weight_bytes * 1e-6, r->cache_bytes * 1e-6);
    }
    printf("%-16s %9.3f s\n%-16s %9.1f MB\n", "load", r->load_s, "peak memory",
           (double)r->peak_rss * 1e-6);
}

/* ---- the command ---- */

/* Opens the model with a cache that holds all streams. What a page takes is known only from an open
 * model, so where one full context is not enough it is opened once more. */
static octavo_status open_model(bench_report *report, octavo_model_options options,
                                octavo_model **model, octavo_error *error) {
    const octavo_bench_load *load = &report->load;
    double start = octavo_clock_seconds();
    if (load->streams > options.max_sequences) options.max_sequences = (int)load->streams;
    octavo_status status = octavo_model_load_writer(report->path, options, model, error);
    if (status) return status;
    octavo_model_facts facts = octavo_model_describe(*model);
    int64_t slots = octavo_bench_slots(load);
    int64_t pages = (slots + facts.page_size - 1) / facts.page_size * load->streams;
    if (pages > facts.pages && options.kv_memory == 0 && slots <= facts.context &&
        facts.processes == 1) { /* a job opens its model once */
        octavo_model_close(model);
        options.kv_memory = facts.kv_bytes / (uint64_t)facts.pages * (uint64_t)pages;
        start = octavo_clock_seconds();
        status = octavo_model_load_writer(report->path, options, model, error);
    }
    report->load_s = octavo_clock_seconds() - start;
    return status;
}

static octavo_status run_model(bench_report *report, const octavo_model_options *options,
                               octavo_error *error) {
    octavo_model *model = NULL;
    octavo_status status = open_model(report, *options, &model, error);
    if (status) return status;
    report->facts = octavo_model_describe(model);
    snprintf(report->architecture, sizeof report->architecture, "%s", report->facts.architecture);
    report->facts.architecture = NULL;
    status = octavo_bench_run(model, &report->load, &report->speeds, error);
    report->peak_rss = octavo_machine_peak_rss();
    octavo_model_close(&model);
    return status;
}

/* The machine is measured after the model has gone: with it go the threads' bindings to cores, and
 * the peak of memory is not that of the measurement. */
static octavo_status measure(bench_report *report, const octavo_model_options *options,
                             bool has_limits, octavo_error *error) {
    octavo_status status = run_model(report, options, error);
    if (status == OCTAVO_OK) status = count_costs(report, error);
    if (status || !has_limits) return status;
    return octavo_machine_measure(report->facts.threads, options->isa, 0.0, &report->limits, error);
}

int octavo_command_bench(const octavo_command *command, int argc, char **argv) {
    bench_options options = {
        .load = {.prompt = 512, .generate = 128, .streams = 1, .repeat = 5},
    };
    octavo_model_choice choice = octavo_model_choice_defaults();
    const octavo_option_group groups[] = {{"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options},
                                          octavo_model_choice_group(&choice)};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = groups, .n_groups = 2};
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status >= 0) return exit_status;

    if (options.load.streams > choice.chunk)
        return octavo_cli_usage("bench (%lld streams): more than a step of %lld takes; give fewer "
                                "with --streams or raise --chunk",
                                (long long)options.load.streams, (long long)choice.chunk);

    if ((exit_status = octavo_model_choice_check(&choice)) >= 0) return exit_status;
    octavo_error error;
    const octavo_model_options model_options = octavo_model_choice_options(&choice);
    bench_report report = {.path = line.arguments[0],
                           .load = options.load,
                           .is_exact = model_options.precision == OCTAVO_PRECISION_EXACT};
    octavo_status status = measure(&report, &model_options, !options.has_no_limits, &error);
    if (status == OCTAVO_OK && options.is_json)
        status = print_json(&report, &error);
    else if (status == OCTAVO_OK)
        print_text(&report);
    octavo_model_choice_deinit(&choice);
    return octavo_cli_exit(status, &error);
}
