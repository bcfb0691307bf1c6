# SPDX-License-Identifier: Apache-2.0
"""Random ragged batches of everything that a call can say, against the float64 oracle.

OCTAVO_EXAMPLES asks for so many batches of each test, other ones each time.
"""

import os

import numpy as np
import octavo
import pytest
import rpa_oracle as oracle
from batches import bits, compare, ragged

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

SETTINGS = hypothesis.settings(
    max_examples=int(os.environ.get("OCTAVO_EXAMPLES", 150)),
    deadline=None,
    derandomize="OCTAVO_EXAMPLES" not in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)


def lengths(draw, most=90):
    """Up to five sequences: (new tokens, length with them)."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 24), st.integers(0, most)), min_size=1, max_size=5))
    return [(new, new + old) for new, old in pairs]


def shapes(draw):
    hkv = draw(st.sampled_from([1, 2, 3, 5]))
    return {
        "page_size": draw(st.sampled_from([1, 2, 3, 8, 16, 33])),
        "heads": (hkv * draw(st.sampled_from([1, 2, 3, 7])), hkv),
        "head_dim": draw(st.sampled_from([1, 3, 16, 33, 64, 80, 128, 130])),
        "q_dtype": draw(st.sampled_from(oracle.FLOATS)),
        "kv_dtype": draw(st.sampled_from([*oracle.FLOATS, *oracle.NARROW])),
    }


def maybe(draw, strategy):
    return draw(st.one_of(st.none(), strategy))


def per_head(draw, n, low, high):
    values = maybe(draw, st.lists(st.floats(low, high, width=16), min_size=n, max_size=n))
    return None if values is None else np.array(values, np.float32)


@st.composite
def calls(draw):
    """(arrays, params) of a valid call."""
    shape = shapes(draw)
    hq, hkv = shape["heads"]
    type = draw(st.sampled_from(["decoder", "decoder", "encoder", "encoder_decoder"]))
    params = {
        "type": type,
        "softmax_scale": draw(st.sampled_from([1.0, 0.25])) / np.sqrt(shape["head_dim"]),
        "attention_sink": per_head(draw, hq, -4, 4),
        "logits_soft_cap": maybe(draw, st.sampled_from([0.5, 30.0, -50.0])),
        "q_scale": maybe(draw, st.sampled_from([0.05, 1.0])),
        "k_scale": maybe(draw, st.sampled_from([0.5, 1.25])),
        "v_scale": maybe(draw, st.sampled_from([0.5, 2.0])),
        "k_scales": per_head(draw, hkv, 0.5, 2),
        "v_scales": per_head(draw, hkv, 0.5, 2),
        "update_kv_cache": draw(st.integers(0, 4)) > 0,
        "precision": draw(st.sampled_from(["strict", "strict", "bf16"])),
    }
    if type != "encoder_decoder":
        params["sliding_window"] = maybe(draw, st.sampled_from([1, 5, 64, 10**6]))
        params["chunk_size"] = maybe(draw, st.sampled_from([1, 7, 32, 10**6]))
        params["alibi_slopes"] = per_head(draw, hq, 0, 0.5)
    if draw(st.integers(0, 3)) == 0:
        params["output_dtype"] = draw(st.sampled_from(oracle.NARROW))
        params["output_scale"] = draw(st.sampled_from([0.01, 0.5, 3.0]))
    scaled = all(params[k] is not None or params[k + "s"] is not None for k in ("k_scale", "v_scale"))
    if scaled and draw(st.booleans()):
        shape["new_dtype"] = shape["q_dtype"]
    sizes = lengths(draw)
    cross = None
    if type == "encoder_decoder":
        cross = [draw(st.integers(0, kv)) for _, kv in sizes]
    arrays = ragged(
        draw(st.integers(0, 2**32 - 1)),
        lengths=sizes,
        cross=cross,
        filled=not params["update_kv_cache"],
        **shape,
    )
    d0 = draw(st.integers(0, len(sizes)))
    arrays["distribution"][:2] = d0, draw(st.integers(d0, len(sizes)))
    return arrays, params


@SETTINGS
@hypothesis.given(calls())
def test_against_oracle(call):
    arrays, params = call
    want = oracle.attention(**arrays, **params)
    got = octavo.ragged_page_attention_v3(**arrays, **params)
    compare(got, want)
    live = arrays["query_start_loc"][arrays["distribution"][2]]
    assert not bits(got[0][live:]).any(), "rows of no sequence are not 0"


@SETTINGS
@hypothesis.given(calls(), st.sampled_from([1, 2, 5]), st.booleans())
def test_bits_do_not_depend(call, threads, halve):
    """Not on threads, tuning or the batch: each sequence alone gives its rows again."""
    arrays, params = call
    output, cache = octavo.ragged_page_attention_v3(**arrays, **params)
    context = octavo.AttentionContext(threads)
    tuning = {"num_kv_pages_per_block": 3, "num_queries_per_block": 2, "chunk_prefill_size": 5}
    again, cache_again = octavo.ragged_page_attention_v3(
        **arrays, **params, **(tuning if halve else {}), context=context
    )
    assert np.array_equal(bits(output), bits(again)) and np.array_equal(bits(cache), bits(cache_again))
    per_seq = len(arrays["block_tables"]) // len(arrays["kv_lens"])
    for i in range(arrays["distribution"][2]):
        alone = dict(arrays)
        for name in ("query_start_loc", "key_start_loc"):
            if name in arrays:
                alone[name] = arrays[name][i : i + 2]
        alone["kv_lens"] = arrays["kv_lens"][i : i + 1]
        alone["block_tables"] = arrays["block_tables"][i * per_seq : (i + 1) * per_seq]
        alone["distribution"] = np.array([0, 0, 1], np.int32)
        rows = slice(*alone["query_start_loc"])
        one, _ = octavo.ragged_page_attention_v3(**alone, **params)
        assert np.array_equal(bits(one[rows]), bits(output[rows]))


@SETTINGS
@hypothesis.given(st.data())
def test_prompt_in_chunks(data):
    """A prompt cut into calls at any places gives the bits of one call."""
    shape = shapes(data.draw)
    window = maybe(data.draw, st.sampled_from([1, 9, 64]))
    prompt = data.draw(st.integers(1, 70))
    cuts = sorted({0, prompt, *data.draw(st.lists(st.integers(0, prompt), max_size=4))})
    arrays = ragged(7, lengths=[(prompt, prompt)], spare_rows=0, spare_seqs=0, **shape)
    whole, cache = octavo.ragged_page_attention_v3(**arrays, sliding_window=window)
    parts, growing = [], arrays["kv_cache"]
    for begin, end in zip(cuts, cuts[1:]):
        piece = {name: arrays[name][begin:end] for name in ("queries", "keys", "values")}
        output, growing = octavo.ragged_page_attention_v3(
            **{
                **arrays,
                **piece,
                "kv_cache": growing,
                "kv_lens": np.array([end], np.int32),
                "query_start_loc": np.array([0, end - begin], np.int32),
            },
            sliding_window=window,
        )
        parts.append(output)
    assert np.array_equal(bits(np.concatenate(parts)), bits(whole))
    assert np.array_equal(bits(growing), bits(cache))


MUTATIONS = {
    "softmax_scale": 0.1251,
    "sliding_window": 31,
    "logits_soft_cap": 2.99,
    "chunk_size": 15,
    "alibi_slopes": np.float32([0.1, 0.2, 0.3, 0.401]),
    "attention_sink": np.float32([1, 2, 3, -1.01]),
    "k_scales": np.float32([1, 1.101]),
    "v_scales": np.float32([1, 0.901]),
    "q_scale": 0.3,
    "precision": "bf16",
    "type": "encoder",
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_comparison_sees(name):
    """A slightly different call is not taken for the right one."""
    kv_dtype = "bfloat16" if name == "q_scale" else "float32"
    arrays = ragged(
        1,
        lengths=[(3, 40), (1, 90), (20, 20)],
        page_size=8,
        heads=(4, 2),
        head_dim=64,
        kv_dtype=kv_dtype,
    )
    params = {
        "softmax_scale": 0.125,
        "sliding_window": 30,
        "logits_soft_cap": 3.0,
        "chunk_size": 16,
        "alibi_slopes": np.float32([0.1, 0.2, 0.3, 0.4]),
        "attention_sink": np.float32([1, 2, 3, -1]),
        "k_scales": np.float32([1, 1.1]),
        "v_scales": np.float32([1, 0.9]),
    }
    if name in ("sliding_window", "type"):
        del params["chunk_size"]
    want = oracle.attention(**arrays, **params)
    compare(octavo.ragged_page_attention_v3(**arrays, **params), want)
    if name == "type":  # the other mask would read what nobody has written as NaN: give it numbers
        arrays["kv_cache"] = np.nan_to_num(arrays["kv_cache"])
    got = octavo.ragged_page_attention_v3(**arrays, **{**params, name: MUTATIONS[name]})
    with pytest.raises(AssertionError, match="at "):
        compare((got[0], want[1]), want)
