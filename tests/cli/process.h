/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the built command and keeps what it said.
 */
#ifndef OCTAVO_TESTS_CLI_PROCESS_H
#define OCTAVO_TESTS_CLI_PROCESS_H

#include "../unit.h"

#include <jansson.h>
#include <string.h>

typedef struct process_result {
    int status; /* exit status, or 1000 + the signal that ended it */
    char *out;  /* standard output, terminated; free with process_free */
    size_t out_bytes;
    char *err; /* standard error */
    size_t err_bytes;
} process_result;

/* Runs argv (NULL at its end) with `input` as standard input. */
process_result process_run(const char *const *argv, const char *input, size_t input_bytes);
void process_free(process_result *result);

/* One JSON document, or the test fails. */
json_t *process_json(const process_result *result);

/* Whether standard error is one line "octavo: error: ..." that contains `part`; prints it if not.
 */
int process_says(const process_result *result, const char *part);

/* OCTAVO(TEXT, "run", ...): the built command with TEXT as standard input. */
#define OCTAVO(input, ...)                                                                         \
    process_run((const char *const[]){OCTAVO_COMMAND, __VA_ARGS__, NULL}, input, strlen(input))

#define TINY_LLAMA  TEST_DATA "/models/llama-f32.gguf"
#define TINY_QWEN2  TEST_DATA "/models/qwen2-bf16.gguf"
#define TINY_GEMMA3 TEST_DATA "/models/gemma3-f32.gguf"

#endif
