/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the seeds of fuzz_safetensors into a folder that exists: fuzz_safetensors_seeds FOLDER
 */
#include "../formats/safetensors_writer.h"
#include "base/compiler.h"

static bool save(safetensors_writer *writer, const char *folder, const char *name) {
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/%s.safetensors", folder, name);
    bool saved = length > 0 && length < (int)sizeof(path) && safetensors_writer_save(writer, path);
    if (!saved) fprintf(stderr, "cannot write %s/%s.safetensors\n", folder, name);
    safetensors_writer_deinit(writer);
    return saved;
}

static bool save_empty(const char *folder) {
    safetensors_writer w = {0};
    return save(&w, folder, "empty");
}

static bool save_dtypes(const char *folder) {
    static const struct {
        const char *name;
        size_t bytes; /* of 8 values */
    } dtypes[] = {
        {"F64", 64},    {"F32", 32},    {"F16", 16},        {"BF16", 16},       {"F8_E4M3", 8},
        {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6},
        {"F6_E3M2", 6}, {"F4", 4},      {"C64", 64},        {"I64", 64},        {"I32", 32},
        {"I16", 16},    {"I8", 8},      {"U64", 64},        {"U32", 32},        {"U16", 16},
        {"U8", 8},      {"BOOL", 8},    {"F3_NEW", 3},
    };
    safetensors_writer w = {0};
    for (size_t i = 0; i < OCTAVO_COUNT(dtypes); i++) {
        safetensors_writer_tensor(&w, dtypes[i].name, dtypes[i].name, "[2,4]", NULL,
                                  dtypes[i].bytes);
    }
    return save(&w, folder, "dtypes");
}

static bool save_shapes(const char *folder) {
    safetensors_writer w = {.padding = 1};
    safetensors_writer_metadata(&w, "format", "pt");
    safetensors_writer_metadata(&w, "note", "a \"text\"\n");
    safetensors_writer_tensor(&w, "scalar", "F32", "[]", NULL, 4);
    safetensors_writer_tensor(&w, "none", "F32", "[3,0]", NULL, 0);
    safetensors_writer_tensor(&w, "deep", "U8", "[1,1,1,1,1,1,1,2]", NULL, 2);
    return save(&w, folder, "shapes");
}

static bool save_scales(const char *folder) {
    safetensors_writer w = {0};
    safetensors_writer_tensor(&w, "a", "F8_E4M3", "[2,3]", NULL, 6);
    safetensors_writer_tensor(&w, "a_scale", "F32", "[2,1]", NULL, 8);
    safetensors_writer_tensor(&w, "b", "F8_E5M2", "[3,129]", NULL, 387);
    safetensors_writer_tensor(&w, "b_scale_inv", "BF16", "[1,2]", NULL, 4);
    safetensors_writer_tensor(&w, "c", "F8_E4M3", "[2,1,3]", NULL, 6);
    safetensors_writer_tensor(&w, "c_scale", "F8_E8M0", "[2]", NULL, 2);
    return save(&w, folder, "scales");
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_safetensors_seeds FOLDER\n");
        return 2;
    }
    bool saved =
        save_empty(argv[1]) && save_dtypes(argv[1]) && save_shapes(argv[1]) && save_scales(argv[1]);
    return saved ? 0 : 1;
}
