/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo bench attention: the kernel alone, and what share of the machine's limits it reaches.
 */
#include "base/compiler.h"
#include "base/cpu.h"
#include "base/error.h"
#include "cli/bench_attention.h"
#include "cli/commands.h"
#include "cli/measure.h"
#include "cli/model_options.h"
#include "cli/report.h"

#include <stdio.h>

/* What each of the two measurements of the limits may take. */
static const double LIMITS_SECONDS = 0.4;

typedef struct attention_options {
    int64_t heads, kv_heads, head_dim, page_size, window, threads, repeat;
    int q_dtype, kv_dtype, layout, pages, precision; /* indices into the options' words */
    const char *batch, *isa;
    bool has_no_limits, is_json;
} attention_options;

#define FIELD(name) offsetof(attention_options, name)

/* In the order of octavo_dtype, octavo_kv_layout and octavo_attention_precision. */
static const octavo_option OPTIONS[] = {
    {"--heads", OCTAVO_OPTION_INT, "N", "query heads (32)", FIELD(heads), 1, 1024},
    {"--kv-heads", OCTAVO_OPTION_INT, "N", "key and value heads (8)", FIELD(kv_heads), 1, 1024},
    {"--head-dim", OCTAVO_OPTION_INT, "N", "width of a head (128)", FIELD(head_dim), 1, 512},
    {"--page-size", OCTAVO_OPTION_INT, "N", "slots in a page of the cache (16)", FIELD(page_size),
     1, 1024},
    {"--kv-dtype", OCTAVO_OPTION_CHOICE, "f32|f16|bf16|fp8_e4m3|fp8_e5m2|int8",
     "element type of the cache (bf16)", FIELD(kv_dtype), 0, 0},
    {"--q-dtype", OCTAVO_OPTION_CHOICE, "f32|f16|bf16",
     "element type of the queries and the output (bf16)", FIELD(q_dtype), 0, 0},
    {"--window", OCTAVO_OPTION_INT, "N", "sliding window; 0: none (0)", FIELD(window), 0,
     INT32_MAX},
    {"--batch", OCTAVO_OPTION_TEXT, "Q:KV,...",
     "new tokens and context of each sequence "
     "(16x1:4096)",
     FIELD(batch), 0, 0},
    {"--pages", OCTAVO_OPTION_CHOICE, "random|runs",
     "runs: a sequence's pages are neighbours (random)", FIELD(pages), 0, 0},
    {"--layout", OCTAVO_OPTION_CHOICE, "rows|columns", "how a page lies in memory (rows)",
     FIELD(layout), 0, 0},
    {"--precision", OCTAVO_OPTION_CHOICE, "strict|bf16",
     "bf16: softmax weights are rounded to it (strict)", FIELD(precision), 0, 0},
    {"--threads", OCTAVO_OPTION_INT, "N", "threads (one for each physical core)", FIELD(threads), 1,
     1024},
    {"--isa", OCTAVO_OPTION_TEXT, OCTAVO_ISA_NAMES, "instruction set (best)", FIELD(isa), 0, 0},
    {"--repeat", OCTAVO_OPTION_INT, "N", "measured calls (what fits a second, at least 3)",
     FIELD(repeat), 1, 10000},
    {"--no-limits", OCTAVO_OPTION_FLAG, NULL, "do not measure the machine: no shares then",
     FIELD(has_no_limits), 0, 0},
    {"--json", OCTAVO_OPTION_FLAG, NULL, "one JSON document", FIELD(is_json), 0, 0},
};

/* All that there is to say. */
typedef struct attention_report {
    octavo_bench_attention bench;
    octavo_bench_totals totals;
    const char *isa; /* the one used */
    octavo_bench_times times;
    bool has_limits;
    octavo_machine_limits before, after;
} attention_report;

/* ---- what a call costs, and could cost at least ---- */

static double read_bytes(const attention_report *r) {
    const octavo_bench_attention *b = &r->bench;
    double row = (double)b->head_dim * (double)octavo_dtype_size(b->kv_dtype);
    double query = (double)b->head_dim * (double)octavo_dtype_size(b->q_dtype);
    return 2.0 * (double)b->kv_heads * row * r->totals.visible +
           2.0 * (double)b->heads * query * (double)r->totals.queries;
}

static double count_flops(const attention_report *r) {
    return 4.0 * (double)r->bench.heads * (double)r->bench.head_dim * r->totals.pairs;
}

