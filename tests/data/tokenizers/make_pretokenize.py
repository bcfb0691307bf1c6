"""Cut strings the way the reference library does, for every way of cutting that GGUF files name.

    python make_pretokenize.py > pretokenize.json
    python make_pretokenize.py patterns > patterns.json     regular expressions alone: where the dialects differ

Each entry: `name` (a value of tokenizer.ggml.pre) and `cases`, pairs of a text and its pieces. The
pre-tokenizers are built from the steps that the models' tokenizer.json have, with the reference
library (tokenizers 0.23). The strings are random, seeded, and rich in what patterns mind.
"""
import json
import random
import sys

from tokenizers import Regex
from tokenizers.pre_tokenizers import Digits, Punctuation, Sequence, Split

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
          r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
             r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CJK = "[一-龥ࠀ-一가-퟿]+"
YOUTU = O200K.replace("{1,3}", "")
POROUS = " ?[^(\\s|.,!?…。，、।۔،)]+"


def split(*patterns):
    return [Split(Regex(p), "isolated") for p in patterns]


WAYS = {
    "gpt-2": split(GPT2),
    "olmo": split(GPT2),
    "smollm": [Digits(individual_digits=True)] + split(GPT2),
    "command-r": [Digits(individual_digits=True)] + split(GPT2),
    "qwen2": split(QWEN2),
    "qwen35": split(QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]+", r"[^\s\p{L}\p{M}\p{N}]+")),
    "llama-bpe": split(LLAMA3),
    "dbrx": split(LLAMA3),
    "minicpm5": split(r"\p{N}{1,3}", LLAMA3.replace("{1,3}", "+")),
    "gpt-4o": split(O200K),
    "tekken": split(TEKKEN),
    "kimi-k2": split(KIMI),
    "tiny_aya": split(r"\d{1,3}(?=(?:\d{3})*\b)", O200K),
    "youtu": split("[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", YOUTU),
    "deepseek-coder": split("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK) + [Digits(individual_digits=True)],
    "deepseek-v3": split(r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3),
    "falcon": [Punctuation("contiguous")] + split(GPT2, "[0-9][0-9][0-9]"),
    "bloom": split(POROUS),
    "viking": split(POROUS) + [Digits(individual_digits=True)],
    "superbpe": split(r"\p{N}+", r"(?=(\d{3})+(?!\d))"),
    "bailingmoe": split(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"),
    "seed-coder": split("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
    "exaone-moe": split(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"),
    "chameleon": split("<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\t\n]|    |  )")
    + [Digits(individual_digits=True), Punctuation("isolated")] + split(GPT2),
}

ATOMS = ["a", "b", "Z", "Q", "word", "Word", "WORD", "camelCase", "HTTPServer", "é", "É", "ß", "ǅ", "ʰ", "ñ", "e\u0301", "Σ", "ж", "Ж", "中", "文字",
         "カ", "ひらがな", "한국어", "ㄱ", "ㄅ", "ع", "हि", "ไทย", "1", "22", "333", "4444", "55555", "1234567", "٣", "Ⅳ", "½", "²", "😀", "👍🏽", "\u200d",
         "'s", "'S", "'re", "'LL", "'d", "'x", "’s", ".", ",", "!", "?", "…", "。", "，", "(", ")", "[", "]", "{", "}", "<", ">", "=", "+", "-", "_", "/", "\\",
         "|", "~", "`", "^", "$", "#", "@", "&", "*", "\"", ":", ";", " ", " ", " ", "  ", "   ", "    ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000",
         "\u2028", "<sentinel:12>", "IMGIMGABZ", "“", "”", "—", "、", "〿", "！", "Ａ", "ａ", "𐐀", "𞤀", "ა", "Ა", "ƻ", "ꭰ", "\x00", "\x7f"]


def texts(seed):
    r = random.Random(seed)
    return ["".join(r.choice(ATOMS) for _ in range(r.randint(1, 24))) for _ in range(60)]


PATTERNS = [
    r"\p{N}{1,3}+", r"(?:\p{N}|a){2}+b?", r"[ab]{1,2}+", r"a{2}", r"1{2,}+2*", r"é{1,2}+", r"(a(b)?){1,2}+|c", r"{", r"x{,", r"\p{L}{2}?",
    r"[\p{L}&&[^\p{Han}]]+", r"[\p{L}&&[a-zé中]]+", r"[\p{L}&&[^\p{Lu}]]+|\d", r"[\p{L}[0-9]]+", r"[a[b[c]]d]+", r"[\w&&[^\d_]]+",
    r"\b\w+\b", r"\B.", r"\d{1,3}(?=(?:\d{3})*\b)", r"\w+|[^\w\s]+", r"\h+", r"\H+", r"[\s]+", r"\S+", r"[^\S ]+", r"(?i:É|k)+", r"[\p{Hiragana}\p{Katakana}]+|\p{Thai}+",
    r"^\s+", r"\s+$", r"(?<=a)b|(?<!a)c", r"\p{^L}+", r"[[:alpha:]]+", r"\u00e9+", r"\x{e9}|\t", r"[^\r\n\p{L}\p{N}]?+\p{L}++", r".+?(?=\s|$)", r"[a&b]+",
]


def patterns():
    out = []
    for p in PATTERNS:
        pre = Split(Regex(p), "isolated")
        extra = ["", "aaa111222", "ab12 cd_3 é", "aabbaabb", "abcabc", "éééé x{,", "&&a&b", "ßSsßÉékK"]
        out.append({"pattern": p, "cases": [[t, [x for x, _ in pre.pre_tokenize_str(t)]] for t in extra[1:] + texts(p)[:25]]})
    return out


def main():
    out = []
    if sys.argv[1:] == ["patterns"]:
        print(json.dumps(patterns(), ensure_ascii=True, separators=(",", ":")).replace('{"pattern"', '\n{"pattern"'))
        return
    for name, steps in WAYS.items():
        pre = Sequence(steps)
        cases = [[t, [p for p, _ in pre.pre_tokenize_str(t)]] for t in texts(name)]
        out.append({"name": name, "cases": cases})
    print(json.dumps(out, ensure_ascii=True, separators=(",", ":")).replace('{"name"', '\n{"name"'))


if __name__ == "__main__":
    main()
