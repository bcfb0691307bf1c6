/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the seeds of fuzz_gguf into a folder that exists: fuzz_gguf_seeds FOLDER
 */
#include "../gguf_writer.h"
#include "base/compiler.h"

static bool save(gguf_writer *writer, const char *folder, const char *name) {
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/%s.gguf", folder, name);
    bool saved = length > 0 && length < (int)sizeof(path) && gguf_writer_save(writer, path);
    if (!saved) fprintf(stderr, "cannot write %s/%s.gguf\n", folder, name);
    gguf_writer_deinit(writer);
    return saved;
}

/* Each value type, alone and as an array of two, and an array of arrays. */
static bool save_values(const char *folder) {
    gguf_writer w;
    gguf_writer_init(&w, 3, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    for (int type = OCTAVO_GGUF_U8; type <= OCTAVO_GGUF_F64; type++) {
        char key[16];
        if (type == OCTAVO_GGUF_STRING || type == OCTAVO_GGUF_ARRAY) continue;
        snprintf(key, sizeof(key), "k.%d", type);
        gguf_writer_integer(&w, key, (octavo_gguf_type)type, 1);
    }
    return save(&w, folder, "values");
}

static bool save_arrays(const char *folder) {
    static const char *const words[] = {"a", "", "octavo"};
    gguf_writer w;
    gguf_writer_init(&w, 2, OCTAVO_GGUF_DEFAULT_ALIGNMENT);
    gguf_writer_strings(&w, "s", words, OCTAVO_COUNT(words));
    gguf_writer_i32s(&w, "i", (const int32_t[]){1, -2, 3}, 3);
    gguf_writer_f32s(&w, "f", (const float[]){0.5f, -1.0f}, 2);
    octavo_buffer *nested = gguf_writer_array(&w, "n", OCTAVO_GGUF_ARRAY, 2);
    gguf_put_array(nested, OCTAVO_GGUF_U8, 2);
    gguf_put(nested, 0x0201, 2);
    gguf_put_array(nested, OCTAVO_GGUF_ARRAY, 1);
    gguf_put_array(nested, OCTAVO_GGUF_STRING, 1);
    gguf_put_string(nested, "deep");
    return save(&w, folder, "arrays");
}

static bool save_tensors(const char *folder) {
    gguf_writer w;
    gguf_writer_init(&w, 3, 64);
    gguf_writer_string(&w, "general.architecture", "llama");
    gguf_writer_integer(&w, "split.count", OCTAVO_GGUF_U16, 1);
    gguf_writer_tensor(&w, "a", OCTAVO_GGML_F32, 1, (const uint64_t[]){3}, NULL, 12);
    gguf_writer_tensor(&w, "b", OCTAVO_GGML_Q4_1, 2, (const uint64_t[]){32, 2}, NULL, 40);
    gguf_writer_tensor(&w, "c", OCTAVO_GGML_F16, 4, (const uint64_t[]){2, 1, 2, 1}, NULL, 8);
    return save(&w, folder, "tensors");
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_gguf_seeds FOLDER\n");
        return 2;
    }
    bool saved = save_values(argv[1]) && save_arrays(argv[1]) && save_tensors(argv[1]);
    return saved ? 0 : 1;
}
