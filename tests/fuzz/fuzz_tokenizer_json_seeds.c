/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the seeds of fuzz_tokenizer_json into a folder that exists:
 * fuzz_tokenizer_json_seeds FOLDER
 */
#include "base/compiler.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ADDED                                                                                      \
    ",\"added_tokens\":[{\"id\":5,\"content\":\"<s>\",\"special\":true},{\"id\":6,\"content\":"    \
    "\"zz\",\"normalized\":true,\"lstrip\":true,\"single_word\":true}]"
#define BPE                                                                                        \
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"a\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,"         \
    "\"\\u0120\":3,\"\\u2581\":4},\"merges\":[\"a b\"]}" ADDED

int main(int argc, char **argv) {
    static const char *const seeds[] = {
        "{" BPE ",\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"decoder\":{\"type\":\"ByteLevel\"}}",
        "{" BPE ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},"
        "{\"type\":\"Prepend\",\"prepend\":\"\\u2581\"},{\"type\":\"Replace\",\"pattern\":"
        "{\"String\":\" \"},\"content\":\"\\u2581\"}]},\"decoder\":{\"type\":\"Sequence\","
        "\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\\u2581\"},\"content\":"
        "\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":"
        "\" \",\"start\":1,\"stop\":0}]}}",
        "{" BPE ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":"
        "\"\\\\s+(?!\\\\S)|[^\\\\s\\\\p{L}]+|\\\\w\"},\"behavior\":\"MergedWithNext\","
        "\"invert\":true},\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\",0],"
        "\"sep\":[\"b\",1]}}",
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":"
        "[[\"?\",0],[\"a\",-1],[\"ab\",-1.5],[\"\\u2581\",-2],[\"b\",-3]]}" ADDED
        ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\"},\"decoder\":"
        "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\"}}",
        "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"continuing_subword_prefix\":"
        "\"##\",\"vocab\":{\"?\":0,\"a\":1,\"##b\":2,\"1\":3,\"##2\":4}}" ADDED
        ",\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":"
        "\"BertPreTokenizer\"},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\"}}",
    };
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_tokenizer_json_seeds FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < OCTAVO_COUNT(seeds); i++) {
        char path[4096];
        int length = snprintf(path, sizeof(path), "%s/%zu.json", argv[1], i);
        FILE *file = length > 0 && length < (int)sizeof(path) ? fopen(path, "wb") : NULL;
        size_t size = strlen(seeds[i]) + 1; /* a zero byte, behind which a text may follow */
        bool written = file != NULL && fwrite(seeds[i], 1, size, file) == size;
        if (file != NULL && fclose(file) != 0) written = false;
        if (!written) {
            fprintf(stderr, "cannot write into %s\n", argv[1]);
            return 1;
        }
    }
    return 0;
}
