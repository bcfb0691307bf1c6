"""Vocabularies of kinds that are not described by tokenizer.json, and what their own libraries make of strings.

    python make_vocabularies.py     (in this folder; needs sentencepiece 0.2 and tiktoken 0.14)

- `spm_t5`: trained here from the strings of the other folders, Unigram with a table of normalisations, spaces merged.
- `FOLDER/sentencepiece.jsonl`: `text`, `ids` without begin and end, `decode` of them, by the sentencepiece library.
- `bytes_300`: a tokenizer.json of 300 tokens, for the tiny models with as many rows, and `encode.jsonl` by the tokenizers library.
- `tekken`: the vocabulary of bpe_llama3 in the form of Mistral's later models, and `encode.jsonl` by tiktoken, which
  is what Mistral's own library encodes with.
"""
import base64
import json
import os

import sentencepiece
import tiktoken

from make_pretokenize import TEKKEN, texts

RULES = [("ﬁ", "fi"), ("ﬁn", "FIN"), ("①", "1"), ("\t", " "), ("\n", " "), ("\u00a0", " "), ("\u3000", " "), ("Ａ", "A"), ("ａ", "a"),
         ("…", "..."), ("e\u0301", "\u00e9"), ("\u200d", ""), ("가", "ga"), ("가나", "GANA")]


def strings():
    out = []
    for name in ("spm_unigram", "bpe_llama3"):
        with open(f"{name}/encode.jsonl", encoding="utf-8") as f:
            out += [json.loads(line)["text"] for line in f]
    return list(dict.fromkeys(out))[:200] + [" ﬁ ﬁn ﬁne  ", "①가나다 가 ", "\t  a\u3000\u3000b ", "e\u0301\u0301", "…", "\u200d"] + texts("sentencepiece")


def write(path, lines):
    with open(path, "w", encoding="ascii") as f:
        for line in lines:
            f.write(json.dumps(line) + "\n")


def make_t5():
    with open("rules.tsv", "w", encoding="ascii") as f:
        for a, b in RULES:
            f.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
    os.makedirs("spm_t5", exist_ok=True)
    sentences = [s.replace("\0", "") for s in strings() if 0 < len(s) < 2000]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_prefix="spm_t5/tokenizer", vocab_size=600, model_type="unigram", byte_fallback=False,
        normalization_rule_tsv="rules.tsv", add_dummy_prefix=True, remove_extra_whitespaces=True, bos_id=-1, eos_id=1, unk_id=2, pad_id=0,
        user_defined_symbols=["<extra_id_0>", "[x]"], num_threads=1, hard_vocab_limit=False, minloglevel=2)
    os.remove("rules.tsv")
    os.remove("spm_t5/tokenizer.vocab")


def make_sentencepiece():
    for name in ("spm_bpe_llama2", "spm_bpe_gemma", "spm_unigram", "spm_t5"):
        sp = sentencepiece.SentencePieceProcessor(model_file=f"{name}/tokenizer.model")
        lines = []
        for t in strings():
            ids = sp.encode(t)
            decoded = sp.decode(ids)
            if "\0" in t or sp.unk_id() in ids or name == "spm_t5" and sp.id_to_piece(ids[:2]) == ["\u2581", "\u2581"]:
                continue
            lines.append({"text": t, "ids": ids, "decode": decoded})
        write(f"{name}/sentencepiece.jsonl", lines)


def make_tekken():
    with open("bpe_llama3/tokenizer.json", encoding="utf-8") as f:
        vocab = json.load(f)["model"]["vocab"]
    table, n = {}, 0
    for b in range(256):
        printable = 33 <= b < 127 or 161 <= b and b != 173
        table[chr(b if printable else 256 + n)] = b
        n += not printable
    tokens = [bytes(table[c] for c in t) for t in sorted(vocab, key=vocab.get)]
    tokens = [bytes([b]) for b in range(256)] + [t for t in tokens if len(t) > 1]
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]"]
    used = len(tokens) - 40  # more are listed than there are
    tekken = {"config": {"pattern": TEKKEN, "num_vocab_tokens": len(tokens), "default_vocab_size": used + 10, "default_num_special_tokens": 10, "version": "v11"},
              "special_tokens": [{"rank": i, "token_str": t, "is_control": True} for i, t in enumerate(names)],
              "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": t.decode() if t.decode("utf-8", "ignore").encode() == t else None}
                        for i, t in enumerate(tokens)]}
    os.makedirs("tekken", exist_ok=True)
    with open("tekken/tekken.json", "w", encoding="ascii") as f:
        json.dump(tekken, f, separators=(",", ":"))
        f.write("\n")
    enc = tiktoken.Encoding("tekken", pat_str=TEKKEN, mergeable_ranks={t: i for i, t in enumerate(tokens[:used])}, special_tokens={})
    lines = []
    for t in strings() + ["abababababab" * 20, "a" * 200, "the the theth" * 9]:
        ids = [i + 10 for i in enc.encode(t, disallowed_special=())]
        lines.append({"text": t, "ids": ids, "decode": t})
    write("tekken/encode.jsonl", lines)


def make_bytes():
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    special = [AddedToken(t, special=True, normalized=False) for t in ("<unk>", "<s>", "</s>", "<|user|>", "<|end|>")]
    tok.train_from_iterator(strings(), trainers.BpeTrainer(vocab_size=300, special_tokens=special, show_progress=False,
                                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    os.makedirs("bytes_300", exist_ok=True)
    tok.save("bytes_300/tokenizer.json", pretty=False)
    template = ("{{ bos_token }}{% for m in messages %}<|user|>{{ m.content }}<|end|>{% endfor %}"
                "{% if add_generation_prompt %}<|user|>{% endif %}")
    with open("bytes_300/tokenizer_config.json", "w", encoding="ascii") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "chat_template": template}, f)
        f.write("\n")
    lines = [{"text": t, "ids": tok.encode(t, add_special_tokens=False).ids, "ids_special": tok.encode(t).ids} for t in strings()[:12] + ["a\0b", "\0"]]
    write("bytes_300/encode.jsonl", lines)


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    make_t5()
    make_sentencepiece()
    make_tekken()
    make_bytes()
