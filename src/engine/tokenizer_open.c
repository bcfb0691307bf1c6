/* SPDX-License-Identifier: Apache-2.0
 *
 * A tokenizer straight from a model file.
 */
#include "base/error.h"
#include "engine/vocab_gguf.h"

#include "octavo/tokenizer.h"

octavo_status octavo_tokenizer_open(const char *path, octavo_tokenizer **tokenizer,
                                    octavo_error *error) {
    if (path == NULL || tokenizer == NULL)
        return octavo_fail(error, OCTAVO_ERROR_INVALID, "tokenizer: an argument is NULL");
    octavo_gguf *gguf = NULL;
    octavo_arena arena = {0};
    octavo_vocab vocab = OCTAVO_VOCAB_INIT;
    octavo_status status = octavo_gguf_open(path, &gguf, error);
    if (status == OCTAVO_OK) status = octavo_vocab_from_gguf(gguf, &arena, &vocab, error);
    if (status == OCTAVO_OK) status = octavo_tokenizer_create(&vocab, tokenizer, error);
    octavo_arena_deinit(&arena);
    octavo_gguf_close(&gguf);
    return status;
}
