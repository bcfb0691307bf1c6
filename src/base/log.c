/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats a line and hands it over. A sink sees one line per call: line ends inside, which may come
 * from a model file, become spaces.
 */
#include "base/log.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void write_line(const octavo_log *log, octavo_log_level level, char *line) {
    size_t length = strlen(line);
    while (length != 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) {
        line[--length] = '\0';
    }
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\n' || line[i] == '\r') line[i] = ' ';
    }
    log->write(log->cookie, level, line);
}

void octavo_log_write(const octavo_log *log, octavo_log_level level, const char *format, ...) {
    if (log == NULL || log->write == NULL || level > log->level) return;

    char small[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    if (length < 0) return;
    if ((size_t)length < sizeof(small)) {
        write_line(log, level, small);
        return;
    }

    char *large = octavo_alloc((size_t)length + 1);
    if (large == NULL) {
        write_line(log, level, small); /* its start is better than nothing */
        return;
    }
    va_start(args, format);
    (void)vsnprintf(large, (size_t)length + 1, format, args);
    va_end(args);
    write_line(log, level, large);
    octavo_free(large);
}
