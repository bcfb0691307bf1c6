/* SPDX-License-Identifier: Apache-2.0
 *
 * First inputs of fuzz_attention: any bytes describe a call, so enough of them for a whole one.
 */
#include <stdint.h>
#include <stdio.h>

enum { SEEDS = 64, SIZE = 160 };

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    uint32_t state = 1;
    for (int i = 0; i < SEEDS; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/seed-%02d", argv[1], i);
        FILE *file = fopen(path, "wb");
        if (!file) return 1;
        for (int k = 0; k < SIZE; k++) {
            state = state * 1664525u + 1013904223u;
            fputc((int)(state >> 24), file);
        }
        if (fclose(file) != 0) return 1;
    }
    return 0;
}
