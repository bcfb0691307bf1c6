/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as a GGUF file. What is accepted is walked through every getter. Seeds
 * come from fuzz_gguf_seeds.c.
 */
#include "../formats/gguf_walk.h"
#include "formats/gguf.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    octavo_gguf *gguf = NULL;
    octavo_error error = {0};
    octavo_status status = octavo_gguf_parse(data, size, "fuzz.gguf", &gguf, &error);
    if (status == OCTAVO_OK) {
        gguf_walk(gguf, size);
    } else {
        gguf_walk_check(gguf == NULL, "untouched on failure");
        gguf_walk_check(error.status == status && error.message[0] != 0, "every failure says why");
        gguf_walk_check(error.offset >= -1 && error.offset <= (int64_t)size, "offset in the file");
    }
    octavo_gguf_close(&gguf);
    return 0;
}