static double gbps(const attention_report *r) {
    return read_bytes(r) / r->times.best * 1e-9;
}

static double gflops(const attention_report *r) {
    return count_flops(r) / r->times.best * 1e-9;
}

static double read_limit(const attention_report *r) {
    return (r->before.read_gbps + r->after.read_gbps) / 2.0;
}

typedef struct peak {
    const char *name;
    double gflops;
} peak;

/* bf16 instructions serve both products only where the weights are bf16 too; f32 weights leave the
 * second half of the operations to f32. */
static peak arithmetic_limit(const attention_report *r) {
    const octavo_bench_attention *b = &r->bench;
    double f32 = (r->before.f32_gflops + r->after.f32_gflops) / 2.0;
    double bf16 = (r->before.bf16_gflops + r->after.bf16_gflops) / 2.0;
    bool is_bf16 = b->q_dtype == OCTAVO_DTYPE_BF16 && b->kv_dtype == OCTAVO_DTYPE_BF16;
    if (bf16 <= 0.0 || !is_bf16) return (peak){"f32", f32};
    if (b->precision == OCTAVO_ATTENTION_BF16) return (peak){"bf16", bf16};
    return (peak){"mixed", 2.0 / (1.0 / bf16 + 1.0 / f32)};
}

/* ---- the report ---- */

static const char *layout_name(const attention_report *r) {
    return r->bench.layout == OCTAVO_KV_COLUMNS ? "columns" : "rows";
}

static const char *precision_name(const attention_report *r) {
    return r->bench.precision == OCTAVO_ATTENTION_BF16 ? "bf16" : "strict";
}

static void put_setting(const attention_report *r, octavo_buffer *out) {
    const octavo_bench_attention *b = &r->bench;
    octavo_buffer_printf(
        out,
        "\"heads\":%lld,\"kv_heads\":%lld,\"head_dim\":%lld,\"page_size\":%lld,\"window\":%lld,"
        "\"q_dtype\":\"%s\",\"kv_dtype\":\"%s\",\"layout\":\"%s\",\"pages\":\"%s\","
        "\"precision\":\"%s\",\"sequences\":%zu,\"queries\":%lld,\"positions\":%lld,"
        "\"isa\":\"%s\",\"threads\":%d,\"runs\":%lld",
        (long long)b->heads, (long long)b->kv_heads, (long long)b->head_dim,
        (long long)b->page_size, (long long)b->window, octavo_dtype_name(b->q_dtype),
        octavo_dtype_name(b->kv_dtype), layout_name(r), b->has_runs ? "runs" : "random",
        precision_name(r), b->batch.n, (long long)r->totals.queries, (long long)r->totals.positions,
        r->isa, b->threads, (long long)r->times.runs);
}

static void put_limits(const attention_report *r, octavo_buffer *out) {
    const peak limit = arithmetic_limit(r);
    octavo_buffer_printf(out,
                         ",\"bandwidth_share\":%.6g,\"peak_share\":%.6g,\"read_gbps\":%.6g,"
                         "\"peak\":\"%s\",\"peak_gflops\":%.6g,\"machine\":{\"before\":",
                         gbps(r) / read_limit(r), gflops(r) / limit.gflops, read_limit(r),
                         limit.name, limit.gflops);
    octavo_limits_print(&r->before, out);
    octavo_buffer_puts(out, ",\"after\":");
    octavo_limits_print(&r->after, out);
    octavo_buffer_putc(out, '}');
}

static octavo_status print_json(const attention_report *r, octavo_error *error) {
    octavo_buffer out = {0};
    octavo_status status = OCTAVO_OK;
    octavo_buffer_putc(&out, '{');
    put_setting(r, &out);
    octavo_buffer_printf(&out,
                         ",\"seconds\":{\"best\":%.6g,\"median\":%.6g},\"bytes\":%.0f,"
                         "\"flops\":%.0f,\"gbps\":%.6g,\"gflops\":%.6g",
                         r->times.best, r->times.median, read_bytes(r), count_flops(r), gbps(r),
                         gflops(r));
    if (r->has_limits) put_limits(r, &out);
    octavo_buffer_puts(&out, "}\n");
    if (out.failed)
        status = octavo_fail_memory(error, "JSON", out.size);
    else
        fwrite(out.data, 1, out.size, stdout);
    octavo_buffer_deinit(&out);
    return status;
}

