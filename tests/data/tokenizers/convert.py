#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turn a folder of Hugging Face tokenizer files into the arrays that the tests read.

    convert.py SOURCE/NAME... : writes NAME/vocab.json and copies NAME/encode.jsonl, NAME/stream.jsonl

SOURCE/NAME holds tokenizer.json, tokenizer_config.json, for SentencePiece also tokenizer.model, and
the goldens. For `wordpiece_bert` and `spm_t5` (without SOURCE: they are here) it writes vocab.json as GGUF files have
such vocabularies.
"""
import base64
import json
import os
import shutil
import struct
import sys

PRE = {"bpe_gpt2": "gpt-2", "bpe_llama3": "llama-bpe", "bpe_qwen2": "qwen2"}
CONTROL, USER, UNKNOWN = 3, 4, 2


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def scores_and_types(path):
    """Of the pieces (field 1) of a SentencePiece model: 2 is the score, 3 the type, normal if absent."""
    with open(path, "rb") as f:
        pieces = [dict(fields(piece)) for number, piece in fields(f.read()) if number == 1]
    return [struct.unpack("<f", p[2])[0] for p in pieces], [p.get(3, 1) for p in pieces]


def added_flags(token):
    return (token["lstrip"] * 1 + token["rstrip"] * 2 + token["single_word"] * 4 + token["normalized"] * 8)


def convert(source):
    name = os.path.basename(os.path.normpath(source))
    with open(os.path.join(source, "tokenizer.json"), encoding="utf-8") as f:
        j = json.load(f)
    with open(os.path.join(source, "tokenizer_config.json"), encoding="utf-8") as f:
        config = json.load(f)
    ids = dict(j["model"]["vocab"])
    for token in j["added_tokens"]:
        ids[token["content"]] = token["id"]
    n = max(ids.values()) + 1
    tokens = [""] * n
    for text, i in ids.items():
        tokens[i] = text
    out = {"model": "gpt2" if name in PRE else "llama", "tokens": tokens, "types": [1] * n}
    if name in PRE:
        out["pre"] = PRE[name]
        out["merges"] = [m if isinstance(m, str) else " ".join(m) for m in j["model"]["merges"]]
    else:
        scores, types = scores_and_types(os.path.join(source, "tokenizer.model"))
        out["scores"] = scores + [-1000.0] * (n - len(scores))
        out["types"] = types + [1] * (n - len(types))
        out["unk"] = out["types"].index(UNKNOWN)
        out["add_space_prefix"] = "Prepend" in json.dumps(j["normalizer"])
    flags = {}
    for token in j["added_tokens"]:
        out["types"][token["id"]] = CONTROL if token["special"] else USER
        if added_flags(token):
            flags[str(token["id"])] = added_flags(token)
    out["added_flags"] = flags
    for key in ("bos", "eos"):
        text = config.get(key + "_token")
        out[key] = ids[text] if text else -1
    out["add_bos"] = "TemplateProcessing" in json.dumps(j["post_processor"])
    os.makedirs(name, exist_ok=True)
    with open(os.path.join(name, "vocab.json"), "w", encoding="ascii") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")
    for golden in ("encode.jsonl", "stream.jsonl"):
        shutil.copyfile(os.path.join(source, golden), os.path.join(name, golden))


def write(name, out):
    with open(os.path.join(name, "vocab.json"), "w", encoding="ascii") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


def convert_bert():
    """What begins a word has a mark, what goes on in one has none."""
    with open("wordpiece_bert/tokenizer.json", encoding="utf-8") as f:
        j = json.load(f)
    vocab = j["model"]["vocab"]
    special = {token["content"] for token in j["added_tokens"]}
    tokens = [t if t in special else t[2:] if t.startswith("##") else "\u2581" + t for t in sorted(vocab, key=vocab.get)]
    write("wordpiece_bert", {"model": "bert", "tokens": tokens, "types": [CONTROL if t in special else 1 for t in tokens],
                             "bos": vocab["[CLS]"], "eos": vocab["[SEP]"], "unk": vocab["[UNK]"], "add_bos": True, "add_eos": True})


def convert_t5():
    with open("spm_t5/tokenizer.model", "rb") as f:
        message = list(fields(f.read()))
    pieces = [dict(fields(piece)) for number, piece in message if number == 1]
    charsmap = dict(fields(dict(message)[3]))[2]
    scores, types = scores_and_types("spm_t5/tokenizer.model")
    write("spm_t5", {"model": "t5", "tokens": [p[1].decode() for p in pieces], "types": types, "scores": scores, "unk": 2, "eos": 1,
                     "add_space_prefix": True, "merges_spaces": True, "charsmap": base64.b64encode(charsmap).decode()})


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    for argument in sys.argv[1:]:
        {"wordpiece_bert": convert_bert, "spm_t5": convert_t5}.get(argument, lambda: convert(argument))()
