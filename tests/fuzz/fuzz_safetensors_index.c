/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as the index of a sharded safetensors model. Of what is accepted, each
 * file is a plain name, and each place is of a file that is listed. Seeds come from
 * fuzz_safetensors_index_seeds.c.
 */
#include "../formats/safetensors_walk.h"
#include "formats/safetensors_internal.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const octavo_safetensors_index *index) {
    safetensors_walk_check(index->n_files > 0 && index->n_files <= index->n_places, "files");
    for (size_t i = 0; i < index->n_files; i++) {
        safetensors_walk_check(strpbrk(index->files[i], "/\\") == NULL, "no way out");
        safetensors_walk_check(strcmp(index->files[i], "..") != 0, "no folder");
        safetensors_walk_check(i == 0 || strcmp(index->files[i - 1], index->files[i]) < 0,
                               "ascending and distinct");
    }
    for (size_t i = 0; i < index->n_places; i++) {
        const octavo_safetensors_place *place = &index->places[i];
        safetensors_walk_check(place->part < index->n_files, "a file of the list");
        safetensors_walk_check(strcmp(place->file, index->files[place->part]) == 0, "that file");
        safetensors_walk_check(place->tensor[0] != 0, "a name");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    octavo_safetensors_index index = {0};
    octavo_error error = {0};
    octavo_status status = octavo_safetensors_index_parse(data, size, "fuzz.json", &index, &error);
    if (status == OCTAVO_OK) {
        walk(&index);
    } else {
        safetensors_walk_check(index.n_files == 0, "untouched on failure");
        safetensors_walk_check(error.status == status && error.message[0] != 0,
                               "every failure says why");
        safetensors_walk_check(error.offset >= -1 && error.offset <= (int64_t)size,
                               "offset in the file");
    }
    octavo_safetensors_index_deinit(&index);
    return 0;
}
