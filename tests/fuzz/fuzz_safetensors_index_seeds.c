/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the seeds of fuzz_safetensors_index into a folder that exists:
 * fuzz_safetensors_index_seeds FOLDER
 */
#include "../formats/safetensors_writer.h"
#include "base/compiler.h"

int main(int argc, char **argv) {
    static const char whole[] =
        "{\"metadata\":{\"total_size\":8},\"weight_map\":{\"a\":\"m-1.safetensors\","
        "\"b\":\"m-2.safetensors\",\"c\":\"m-1.safetensors\"}}";
    static const char *const seeds[] = {
        whole,
        "{\"weight_map\":{\"a\":\"../m.safetensors\"}}",
        "{\"weight_map\":{\"a\":\"m.bin\",\"b\":7}}",
        "{\"weight_map\":{}}",
    };
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_safetensors_index_seeds FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < OCTAVO_COUNT(seeds); i++) {
        char path[4096];
        int length = snprintf(path, sizeof(path), "%s/%zu.json", argv[1], i);
        if (length < 0 || length >= (int)sizeof(path) ||
            !safetensors_save_bytes(path, seeds[i], strlen(seeds[i]))) {
            fprintf(stderr, "cannot write into %s\n", argv[1]);
            return 1;
        }
    }
    return 0;
}
