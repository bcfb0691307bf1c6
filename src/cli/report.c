/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors and diagnostics, one line each. Bytes that could steer a terminal never get through: a
 * message may quote a model file.
 */
#include "cli/report.h"

#include "cli/terminal.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_BYTES = 1024 };

/* One write for the whole line, so that lines of several threads do not mix. */
static void write_line(const char *label, const char *color, const char *text) {
    char line[LINE_BYTES + 64];
    bool has_color = octavo_terminal_has_color(stderr);
    octavo_terminal_clear_progress();
    int length = snprintf(line, sizeof line, "octavo: %s%s:%s %.*s", has_color ? color : "", label,
                          has_color ? "\033[0m" : "", LINE_BYTES - 1, text);
    if (length < 0) return;
    size_t start = (size_t)length - (size_t)snprintf(NULL, 0, "%.*s", LINE_BYTES - 1, text);
    for (size_t i = start; line[i]; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) line[i] = ' ';
    fprintf(stderr, "%s\n", line);
}

int octavo_cli_fail(const octavo_error *error) {
    write_line("error", "\033[1;31m", error->message);
    return OCTAVO_EXIT_FAILED;
}

int octavo_cli_usage(const char *format, ...) {
    char text[LINE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_line("error", "\033[1;31m", text);
    return OCTAVO_EXIT_USAGE;
}

int octavo_cli_exit(octavo_status status, const octavo_error *error) {
    return status == OCTAVO_OK ? OCTAVO_EXIT_DONE : octavo_cli_fail(error);
}

static void write_log(void *cookie, octavo_log_level level, const char *line) {
    static const struct {
        const char *label, *color;
    } styles[] = {
        [OCTAVO_LOG_ERROR] = {"error", "\033[1;31m"},
        [OCTAVO_LOG_WARN] = {"warning", "\033[1;33m"},
        [OCTAVO_LOG_INFO] = {"info", "\033[2m"},
        [OCTAVO_LOG_DEBUG] = {"debug", "\033[2m"},
    };
    (void)cookie;
    write_line(styles[level].label, styles[level].color, line);
}

octavo_log octavo_cli_log(octavo_log_level level) {
    return (octavo_log){.level = level, .write = write_log};
}
