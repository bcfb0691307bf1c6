/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the process's one terminal: a bar that may be on it, an interrupt that came from it.
 * Both are of the process by nature, hence the file-static variables. Only the main thread
 * draws.
 */
#include "cli/terminal.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BAR_WIDTH = 32 };
static const int64_t SHOW_AFTER_NS = 200 * 1000 * 1000, REDRAW_NS = 50 * 1000 * 1000;

static volatile int interrupted; /* set by the signal handler */
/* It writes a byte here: any thread may be the one that the signal stops, and the one that waits
 * for a key must wake up. Both -1 while interrupts are not caught. */
static int wake_fd[2] = {-1, -1};
static bool is_bar_shown;

bool octavo_terminal_is_rich(FILE *stream) {
    const char *term = getenv("TERM");
    return isatty(fileno(stream)) && term && strcmp(term, "dumb") != 0;
}

bool octavo_terminal_has_color(FILE *stream) {
    const char *no_color = getenv("NO_COLOR");
    return octavo_terminal_is_rich(stream) && !(no_color && *no_color);
}

octavo_progress octavo_progress_start(const char *what) {
    return (octavo_progress){.what = what, .start_ns = octavo_clock_ns()};
}

void octavo_terminal_clear_progress(void) {
    if (!is_bar_shown) return;
    fputs("\r\033[K", stderr);
    is_bar_shown = false;
}

static void draw_bar(const octavo_progress *progress, double share) {
    char bar[BAR_WIDTH + 1];
    int full = (int)(share * BAR_WIDTH);
    memset(bar, '#', (size_t)full);
    memset(bar + full, '.', (size_t)(BAR_WIDTH - full));
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r%s [%s] %3d%%\033[K", progress->what, bar, (int)(share * 100.0));
    fflush(stderr);
    is_bar_shown = true;
}

void octavo_progress_update(octavo_progress *progress, uint64_t done, uint64_t total) {
    int64_t now = octavo_clock_ns();
    if (!octavo_terminal_is_rich(stderr)) return;
    if (done >= total) {
        octavo_terminal_clear_progress();
        return;
    }
    if (now - progress->start_ns < SHOW_AFTER_NS || now - progress->drawn_ns < REDRAW_NS) return;
    progress->drawn_ns = now;
    draw_bar(progress, (double)done / (double)total);
}

int octavo_progress_of_load(void *cookie, uint64_t done, uint64_t total) {
    octavo_progress_update(cookie, done, total);
    return 0;
}

/* ---- interrupts ---- */

static void on_interrupt(int signal_number) {
    int saved = errno;
    (void)signal_number;
    interrupted = 1;
    /* A full pipe wakes as well as one byte more. */
    ssize_t n = write(wake_fd[1], "", 1);
    (void)n;
    errno = saved;
}

void octavo_interrupt_catch(void) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    if (pipe(wake_fd) == 0) {
        for (int i = 0; i < 2; i++) {
            (void)fcntl(wake_fd[i], F_SETFL, O_NONBLOCK);
            (void)fcntl(wake_fd[i], F_SETFD, FD_CLOEXEC);
        }
    } else {
        wake_fd[0] = wake_fd[1] = -1;
    }
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
}

void octavo_interrupt_release(void) {
    (void)signal(SIGINT, SIG_DFL);
    for (int i = 0; i < 2; i++) {
        if (wake_fd[i] >= 0) (void)close(wake_fd[i]);
        wake_fd[i] = -1;
    }
}

bool octavo_interrupt_wait(int fd) {
    struct pollfd ready[2] = {{.fd = fd, .events = POLLIN}, {.fd = wake_fd[0], .events = POLLIN}};
    while (!interrupted && poll(ready, 2, -1) < 0 && errno == EINTR)
        continue;
    return !interrupted;
}

void octavo_interrupt_clear(void) {
    char bytes[16];
    interrupted = 0;
    while (wake_fd[0] >= 0 && read(wake_fd[0], bytes, sizeof bytes) > 0)
        continue;
}

const volatile int *octavo_interrupt_flag(void) {
    return &interrupted;
}

void octavo_interrupt_die(void) {
    octavo_interrupt_release();
    (void)raise(SIGINT);
}
