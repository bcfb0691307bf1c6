/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the seeds of fuzz_rules into a folder that exists: fuzz_rules_seeds FOLDER
 */
#include "base/compiler.h"

#include <stdio.h>

typedef struct seed {
    const char *json, *mesh;
} seed;

int main(int argc, char **argv) {
    static const seed seeds[] = {
        {"{}", "model=4"},
        {"{\"sharding\":{\"sharding_strategy\":{\"tensor_parallelism\":4,\"data_parallelism\":-1}}"
         "}",
         "data=2,expert=1,seq=-1,model=4"},
        {"{\"sharding\":{\"logical_rules\":{\"all\":{\"activation_td\":[\"seq\",null],"
         "\"norm_scale\":[\"seq\"]},\"prefill\":{\"ffw_hidden_tf\":[null,[\"model\",\"expert\"]]},"
         "\"generate\":{\"logits_tv\":null}}}}",
         "seq=2"},
        {"{\"sharding\":{\"logical_rules\":{\"parts\":[{\"layers\":\"0-3,8\",\"block\":\"moe\","
         "\"all\":{\"moe_weights_edf\":[\"expert\",[],\"model\"]}},{\"block\":\"attention\"}]}}}",
         "expert=8,model=-1"},
        {"{\"sharding\":{\"default_rules\":{\"generate\":{\"query_tnh\":[\"data\",\"model\",null]}}"
         "}}",
         ""},
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < OCTAVO_COUNT(seeds); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%02zu", argv[1], i);
        FILE *file = fopen(path, "wb");
        if (file == NULL) {
            perror(path);
            return 1;
        }
        int written = fprintf(file, "%s%c%s", seeds[i].json, 0, seeds[i].mesh);
        if (fclose(file) != 0 || written < 0) {
            fprintf(stderr, "%s: not written\n", path);
            return 1;
        }
    }
    return 0;
}
