/* SPDX-License-Identifier: Apache-2.0
 *
 * octavo bench machine: the limits that everything else is held against.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/measure.h"
#include "cli/model_options.h"
#include "cli/report.h"

#include <stdio.h>

enum { MOST_THREADS = 1024, MOST_ROWS = 11 }; /* 2^0 .. 2^10 */

typedef struct machine_options {
    int64_t threads;
    const char *isa;
    bool is_json;
} machine_options;

#define FIELD(name) offsetof(machine_options, name)

static const octavo_option OPTIONS[] = {
    {"--threads", OCTAVO_OPTION_INT, "N",
     "measure 1, 2, 4, ... and N threads (one for each physical core)", FIELD(threads), 1,
     MOST_THREADS},
    {"--isa", OCTAVO_OPTION_TEXT, OCTAVO_ISA_NAMES, "instruction set (best)", FIELD(isa), 0, 0},
    {"--json", OCTAVO_OPTION_FLAG, NULL, "one JSON document", FIELD(is_json), 0, 0},
};

static void print_peak(double value) {
    if (value > 0.0)
        printf(" %10.1f", value);
    else
        printf(" %10s", "-");
}

static void print_table(const octavo_machine_limits *rows, size_t n_rows) {
    printf("threads  read GB/s  f32 GFLOP/s  bf16 GFLOP/s  int8 GOP/s  fork-join us\n");
    for (size_t i = 0; i < n_rows; i++) {
        printf("%7d ", rows[i].threads);
        print_peak(rows[i].read_gbps);
        printf("  ");
        print_peak(rows[i].f32_gflops);
        printf("   ");
        print_peak(rows[i].bf16_gflops);
        printf(" ");
        print_peak(rows[i].int8_gops);
        printf("  %12.2f\n", rows[i].fork_join_seconds * 1e6);
    }
}

static octavo_status print_json(const octavo_machine_limits *rows, size_t n_rows,
                                octavo_error *error) {
    octavo_buffer out = {0};
    octavo_status status = OCTAVO_OK;
    octavo_buffer_puts(&out, "{\"machine\":[");
    for (size_t i = 0; i < n_rows; i++) {
        if (i > 0) octavo_buffer_putc(&out, ',');
        octavo_limits_print(&rows[i], &out);
    }
    octavo_buffer_puts(&out, "]}\n");
    if (out.failed)
        status = octavo_fail_memory(error, "JSON", out.size);
    else
        fwrite(out.data, 1, out.size, stdout);
    octavo_buffer_deinit(&out);
    return status;
}

/* Limits of 1, 2, 4, ... and `most` threads, in about two seconds. */
static octavo_status measure(int most, const char *isa, octavo_machine_limits *rows, size_t *n_rows,
                             octavo_error *error) {
    octavo_status status = OCTAVO_OK;
    size_t n = 1;
    for (int threads = 1; threads < most; threads *= 2)
        n++;
    for (size_t i = 0; i < n && status == OCTAVO_OK; i++)
        status = octavo_machine_measure(i < n - 1 ? 1 << i : most, isa, 2.0 / (double)n, &rows[i],
                                        error);
    *n_rows = n;
    return status;
}

int octavo_command_bench_machine(const octavo_command *command, int argc, char **argv) {
    machine_options options = {0};
    const octavo_option_group group = {"Options", OPTIONS, OCTAVO_COUNT(OPTIONS), &options};
    octavo_command_line line = {
        .command = command, .argc = argc, .argv = argv, .groups = &group, .n_groups = 1};
    int exit_status = octavo_command_line_parse(&line);
    if (exit_status < 0) exit_status = octavo_isa_check(options.isa);
    if (exit_status >= 0) return exit_status;

    octavo_error error;
    size_t n_rows;
    octavo_machine_limits rows[MOST_ROWS];
    int threads = options.threads ? (int)options.threads : octavo_machine_cores();
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    octavo_status status = measure(threads, options.isa, rows, &n_rows, &error);
    if (status == OCTAVO_OK && options.is_json)
        status = print_json(rows, n_rows, &error);
    else if (status == OCTAVO_OK)
        print_table(rows, n_rows);
    return octavo_cli_exit(status, &error);
}
