/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways of cutting: a few patterns each, every one over the pieces of the one before. The
 * patterns are those of the models' published tokenizer.json (Kimi K2: of its Python tokenizer);
 * which name of tokenizer.ggml.pre stands for which of them is how llama.cpp's converter uses the
 * names.
 */
#include "text/pretokenize.h"

#include "base/error.h"
#include "base/memory.h"
#include "text/tokenizer_pattern.h"

#include <string.h>

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"

/* White space that no other part of a pattern takes: a run without its last, then what is left. */
#define SPACES "\\s+(?!\\S)|\\s+"

/* Letters, numbers, others, each with a space before. */
#define GPT2 CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" SPACES

/* The later family: letters with any one character before; `digits` is how many stay together. */
#define LATER(digits)                                                                              \
    "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits                            \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|" SPACES

/* The family of o200k: words are cut where lower case turns to upper case. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(upper, lower, tail)                                                                  \
    "[^\\r\\n\\p{L}\\p{N}]?" upper "*" lower "+" tail "|[^\\r\\n\\p{L}\\p{N}]?" upper "+" lower    \
    "*" tail
#define ENDING     "(?i:" CONTRACTIONS ")?"
#define CASED_REST "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|" SPACES
#define O200K      CASED(UPPER, LOWER, ENDING) "|\\p{N}{1,3}" CASED_REST
#define TEKKEN     CASED(UPPER, LOWER, "") "|\\p{N}" CASED_REST

#define NO_HAN(class) "(?:(?!\\p{Han})" class ")"
#define KIMI                                                                                       \
    "\\p{Han}+|" CASED(NO_HAN(UPPER), NO_HAN(LOWER),                                               \
                       ENDING) "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|" SPACES

/* Letters, kanji and kana, and punctuation of DeepSeek V3, behind its numbers. */
#define DEEPSEEK3                                                                                  \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"                                       \
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|" SPACES
#define KANJI "\\x{4e00}-\\x{9fa5}"
#define KANA  "\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}"
#define CJK   "[" KANJI "\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"

/* The cased letters that DeepSeek LLM lists, which are not all there are. */
#define CASED_LETTERS                                                                              \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}"                 \
    "\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}"                          \
    "\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}"                  \
    "\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}"                         \
    "\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}"                 \
    "\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}"                 \
    "\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}"                 \
    "\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}"                            \
    "\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}"                           \
    "\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}"                 \
    "\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}"                  \
    "\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}"                   \
    "\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}"                  \
    "\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}"                  \
    "\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"                  \
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}"                 \
    "\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}"               \
    "\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}"                              \
    "\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

#define NUMBER            "\\p{N}"
#define POROUS            " ?[^(\\s|.,!?…。，、।۔،)]+"
#define ASCII_PUNCTUATION "!-/:-@\\[-`{-~"

enum { PATTERNS_MAX = 6 };

typedef struct way {
    const char *names; /* with a space before and behind each */
    const char *patterns[PATTERNS_MAX];
    octavo_pretokenizer_traits traits;
} way;

