/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as a safetensors file. What is accepted is walked through every getter.
 * Seeds come from fuzz_safetensors_seeds.c.
 */
#include "../formats/safetensors_walk.h"
#include "formats/safetensors.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    octavo_safetensors *safetensors = NULL;
    octavo_error error = {0};
    octavo_status status =
        octavo_safetensors_parse(data, size, "fuzz.safetensors", &safetensors, &error);
    if (status == OCTAVO_OK) {
        safetensors_walk(safetensors, size);
    } else {
        safetensors_walk_check(safetensors == NULL, "untouched on failure");
        safetensors_walk_check(error.status == status && error.message[0] != 0,
                               "every failure says why");
        safetensors_walk_check(error.offset >= -1 && error.offset <= (int64_t)size,
                               "offset in the file");
    }
    octavo_safetensors_close(&safetensors);
    return 0;
}
