/* SPDX-License-Identifier: Apache-2.0
 *
 * The command `octavo`. All it owns is the process: its locale and what standard output came to.
 */
#include "cli/commands.h"
#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Standard streams that the caller has closed are taken, lest a file that is opened later gets
 * their number and everything that is printed. Each is opened the wrong way round, so that using it
 * fails as it would have. */
static void reserve_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* A reader that went away is no failure to talk about; nor is a command's own failure to be told
 * twice. */
static int finish_output(int status) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    if (status != OCTAVO_EXIT_DONE) return status;
    if (errno != EPIPE)
        octavo_cli_usage("standard output: cannot be written: %s",
                         errno ? strerror(errno) : "an earlier write failed");
    return OCTAVO_EXIT_FAILED;
}

int main(int argc, char **argv) {
    reserve_streams();
    /* Characters are UTF-8 here, whatever the environment; numbers keep their point. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) (void)setlocale(LC_CTYPE, "C.UTF-8");
    return finish_output(octavo_commands_main(argc, argv));
}
