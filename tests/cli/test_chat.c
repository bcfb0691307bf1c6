/* SPDX-License-Identifier: Apache-2.0
 *
 * The chat on a pseudo-terminal: two turns, Ctrl-C during an answer and at the prompt, Ctrl-D.
 */
#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { WAIT_MS = 20000, SCREEN_BYTES = 1 << 18 };

/* A command on a terminal of its own. */
typedef struct terminal {
    int fd;
    pid_t child;
    char *screen; /* [SCREEN_BYTES] all that was written, terminated */
    size_t n_seen;
    size_t n_read; /* what await has gone past */
} terminal;

static terminal open_terminal(const char *const *argv) {
    terminal t = {.fd = posix_openpt(O_RDWR | O_NOCTTY)};
    assert_true(t.fd >= 0);
    assert_int_equal(grantpt(t.fd), 0);
    assert_int_equal(unlockpt(t.fd), 0);
    t.screen = calloc(SCREEN_BYTES, 1);
    assert_non_null(t.screen);
    t.child = fork();
    assert_true(t.child >= 0);
    if (t.child > 0) return t;

    union {
        const char *const *in;
        char *const *out;
    } arguments = {.in = argv};
    setsid();
    int side = open(ptsname(t.fd), O_RDWR);
    if (side < 0 || ioctl(side, TIOCSCTTY, 0) < 0) _exit(126);
    /* What is echoed is then the line editor's, never the terminal's own. */
    struct termios modes;
    if (tcgetattr(side, &modes) < 0) _exit(126);
    modes.c_lflag &= (tcflag_t)~ECHO;
    (void)tcsetattr(side, TCSANOW, &modes);
    dup2(side, STDIN_FILENO);
    dup2(side, STDOUT_FILENO);
    dup2(side, STDERR_FILENO);
    close(t.fd);
    setenv("TERM", "vt100", 1);
    setenv("NO_COLOR", "1", 1);
    setenv("HOME", "/nonexistent", 1);
    execv(argv[0], arguments.out);
    _exit(127);
}

/* Reads what there is now, or comes next. */
static void look(terminal *t, const char *wanted) {
    struct pollfd ready = {.fd = t->fd, .events = POLLIN};
    ssize_t n = -1;
    if (poll(&ready, 1, WAIT_MS) > 0)
        n = read(t->fd, t->screen + t->n_seen, SCREEN_BYTES - 1 - t->n_seen);
    if (n <= 0) {
        kill(t->child, SIGKILL);
        fail_msg("no '%s' came; the screen:\n%s", wanted, t->screen);
    }
    /* Zeros would hide what comes after them. */
    for (ssize_t i = 0; i < n; i++)
        if (t->screen[t->n_seen + (size_t)i] == '\0') t->screen[t->n_seen + (size_t)i] = '?';
    t->n_seen += (size_t)n;
}

/* Reads until `text` has come after what was awaited before. */
static void await(terminal *t, const char *text) {
    char *found;
    while (!(found = strstr(t->screen + t->n_read, text)))
        look(t, text);
    t->n_read = (size_t)(found - t->screen) + strlen(text);
}

static void type(terminal *t, const char *text) {
    assert_int_equal(write(t->fd, text, strlen(text)), strlen(text));
}

/* Waits for the end; returns the exit status. */
static int close_terminal(terminal *t) {
    int status;
    char rest[4096];
    while (read(t->fd, rest, sizeof rest) > 0)
        continue;
    assert_int_equal(waitpid(t->child, &status, 0), t->child);
    close(t->fd);
    free(t->screen);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define CHAT(...) open_terminal((const char *const[]){OCTAVO_COMMAND, "run", __VA_ARGS__, NULL})

static void test_turns(void **state) {
    (void)state;
    terminal t = CHAT(TINY_QWEN2, "-n", "8", "--ignore-eos", "--log-level", "info");
    await(&t, "> ");
    type(&t, "Hello\r");
    await(&t, "0 of them known");
    await(&t, "answer: 8 tokens");
    await(&t, "> ");
    type(&t, "More\r");
    /* The second prompt begins with the first, which is in the cache already. */
    await(&t, " of them known");
    assert_null(strstr(t.screen + t.n_read - 32, " 0 of them known"));
    await(&t, "answer: 8 tokens");
    await(&t, "> ");
    type(&t, "/clear\r");
    await(&t, "> ");
    type(&t, "two \\\rlines\r");
    await(&t, ". ");
    await(&t, "answer: 8 tokens");
    await(&t, "> ");
    type(&t, "\004");
    assert_int_equal(close_terminal(&t), 0);
}

static void test_interrupts(void **state) {
    (void)state;
    /* Slow enough to be interrupted: 500 tokens by the plainest kernels. */
    terminal t = CHAT(TINY_GEMMA3, "--raw", "--ignore-eos", "-n", "0", "--log-level", "info",
                      "--threads", "1", "--isa", "scalar", "--precision", "exact");
    await(&t, "> ");
    type(&t, "go on\r");
    await(&t, "\n");
    while (t.n_seen < t.n_read + 8)
        look(&t, "an answer");
    type(&t, "\003"); /* stops the answer, not the chat */
    await(&t, "answer: ");
    await(&t, " tokens");
    assert_true(atoi(strstr(t.screen, "answer: ") + strlen("answer: ")) < 480);
    await(&t, "> ");
    type(&t, "half a line");
    await(&t, "half a line");
    type(&t, "\003"); /* drops the line */
    await(&t, "> ");
    type(&t, "\003");
    await(&t, "Ctrl-C again");
    await(&t, "> ");
    type(&t, "\003");
    assert_int_equal(close_terminal(&t), 0);
}

/* A message that is too long is refused; the chat goes on without it. */
static void test_refused_message(void **state) {
    (void)state;
    terminal t = CHAT(TINY_QWEN2, "-n", "4", "--context", "32", "--ignore-eos");
    await(&t, "> ");
    type(&t, "one two three four five six seven eight nine ten eleven twelve thirteen\r");
    await(&t, "octavo: error: prompt (");
    await(&t, "> ");
    type(&t, "Hi\r");
    await(&t, "cut after 4 tokens");
    await(&t, "> ");
    type(&t, "/exit\r");
    assert_int_equal(close_terminal(&t), 0);
}

static bool has_terminals(void) {
    int fd = posix_openpt(O_RDWR | O_NOCTTY);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

int main(void) {
    if (!has_terminals()) {
        puts("skipped: the system gives no pseudo-terminal");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_interrupts),
        cmocka_unit_test(test_refused_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
