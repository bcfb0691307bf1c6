/* SPDX-License-Identifier: Apache-2.0
 *
 * A test of the tester: kernels that are wrong in one way each, and what it must say about them.
 */
#include "tester.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef void copy_fn(float *out, const float *x, int64_t n);

static void copy(float *out, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i];
}

static void reads_past(float *out, const float *x, int64_t n) {
    copy(out, x, n);
    volatile float next = x[n];
    (void)next;
}

static void reads_before(float *out, const float *x, int64_t n) {
    volatile float last = x[-1];
    (void)last;
    copy(out, x, n);
}

static void writes_past(float *out, const float *x, int64_t n) {
    copy(out, x, n);
    out[n] = 1.0f;
}

/* Into the padding that alignment leaves, where no page protects. */
static void writes_padding(float *out, const float *x, int64_t n) {
    copy(out, x, n);
    memset(out + n, 0, 1);
}

static void writes_input(float *out, const float *x, int64_t n) {
    copy(out, x, n);
    union {
        const float *read;
        float *write;
    } input = {.read = x};
    volatile float *first = input.write;
    *first = 1.0f;
}

static void leaves_last(float *out, const float *x, int64_t n) {
    copy(out, x, n - 1);
}

static void is_off(float *out, const float *x, int64_t n) {
    copy(out, x, n);
    out[n / 2] = nextafterf(x[n / 2], 10.0f);
}

static void loses_sign_of_zero(float *out, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = x[i] + 0.0f;
}

static void is_unknown(float *out, const float *x, int64_t n) {
    copy(out, x, n);
    raise(SIGILL);
}

static const struct {
    const char *name;
    copy_fn *function;
    const char *says; /* part of the line; NULL: passes */
} kernels[] = {
    {"copy", copy, NULL},
    {"reads_past", reads_past, "SIGSEGV, 1 bytes past the end of x"},
    {"reads_before", reads_before, "SIGSEGV, 4 bytes before x"},
    {"writes_past", writes_past, "SIGSEGV, 1 bytes past the end of out"},
    {"writes_padding", writes_padding, "wrote 1 bytes past the end of padded"},
    {"writes_input", writes_input, "writing to x, which is an input"},
    {"leaves_last", leaves_last, "nan, not"},
    {"is_off", is_off, "off by"},
    {"loses_sign_of_zero", loses_sign_of_zero, "out[0] is 0x0p+0, not -0x0p+0"},
    {"is_unknown", is_unknown, "SIGILL"},
};

static void check_copy(tester *t, const void *arg) {
    copy_fn *const *function = arg;
    enum { N = 13 };
    double want[N], bound[N] = {0};
    float *x = tester_buffer(t, "x", N * sizeof(float), sizeof(float));
    float *out = tester_buffer(t, "out", N * sizeof(float), sizeof(float));
    tester_fill_f32(t, x, N, TESTER_FILL_NORMAL);
    x[0] = -0.0f;
    for (int i = 0; i < N; i++)
        want[i] = (double)x[i];
    tester_seal(t, x);
    if (*function == writes_padding) out = tester_buffer(t, "padded", N * sizeof(float), 64);
    (*function)(out, x, N);
    tester_near_f32(t, "out", out, want, bound, N);
    tester_equal_f32(t, "out", out, x, N);
}

static void check_all(tester *t) {
    for (size_t i = 0; i < OCTAVO_COUNT(kernels); i++) {
        copy_fn *function = kernels[i].function;
        tester_check(t, kernels[i].name, (tester_function *)function, check_copy, &function);
    }
}

/* Runs one kernel with standard output in `text`; the exit status. */
static int run(const char *name, char *text, size_t bytes) {
    static const tester_client clients[] = {{"faults", check_all}};
    char filter[64];
    snprintf(filter, sizeof filter, "faults/%s", name);
    char program[] = "check", option1[] = "--filter", option2[] = "--isa", scalar[] = "scalar";
    char *argv[] = {program, option1, filter, option2, scalar, NULL};
    FILE *file = tmpfile();
    fflush(stdout);
    int terminal = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    int status = tester_main(5, argv, clients, 1);
    fflush(stdout);
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
    rewind(file);
    size_t length = fread(text, 1, bytes - 1, file);
    text[length] = '\0';
    fclose(file);
    return status;
}

int main(void) {
    int n_wrong = 0;
    for (size_t i = 0; i < OCTAVO_COUNT(kernels); i++) {
        char text[2048];
        int status = run(kernels[i].name, text, sizeof text);
        bool is_right =
            kernels[i].says ? status == 1 && strstr(text, kernels[i].says) != NULL : status == 0;
        printf("%s %s: exit status %d\n%s", is_right ? "ok  " : "FAIL", kernels[i].name, status,
               is_right ? "" : text);
        n_wrong += !is_right;
    }
    return n_wrong > 0;
}