static void print_text(const attention_report *r) {
    const octavo_bench_attention *b = &r->bench;
    const peak limit = arithmetic_limit(r);
    printf("attention: %lld/%lld heads of %lld, %s queries, %s cache in %s, pages of %lld %s, "
           "%s precision, %s, %d thread%s\n",
           (long long)b->heads, (long long)b->kv_heads, (long long)b->head_dim,
           octavo_dtype_name(b->q_dtype), octavo_dtype_name(b->kv_dtype), layout_name(r),
           (long long)b->page_size, b->has_runs ? "in runs" : "at random", precision_name(r),
           r->isa, b->threads, b->threads > 1 ? "s" : "");
    printf("batch      %9zu sequence%s, %lld new token%s, context %lld\n", b->batch.n,
           b->batch.n > 1 ? "s" : "", (long long)r->totals.queries,
           r->totals.queries > 1 ? "s" : "", (long long)r->totals.positions);
    printf("time       %9.4g ms  (median %.4g, %lld run%s)\n", r->times.best * 1e3,
           r->times.median * 1e3, (long long)r->times.runs, r->times.runs > 1 ? "s" : "");
    printf("read       %9.1f GB/s", gbps(r));
    if (r->has_limits)
        printf("     %3.0f%% of the read bandwidth of %.1f (before %.1f, after %.1f)",
               100.0 * gbps(r) / read_limit(r), read_limit(r), r->before.read_gbps,
               r->after.read_gbps);
    printf("\narithmetic %9.1f GFLOP/s", gflops(r));
    if (r->has_limits)
        printf("  %3.0f%% of the %s peak of %.1f", 100.0 * gflops(r) / limit.gflops, limit.name,
               limit.gflops);
    putchar('\n');
}

/* ---- the command ---- */

static octavo_status measure(attention_report *r, octavo_error *error) {
    const octavo_bench_attention *b = &r->bench;
    octavo_cpu_flags flags;
    octavo_status status = octavo_cpu_select(b->isa, &flags, error);
    if (status) return status;
    r->isa = octavo_cpu_name(flags);
    if (r->has_limits &&
        (status = octavo_machine_measure(b->threads, b->isa, LIMITS_SECONDS, &r->before, error)))
        return status;
    if ((status = octavo_bench_attention_run(b, &r->times, error))) return status;
    if (r->has_limits)
        status = octavo_machine_measure(b->threads, b->isa, LIMITS_SECONDS, &r->after, error);
    return status;
}

static octavo_bench_attention make_bench(const attention_options *options) {
    return (octavo_bench_attention){
        .heads = options->heads,
        .kv_heads = options->kv_heads,
        .head_dim = options->head_dim,
        .page_size = options->page_size,
        .window = options->window,
        .q_dtype = (octavo_dtype)options->q_dtype,
        .kv_dtype = (octavo_dtype)options->kv_dtype,
        .layout = (octavo_kv_layout)options->layout,
        .precision = (octavo_attention_precision)options->precision,
        .has_runs = options->pages == 1,
        .threads = options->threads ? (int)options->threads : octavo_machine_cores(),
        .isa = options->isa,
        .repeat = options->repeat,
    };
}

int octavo_command_bench_attention(const octavo_command *command, int argc, char **argv) {
    attention_options options = {
        .heads = 32,
        .kv_heads = 8,
        .head_dim = 128,
        .page_size = 16,
        .q_dtype = OCTAVO_DTYPE_BF16,
        .kv_dtype = OCTAVO_DTYPE_BF16,
        .batch = "16x1:4096",
    };
    const octavo_option_group group = {"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = &group, .n_groups = 1};
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status < 0) exit_status = octavo_isa_check(options.isa);
    if (exit_status >= 0) return exit_status;
    if (options.heads % options.kv_heads != 0)
        return octavo_cli_usage("option --kv-heads (%lld): %lld query heads cannot share them "
                                "evenly; give a divisor of --heads",
                                (long long)options.kv_heads, (long long)options.heads);

    octavo_error error;
    attention_report report = {.bench = make_bench(&options), .has_limits = !options.has_no_limits};
    exit_status = octavo_bench_batch_parse(options.batch, &report.bench.batch);
    if (exit_status >= 0) return exit_status;
    report.totals = octavo_bench_batch_totals(&report.bench.batch, options.window);
    octavo_status status = measure(&report, &error);
    if (status == OCTAVO_OK && options.is_json)
        status = print_json(&report, &error);
    else if (status == OCTAVO_OK)
        print_text(&report);
    octavo_bench_batch_deinit(&report.bench.batch);
    return octavo_cli_exit(status, &error);
}
