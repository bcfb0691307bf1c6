/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the seeds of fuzz_tokenizer_files into a folder that exists:
 * fuzz_tokenizer_files_seeds FOLDER
 */
#include "base/compiler.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A piece of SentencePiece's file: its text, a score of -1, its type. */
#define PIECE(size, length, text, type) "\n" size "\n" length text "\x15\x00\x00\x80\xbf\x18" type

#define PIECES                                                                                     \
    PIECE("\x0e", "\x05", "<unk>", "\x02")                                                         \
    PIECE("\x0c", "\x03", "<s>", "\x03")                                                           \
    PIECE("\x0c", "\x03", "\xe2\x96\x81", "\x01")                                                  \
    PIECE("\x0a", "\x01", "a", "\x01")                                                             \
    PIECE("\x0a", "\x01", "b", "\x01")                                                             \
    PIECE("\x0b", "\x02", "ab", "\x01")                                                            \
    PIECE("\x0f", "\x06", "<0x0A>", "\x06")

/* The trainer's part with the kind of model, and the normalizer's with a space in front. */
#define ENDS(kind) "\x12\x02\x18" kind "\x1a\x04\x18\x01\x20\x01"

#define TEKKEN                                                                                     \
    "{\"config\":{\"pattern\":\"\\\\p{L}+|[^\\\\p{L}]\",\"default_vocab_size\":6,"                 \
    "\"default_num_special_tokens\":3,\"version\":\"v11\"},\"special_tokens\":[{\"rank\":1,"       \
    "\"token_str\":\"<s>\"}],\"vocab\":[{\"rank\":0,\"token_bytes\":\"YQ==\"},{\"rank\":1,"        \
    "\"token_bytes\":\"Yg==\"},{\"rank\":2,\"token_bytes\":\"YWI=\"}]}"

static bool write_seed(const char *folder, size_t i, const char *data, size_t size) {
    char path[1000];
    (void)snprintf(path, sizeof(path), "%s/seed%zu", folder, i);
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    bool is_written = fwrite(data, 1, size, file) == size;
    return fclose(file) == 0 && is_written;
}

int main(int argc, char **argv) {
    static const char unigram[] = PIECES ENDS("\x01"), bpe[] = PIECES ENDS("\x02");
    static const char tekken[] = TEKKEN;
    if (argc != 2) return 2;
    bool is_written = write_seed(argv[1], 0, unigram, sizeof(unigram) - 1) &&
                      write_seed(argv[1], 1, bpe, sizeof(bpe) - 1) &&
                      write_seed(argv[1], 2, tekken, sizeof(tekken) - 1);
    return is_written ? 0 : 1;
}
