/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines: exit statuses, and the one line that says what is wrong.
 */
#include "base/cpu.h"
#include "cli/model_options.h"
#include "process.h"

#include "octavo/status.h"

#include <stdio.h>

/* Expects this exit status and, unless it is 0, an error line with `part`. */
static void expect(process_result result, int status, const char *part) {
    if (status != 0) assert_true(process_says(&result, part));
    if (result.status != status) fail_msg("status %d: %s", result.status, result.err);
    if (status != 0) assert_int_equal(result.out_bytes, 0);
    process_free(&result);
}

static void test_help_and_version(void **state) {
    static const char *const commands[] = {"run",        "bench",     "inspect",
                                           "tokenize",   "template",  "logits",
                                           "perplexity", "calibrate", "plan"};
    char version[64];
    (void)state;
    process_result result = OCTAVO("", "--version");
    snprintf(version, sizeof version, "octavo %s\n", octavo_version());
    assert_int_equal(result.status, 0);
    assert_string_equal(result.out, version);
    process_free(&result);

    result = OCTAVO("", "--help");
    assert_int_equal(result.status, 0);
    assert_int_equal(result.err_bytes, 0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char usage[64];
        assert_non_null(strstr(result.out, commands[i]));
        process_result help = OCTAVO("", commands[i], "--help");
        process_result same = OCTAVO("", "help", commands[i]);
        snprintf(usage, sizeof usage, "Usage: octavo %s ", commands[i]);
        assert_int_equal(help.status, 0);
        assert_int_equal(help.err_bytes, 0);
        assert_int_equal(strncmp(help.out, usage, strlen(usage)), 0);
        assert_string_equal(help.out, same.out);
        process_free(&help);
        process_free(&same);
    }
    process_free(&result);
}

static void test_no_command(void **state) {
    (void)state;
    process_result result = process_run((const char *const[]){OCTAVO_COMMAND, NULL}, "", 0);
    assert_int_equal(result.status, 2);
    assert_int_equal(result.out_bytes, 0);
    assert_non_null(strstr(result.err, "Usage: octavo"));
    process_free(&result);
}

static void test_unknown(void **state) {
    (void)state;
    expect(OCTAVO("", "tokenise", "m"), 2, "did you mean octavo tokenize?");
    expect(OCTAVO("", "serve", "m"), 2, "unknown command");
    expect(OCTAVO("", "help", "serve"), 2, "unknown command");
    expect(OCTAVO("", "--verbose"), 2, "option (--verbose)");
    expect(OCTAVO("", "run", "m", "--treads", "2"), 2, "did you mean --threads?");
    expect(OCTAVO("", "run", "m", "--treads=2"), 2, "run (--treads)");
    expect(OCTAVO("", "run", "m", "-z"), 2, "no such option");
    expect(OCTAVO("", "inspect", "m", "--temperature", "1"), 2, "no such option");
}

/* What help lists, and completion offers, for --isa is what there is. */
static void test_isa_names(void **state) {
    char names[256] = "best";
    size_t n_levels, length = strlen(names);
    (void)state;
    const octavo_cpu_level *levels = octavo_cpu_levels(&n_levels);
    for (size_t i = 0; i < n_levels; i++) {
        length += (size_t)snprintf(names + length, sizeof names - length, "|%s", levels[i].name);
        assert_true(length < sizeof names);
    }
    assert_string_equal(OCTAVO_ISA_NAMES, names);
}

static void test_arguments(void **state) {
    (void)state;
    expect(OCTAVO("", "run"), 2, "MODEL is missing");
    expect(OCTAVO("", "perplexity", "m"), 2, "FILE is missing");
    expect(OCTAVO("", "calibrate", "m", "t"), 2, "--out FILE is missing");
    expect(OCTAVO("", "run", "m", "n"), 2,
           "run (n): one argument too many; usage: octavo run MODEL [options]");
    expect(OCTAVO("", "run", "m", "-p"), 2, "option -p (end of the line): a value is missing");
    expect(OCTAVO("", "run", "m", "--raw=1"), 2, "takes no value");
    expect(OCTAVO("", "logits", "m", "--out", "x.npy"), 2, "--ids FILE is missing");
    expect(OCTAVO("", "logits", "m", "--ids", "x"), 2, "--out FILE.npy is missing");
    /* After "--" everything is an argument; a model of that name does not exist. */
    expect(OCTAVO("", "inspect", "--", "--json"), 1, "--json");
}

