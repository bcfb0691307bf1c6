/* SPDX-License-Identifier: Apache-2.0
 *
 * Files stand in for pipes: neither side ever waits for the other.
 */
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static FILE *open_scratch(void) {
    FILE *file = tmpfile();
    assert_non_null(file);
    return file;
}

static char *read_back(FILE *file, size_t *size) {
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long length = ftell(file);
    assert_true(length >= 0);
    char *text = calloc((size_t)length + 1, 1);
    assert_non_null(text);
    rewind(file);
    *size = fread(text, 1, (size_t)length, file);
    assert_int_equal(*size, length);
    fclose(file);
    return text;
}

process_result process_run(const char *const *argv, const char *input, size_t input_bytes) {
    process_result result = {0};
    FILE *in = open_scratch(), *out = open_scratch(), *err = open_scratch();
    int wait_status;
    assert_int_equal(fwrite(input, 1, input_bytes, in), input_bytes);
    assert_int_equal(fflush(in), 0);
    rewind(in);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        union {
            const char *const *in;
            char *const *out;
        } arguments = {.in = argv}; /* execv does not change them */
        if (dup2(fileno(in), STDIN_FILENO) < 0 || dup2(fileno(out), STDOUT_FILENO) < 0 ||
            dup2(fileno(err), STDERR_FILENO) < 0)
            _exit(126);
        (void)lseek(STDIN_FILENO, 0, SEEK_SET);
        execv(argv[0], arguments.out);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    result.status =
        WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 1000 + WTERMSIG(wait_status);
    fclose(in);
    result.out = read_back(out, &result.out_bytes);
    result.err = read_back(err, &result.err_bytes);
    return result;
}

void process_free(process_result *result) {
    free(result->out);
    free(result->err);
    *result = (process_result){0};
}

json_t *process_json(const process_result *result) {
    json_error_t problem;
    json_t *value =
        json_loadb(result->out, result->out_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &problem);
    if (!value)
        fail_msg("not JSON (byte %d: %s): %s%s", problem.position, problem.text, result->out,
                 result->err);
    return value;
}

int process_says(const process_result *result, const char *part) {
    static const char start[] = "octavo: error: ";
    const char *line_end = strchr(result->err, '\n');
    int is_one_line = line_end && line_end + 1 == result->err + result->err_bytes;
    if (strncmp(result->err, start, strlen(start)) == 0 && is_one_line && strstr(result->err, part))
        return 1;
    fprintf(stderr, "expected an error with '%s', got status %d and:\n%s", part, result->status,
            result->err);
    return 0;
}