static const way ways[] = {
    {.names = " default gpt-2 phi-2 gigachat a.x-4.0 mellum exaone4 jais trillion granite-docling "
              "jina-es jina-de jina-v2-es jina-v2-de ",
     .patterns = {GPT2}},
    {.names = " olmo mpt modern-bert ", .patterns = {GPT2}, .traits = {.nfc = true}},
    {.names = " roberta-bpe jina-v1-en jina-v2-code ",
     .patterns = {GPT2},
     .traits = {.adds_bos = true, .adds_eos = true}},
    {.names = " smollm starcoder refact codeshell exaone minerva-7b mellum2 ",
     .patterns = {NUMBER, GPT2}},
    {.names = " command-r ", .patterns = {NUMBER, GPT2}, .traits = {.nfc = true}},
    {.names = " qwen2 megrez ", .patterns = {LATER("")}, .traits = {.nfc = true}},
    {.names = " deepseek-r1-qwen hunyuan stablelm2 solar-open grok-2 kormo f2llmv2 ",
     .patterns = {LATER("")}},
    {.names = " qwen35 ",
     .patterns = {"(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
                  " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|" SPACES},
     .traits = {.nfc = true}},
    {.names = " llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano ",
     .patterns = {LATER("{1,3}")},
     .traits = {.ignore_merges = true, .adds_bos = true}},
    {.names = " dbrx smaug-bpe chatglm-bpe glm4 ", .patterns = {LATER("{1,3}")}},
    {.names = " minicpm5 ",
     .patterns = {"\\p{N}{1,3}", LATER("+")},
     .traits = {.ignore_merges = true}},
    {.names = " gpt-4o llama4 kanana2 talkie minimax-m2 ", .patterns = {O200K}},
    {.names = " granite-embed-multi-97m ", .patterns = {O200K}, .traits = {.ignore_merges = true}},
    {.names = " tekken ",
     .patterns = {TEKKEN},
     .traits = {.ignore_merges = true, .adds_bos = true}},
    {.names = " kimi-k2 ", .patterns = {KIMI}, .traits = {.ignore_merges = true, .ranked = true}},
    {.names = " tiny_aya cohere2moe ",
     .patterns = {"\\p{Nd}{1,3}(?=(?:\\p{Nd}{3})*(?!\\w))", O200K}},
    {.names = " youtu ",
     .patterns =
         {"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[" KANJI
              KANA "]+",
          CASED(UPPER, LOWER, ENDING) "|\\p{N}" CASED_REST},
     .traits = {.ignore_merges = true}},
    {.names = " deepseek-llm ",
     .patterns = {"[\\r\\n]", "\\s?[" CASED_LETTERS "]+", "\\s?[!-/:-~！-／：-～‘-‟　-。]+",
                  "\\s+$", CJK, "\\p{N}+"}},
    {.names = " deepseek-coder ",
     .patterns = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK, NUMBER}},
    {.names = " deepseek-v3 hunyuan-dense joyai-llm ",
     .patterns = {"\\p{N}{1,3}", "[" KANJI KANA "]+", DEEPSEEK3}},
    {.names = " falcon ", .patterns = {"[\\p{P}" ASCII_PUNCTUATION "]+", GPT2, "[0-9][0-9][0-9]"}},
    {.names = " bloom poro-chat gpt3-finnish ", .patterns = {POROUS}},
    {.names = " viking ", .patterns = {POROUS, NUMBER}},
    {.names = " superbpe ", .patterns = {"\\p{N}+", "(?=(\\p{Nd}{3})+(?!\\p{Nd}))"}},
    {.names = " bailingmoe bailingmoe2 llada-moe ",
     .patterns = {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}|"
                  " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|" SPACES}},
    {.names = " seed-coder ",
     .patterns = {"(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
                  " ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|" SPACES}},
    {.names = " exaone-moe ",
     .patterns = {"(?i:" CONTRACTIONS
                  ")|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+"
                  "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|" SPACES}},
    {.names = " chameleon ",
     .patterns = {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )",
                  NUMBER, "[\\p{P}" ASCII_PUNCTUATION "]", GPT2},
     .traits = {.adds_bos = true}},
};

struct octavo_pretokenizer {
    octavo_pattern patterns[PATTERNS_MAX];
    size_t n_patterns;
};

/* Whether a name stands in a list of them. */
static bool is_among(const char *names, const char *name) {
    size_t length = strlen(name);
    if (length == 0 || strchr(name, ' ') != NULL) return false;
    for (const char *at = names; (at = strstr(at, name)) != NULL; at++)
        if (at[-1] == ' ' && at[length] == ' ') return true;
    return false;
}