static void test_values(void **state) {
    static const struct {
        const char *option, *value;
    } wrong[] = {
        {"--threads", "0"},
        {"--threads", "1025"},
        {"--threads", "two"},
        {"--threads", "2x"},
        {"--threads", ""},
        {"--threads", " 2"},
        {"--threads", "+2"},
        {"--threads", "0x2"},
        {"--threads", "99999999999999999999"},
        {"-n", "-1"},
        {"-n", "1.5"},
        {"--page-size", "1025"},
        {"--chunk", "65537"},
        {"--context", "0"},
        {"--temperature", "-0.1"},
        {"--temperature", "nan"},
        {"--temperature", "inf"},
        {"--temperature", "0x1p3"},
        {"--temperature", "1e999"},
        {"--top-p", "0"},
        {"--top-p", "1.01"},
        {"--min-p", "-1"},
        {"--repeat-penalty", "0"},
        {"--seed", "-1"},
        {"--seed", "18446744073709551616"},
        {"--kv-memory", "4GB"},
        {"--kv-memory", "-1"},
        {"--kv-memory", "0"},
        {"--kv-memory", "1.5GiB"},
        {"--kv-memory", "GiB"},
        {"--kv-memory", "16777216TiB"},
        {"--kv-memory", "1KiBs"},
        {"--kv-dtype", "f64"},
        {"--precision", "Fast"},
        {"--precision", "fast|exact"},
        {"--weights", "q5"},
        {"--weights", "Q8"},
        {"--log-level", "2"},
        {"--devices", "0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char want[96];
        snprintf(want, sizeof want, "option %s (%s)", wrong[i].option, wrong[i].value);
        expect(OCTAVO("", "run", "m", "-p", "x", wrong[i].option, wrong[i].value), 2, want);
    }
    /* All of these are taken: what fails is the model that does not exist. */
    expect(OCTAVO("", "run", "/no/model", "-p", "x", "--kv-memory", "16MiB", "--kv-memory=1k",
                  "--seed", "18446744073709551615", "--temperature", "1e-3", "--top-p=.5", "-n5",
                  "--stop", "a", "--stop=b", "--page-size", "64"),
           1, "/no/model");
}

static void test_later_options(void **state) {
    static const struct {
        const char *option, *value;
    } later[] = {
        {"--packed-cache", "/tmp/x"},
        {"--prefix-store", "x"},
        {"--swap", "x"},
        {"--speculate", "ngram"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        expect(OCTAVO("", "run", TINY_LLAMA, "-p", "x", later[i].option, later[i].value), 1,
               "not in this version");
    expect(OCTAVO("", "run", TINY_LLAMA, "--raw", "-p", "x", "-n", "1", "--weights", "file",
                  "--packed-cache", "off", "--prefix-cache", "on", "--speculate", "off"),
           0, NULL);
    expect(OCTAVO("", "run", TINY_LLAMA, "--raw", "-p", "x", "-n", "1", "--weights", "q4"), 0,
           NULL);
}

static void test_ranks(void **state) {
    (void)state;
    expect(OCTAVO("", "run", TINY_LLAMA, "--raw", "-p", "x", "-n", "1", "--mesh", "data=2,model=-1",
                  "--devices", "4", "--threads", "1"),
           0, NULL);
    expect(OCTAVO("", "run", TINY_LLAMA, "-p", "x", "--mesh", "model=2", "--devices", "3"), 2,
           "option --mesh (model=2)");
    expect(OCTAVO("", "run", TINY_LLAMA, "-p", "x", "--mesh", "model=-2"), 2, "degree -2");
    expect(OCTAVO("", "run", TINY_LLAMA, "-p", "x", "--rules", "/no/rules.json"), 1,
           "/no/rules.json");
    expect(OCTAVO("", "run", TINY_LLAMA, "-p", "x", "--ranks", "mpi"), 1, "MPI");
    expect(OCTAVO("", "run", TINY_LLAMA, "-p", "x", "--ranks", "process"), 2, "--ranks");
    expect(OCTAVO("", "run", TINY_LLAMA, "-p", "x", "--mesh", "model=512", "--threads", "4"), 1,
           "more than 1024 threads");
}

static void test_models_that_are_none(void **state) {
    (void)state;
    expect(OCTAVO("", "run", "/no/such/model.gguf", "-p", "x"), 1, "/no/such/model.gguf");
    expect(OCTAVO("", "run", TEST_DATA, "-p", "x"), 1, TEST_DATA);
    expect(OCTAVO("", "inspect", TEST_DATA "/models/README.md"), 1, "README.md");
    expect(OCTAVO("", "run", TINY_LLAMA, "-p", "x", "--isa", "mmx"), 2, "mmx");
    expect(OCTAVO("", "bench", "machine", "--isa", "mmx"), 2, "avx2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help_and_version),
        cmocka_unit_test(test_no_command),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_isa_names),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_later_options),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_models_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
