/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest client: C and C++, public headers only. Prints the library's version; fails where
 * the header that it was compiled with is of another one.
 */
#include "octavo/status.h"

#include <stdio.h>
#include <string.h>

int main(void) {
    char header[64];
    snprintf(header, sizeof header, "%d.%d.%d", OCTAVO_VERSION_MAJOR, OCTAVO_VERSION_MINOR,
             OCTAVO_VERSION_PATCH);
    puts(octavo_version());
    return strcmp(header, octavo_version()) == 0 ? 0 : 1;
}