static octavo_status find_way(const char *name, const way **found, octavo_error *error) {
    for (size_t i = 0; i < OCTAVO_COUNT(ways); i++)
        if (is_among(ways[i].names, name)) {
            *found = &ways[i];
            return OCTAVO_OK;
        }
    return octavo_fail(error, OCTAVO_ERROR_UNSUPPORTED,
                       "pre-tokenizer (tokenizer.ggml.pre = %.60s): this build does not know it, "
                       "and without it text would be cut wrongly; give the model's folder with its "
                       "tokenizer.json, or a file that names one of docs/formats.md, such as "
                       "gpt-2, llama-bpe, qwen2, gpt-4o, deepseek-v3",
                       name);
}

bool octavo_pretokenizer_name(size_t i, char name[OCTAVO_PRETOKENIZER_NAME_SIZE]) {
    if (i >= OCTAVO_COUNT(ways)) return false;
    const char *first = ways[i].names + 1;
    if (strncmp(first, "default ", 8) == 0) first += 8; /* says the least */
    const size_t length = strcspn(first, " ");
    octavo_assert(length < OCTAVO_PRETOKENIZER_NAME_SIZE);
    memcpy(name, first, length);
    name[length] = 0;
    return true;
}

octavo_status octavo_pretokenizer_find(const char *name, octavo_pretokenizer_traits *traits,
                                       octavo_error *error) {
    const way *found = NULL;
    octavo_status status = find_way(name, &found, error);
    if (status == OCTAVO_OK) *traits = found->traits;
    return status;
}

octavo_status octavo_pretokenizer_create(const char *name, octavo_pretokenizer **pretokenizer,
                                         octavo_pretokenizer_traits *traits, octavo_error *error) {
    const way *found = NULL;
    octavo_status status = find_way(name, &found, error);
    if (status != OCTAVO_OK) return status;
    octavo_pretokenizer *made = octavo_alloc_zero(1, sizeof(*made));
    if (made == NULL) return octavo_fail_memory(error, "pre-tokenizer", sizeof(*made));
    for (size_t i = 0; i < PATTERNS_MAX && found->patterns[i] != NULL && !status; i++) {
        octavo_text text = {found->patterns[i], strlen(found->patterns[i])};
        status = octavo_pattern_regex(&made->patterns[made->n_patterns++], text, error);
    }
    if (status == OCTAVO_OK) {
        *traits = found->traits;
        *pretokenizer = made;
        made = NULL;
    }
    octavo_pretokenizer_destroy(&made);
    return status;
}

void octavo_pretokenizer_destroy(octavo_pretokenizer **pretokenizer) {
    if (pretokenizer == NULL || *pretokenizer == NULL) return;
    for (size_t i = 0; i < (*pretokenizer)->n_patterns; i++)
        octavo_pattern_deinit(&(*pretokenizer)->patterns[i]);
    octavo_free(*pretokenizer);
    *pretokenizer = NULL;
}

/* One pattern over one text; what it cuts goes on to the next. */
typedef struct cutter {
    const octavo_pretokenizer *pretokenizer;
    size_t at; /* of the pattern */
    octavo_piece_sink *sink;
    void *cookie;
} cutter;

static octavo_status take_span(void *cookie, const char *text, size_t begin, size_t end,
                               bool is_match, octavo_error *error) {
    const cutter *cut = cookie;
    (void)is_match;
    if (begin == end) return OCTAVO_OK;
    if (cut->at + 1 == cut->pretokenizer->n_patterns)
        return cut->sink(cut->cookie, text + begin, end - begin, error);
    cutter next = *cut;
    next.at++;
    return octavo_pattern_run(&cut->pretokenizer->patterns[next.at], text + begin, end - begin,
                              take_span, &next, error);
}

octavo_status octavo_pretokenizer_run(const octavo_pretokenizer *pretokenizer, const char *text,
                                      size_t length, octavo_piece_sink *sink, void *cookie,
                                      octavo_error *error) {
    cutter cut = {.pretokenizer = pretokenizer, .sink = sink, .cookie = cookie};
    return octavo_pattern_run(&pretokenizer->patterns[0], text, length, take_span, &cut, error);
}
