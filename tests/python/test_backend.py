# SPDX-License-Identifier: Apache-2.0
"""The backend object: the same bits as direct calls, its caches, its errors."""

import types
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import octavo
import pytest
import rpa_oracle as oracle
from batches import bits, compare, ragged
from conftest import framework

HQ, HKV, D = 6, 2, 48
NAME = "model.layers.3.attn"
SCALE = 0.2
KV_DTYPES = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8")


def batch(seed=1, **more):
    shape = {"lengths": [(1, 20), (3, 3), (3, 11)], "page_size": 8, "heads": (HQ, HKV), "head_dim": D}
    return ragged(seed, **{**shape, **more})


def make(**more):
    return octavo.AttentionBackend(HQ, D, SCALE, HKV, **more)


def metadata_of(arrays):
    """As engines name it, with 2-D tables."""
    seqs = len(arrays["kv_lens"])
    return SimpleNamespace(
        seq_lens=arrays["kv_lens"],
        block_tables=arrays["block_tables"].reshape(seqs, -1),
        query_start_loc=arrays["query_start_loc"],
        request_distribution=arrays["distribution"],
        key_start_loc=arrays.get("key_start_loc"),
    )


def converted(metadata, convert):
    return {x: None if y is None else convert(y) for x, y in vars(metadata).items()}


def fused(arrays):
    """Query, key and value as views of the columns of one projection."""
    parts = [arrays[x].reshape(len(arrays[x]), -1) for x in ("queries", "keys", "values")]
    widths = [part.shape[1] for part in parts]
    whole = np.zeros((len(parts[0]), sum(widths) + 5), parts[0].dtype)
    views = np.split(whole[:, :-5], np.cumsum(widths)[:-1], axis=1)
    for view, part in zip(views, parts, strict=True):
        view[:] = part
    return views


def flat(x):
    return x.reshape(len(x), -1)


def forward(backend, layer, arrays, **more):
    return backend.forward(
        layer,
        flat(arrays["queries"]),
        flat(arrays["keys"]),
        flat(arrays["values"]),
        metadata_of(arrays),
        **more,
    )


def direct(arrays, **more):
    output, cache = octavo.ragged_page_attention_v3(**arrays, softmax_scale=SCALE, **more)
    return flat(output), cache


def check(arrays, options, direct_options, layer=NAME, **more):
    """One call with a backend, one without."""
    name = layer if isinstance(layer, str) else layer.layer_name
    backend = make(**options)
    cache = arrays["kv_cache"].copy()
    backend.bind_cache(name, cache)
    got = forward(backend, layer, arrays, **more)
    want, want_cache = direct(arrays, **direct_options, **more)
    assert got.shape == want.shape == (len(arrays["queries"]), HQ * D)
    assert got.dtype == want.dtype
    assert np.array_equal(bits(got), bits(want))
    assert np.array_equal(bits(cache), bits(want_cache))
    assert backend.cache(name) is cache
    return got


SLOPES = [0.5, 0.25, -0.1, 0.0, 1.0, 0.3]
SINKS = np.linspace(-1, 1, HQ)
OPTIONS = {
    "window": ({"sliding_window": 4}, {"sliding_window": 4}),
    "cap": ({"logits_soft_cap": 0.3}, {"logits_soft_cap": 0.3}),
    "alibi": ({"alibi_slopes": SLOPES}, {"alibi_slopes": np.array(SLOPES, np.float32)}),
    "sinks": ({"sinks": SINKS}, {"attention_sink": SINKS.astype(np.float32)}),
    "encoder": ({"attn_type": "encoder"}, {"type": "encoder"}),
    "encoder_only": ({"attn_type": "encoder_only"}, {"type": "encoder"}),
    "irope": ({"use_irope": True, "irope_chunk_size": 6}, {"chunk_size": 6}),
    "bf16": ({"precision": "bf16"}, {"precision": "bf16"}),
}


@pytest.mark.parametrize("which", OPTIONS)
def test_options_reach_the_call(which):
    arrays = batch(filled="encoder" in which)
    got = check(arrays, *OPTIONS[which])
    plain = make()
    plain.bind_cache(NAME, arrays["kv_cache"])
    assert not np.array_equal(got, forward(plain, NAME, arrays))


def test_chunk_without_irope_is_not_looked_at():
    check(batch(), {"irope_chunk_size": 6, "chunk_prefill_size": 4, "num_queries_per_block": 2}, {})


def test_positional_arguments_are_the_engines():
    """num_heads, head_size, scale, num_kv_heads, alibi_slopes, sliding_window, kv_cache_dtype,
    logits_soft_cap, attn_type, kv_sharing_target_layer_name, use_irope."""
    backend = octavo.AttentionBackend(
        HQ, D, SCALE, HKV, SLOPES, 4, "auto", 0.3, "decoder", None, False
    )
    arrays = batch()
    backend.bind_cache(NAME, arrays["kv_cache"].copy())
    want, _ = direct(
        arrays, alibi_slopes=np.array(SLOPES, np.float32), sliding_window=4, logits_soft_cap=0.3
    )
    assert np.array_equal(forward(backend, NAME, arrays), want)
    one = octavo.AttentionBackend(3, 8, 1.0)
    assert one.num_kv_heads == 3


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
@pytest.mark.parametrize("q_dtype", KV_DTYPES[:3])
def test_dtypes(q_dtype, kv_dtype):
    """Keys that are quantised already, and keys of the query's dtype."""
    unit = 0.03 if kv_dtype == "int8" else 0.6
    scales = {"k_scale": unit, "v_scale": unit / 2}
    layer = octavo.AttentionLayer(NAME, **scales)
    check(batch(q_dtype=q_dtype, kv_dtype=kv_dtype), {"kv_cache_dtype": kv_dtype}, scales, layer)
    check(batch(q_dtype=q_dtype, kv_dtype=kv_dtype, new_dtype=q_dtype), {}, scales, layer)


@pytest.mark.parametrize("seed", range(24))
def test_against_the_oracle(seed):
    rng = np.random.default_rng(seed)
    new = rng.integers(1, 10, rng.integers(1, 6))
    lengths = [(int(n), int(n + rng.integers(0, 40))) for n in new]
    kv_dtype = ("float32", "bfloat16", "float8_e4m3fn", "int8")[seed % 4]
    window = (None, 1, 7)[seed % 3]
    arrays = batch(seed, lengths=lengths, page_size=(1, 4, 16)[seed // 2 % 3], kv_dtype=kv_dtype)
    scales = {"k_scale": 0.05, "v_scale": 0.1}
    want = oracle.attention(**arrays, softmax_scale=SCALE, sliding_window=window, **scales)
    backend = make(sliding_window=window)
    cache = arrays["kv_cache"].copy()
    backend.bind_cache(NAME, cache)
    got = forward(backend, octavo.AttentionLayer(NAME, **scales), arrays)
    compare((got.reshape(arrays["queries"].shape), cache), want)


def test_layers_of_vllm():
    """They carry three floats, 1 where there is nothing to say."""
    layer = SimpleNamespace(
        layer_name=NAME, _q_scale_float=1.0, _k_scale_float=0.5, _v_scale_float=0.25
    )
    arrays = batch(kv_dtype="float8_e4m3fn", new_dtype="float32")
    check(arrays, {"kv_cache_dtype": "fp8"}, {"k_scale": 0.5, "v_scale": 0.25}, layer)
    check(batch(), {}, {}, layer)  # nothing is quantised, so there is nothing to scale
    layer._q_scale_float = 0.02
    check(arrays, {}, {"q_scale": 0.02, "k_scale": 0.5, "v_scale": 0.25}, layer)
    layer._q_scale_float = None
    check(arrays, {}, {"k_scale": 0.5, "v_scale": 0.25}, layer)
    arrays = batch(kv_dtype="bfloat16", new_dtype="float32")
    check(arrays, {}, {"k_scale": 0.5, "v_scale": 0.25}, layer)


def test_layers_of_our_own():
    arrays = batch()
    check(arrays, {}, {}, SimpleNamespace(layer_name=NAME))
    check(arrays, {}, {"q_scale": 1.0}, octavo.AttentionLayer(NAME, q_scale=1.0))
    check(arrays, {}, {"k_scale": 0.5}, SimpleNamespace(layer_name=NAME, k_scale=0.5))
    per_head = {
        "k_scales": np.array([0.5, 2.0], np.float32),
        "v_scales": np.array([1.5, 0.7], np.float32),
    }
    narrow = batch(kv_dtype="int8", new_dtype="float32")
    check(narrow, {"kv_cache_dtype": "int8"}, per_head, octavo.AttentionLayer(NAME, **per_head))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "int8"])
def test_narrow_output(dtype):
    check(batch(), {}, {}, output_scale=0.01, output_dtype=dtype)
    arrays = batch()
    backend = make()
    backend.bind_cache(NAME, arrays["kv_cache"].copy())
    out = np.zeros((len(arrays["queries"]), HQ * D), oracle.dtype_of(dtype))
    scale = np.float32(0.01)
    assert forward(backend, NAME, arrays, output=out, output_scale=scale) is out
    want, _ = direct(arrays, output_scale=float(scale), output_dtype=dtype)
    assert np.array_equal(bits(out), bits(want))


def test_shapes_and_strides():
    arrays = batch()
    want, want_cache = direct(arrays)
    backend = make()
    for rows in (
        fused(arrays),
        [arrays["queries"], flat(arrays["keys"]), arrays["values"]],
        [flat(arrays["queries"]), arrays["keys"], flat(arrays["values"])],
    ):
        cache = arrays["kv_cache"].copy()
        backend.bind_cache(NAME, cache)
        metadata = metadata_of(arrays)
        assert np.array_equal(backend.forward(NAME, *rows, metadata), want)
        assert np.array_equal(bits(cache), bits(want_cache))
        wide = np.full((len(want), HQ * D + 3), 7, np.float32)
        out = wide[:, : HQ * D]
        assert backend.forward(NAME, *rows, metadata, out) is out
        assert np.array_equal(out, want) and (wide[:, HQ * D :] == 7).all()
        out = np.zeros((len(want), HQ, D), np.float32)
        assert backend.forward(NAME, *rows, metadata, out) is out
        assert np.array_equal(flat(out), want)


def test_metadata_by_other_names():
    arrays = batch()
    want, _ = direct(arrays)
    fields = {x: arrays[x] for x in ("kv_lens", "block_tables", "query_start_loc", "distribution")}
    engine = {
        "seq_lens": arrays["kv_lens"],
        "block_table": metadata_of(arrays).block_tables,
        "query_start_loc": arrays["query_start_loc"],
        "request_distribution": arrays["distribution"],
        "slot_mapping": None,
    }
    rows = [flat(arrays[x]) for x in ("queries", "keys", "values")]
    for metadata in (fields, types.MappingProxyType(fields), SimpleNamespace(**fields), engine):
        backend = make()
        backend.bind_cache(NAME, arrays["kv_cache"].copy())
        assert np.array_equal(backend.forward(NAME, *rows, metadata), want)


def test_metadata_by_both_names():
    arrays = batch()
    want, _ = direct(arrays)
    rows = [flat(arrays[x]) for x in ("queries", "keys", "values")]
    first = vars(metadata_of(arrays))
    same = {
        "kv_lens": arrays["kv_lens"].copy(),
        "block_table": arrays["block_tables"],  # flat beside the 2-D one
        "distribution": arrays["distribution"],
    }
    other = {name: array.copy() for name, array in same.items()}
    for array in other.values():
        array[-1] += 1
    backend = make()
    cache = arrays["kv_cache"].copy()
    backend.bind_cache(NAME, cache)
    for metadata in ({**first, **same}, SimpleNamespace(**first, **same)):
        assert np.array_equal(backend.forward(NAME, *rows, metadata), want)
    before = cache.copy()
    for name, names in (
        ("kv_lens", "seq_lens and kv_lens"),
        ("block_table", "block_tables and block_table"),
        ("distribution", "request_distribution and distribution"),
    ):
        for wrong in (other[name], other[name][:-1]):
            with pytest.raises(ValueError, match=rf"layer {NAME}.*has both {names}, .* leave one out"):
                backend.forward(NAME, *rows, {**first, name: wrong})
    with pytest.raises(ValueError, match=r"\(kv_lens\): dtype is int64; it must be int32"):
        backend.forward(NAME, *rows, {**first, "kv_lens": arrays["kv_lens"].astype(np.int64)})
    assert np.array_equal(bits(cache), bits(before))


def test_sharing_reads_the_target():
    arrays = batch(filled=True)
    want, same = direct(arrays, update_kv_cache=False)
    backend = make(kv_sharing_target_layer_name="model.layers.1.attn")
    cache = arrays["kv_cache"].copy()
    cache.flags.writeable = False  # it is only read
    own = np.full_like(cache, 7)
    backend.bind_cache("model.layers.1.attn", cache)
    backend.bind_cache(NAME, own)
    query = flat(arrays["queries"])
    for key, value in ((None, None), (flat(arrays["keys"]), flat(arrays["values"]))):
        got = backend.forward(NAME, query, key, value, metadata_of(arrays))
        assert np.array_equal(got, want)
    assert np.array_equal(bits(cache), bits(same)) and (own == 7).all()


def test_cross_attention():
    options = {"attn_type": "encoder_decoder"}
    arrays = batch(cross=[5, 0, 11])
    check(arrays, options, {"type": "encoder_decoder"})
    arrays = batch(filled=True)
    want, _ = direct(arrays, type="encoder_decoder")
    backend = make(**options)
    cache = arrays["kv_cache"].copy()
    backend.bind_cache(NAME, cache)
    got = backend.forward(NAME, flat(arrays["queries"]), None, None, metadata_of(arrays))
    assert np.array_equal(got, want) and np.array_equal(bits(cache), bits(arrays["kv_cache"]))


def test_columns():
    """The engine's layout: a prompt, then a step over what it left in the pages."""
    arrays = batch(lengths=[(9, 9), (3, 3)], spare_seqs=0, spare_rows=0)
    pages = np.zeros((len(arrays["kv_cache"]), octavo.page_elements(np.float32, 8, HKV, D)), np.float32)
    same = pages.copy()
    layout = {"layout": "columns", "page_size": 8}
    backend = make()
    backend.bind_cache(NAME, pages, **layout)
    for lengths, starts in (([9, 3], [0, 9, 12]), ([10, 5], [0, 1, 3])):
        index = {"kv_lens": lengths, "query_start_loc": starts}
        step = {**arrays, **{x: np.array(y, np.int32) for x, y in index.items()}}
        want, _ = direct({**step, "kv_cache": same}, **layout, in_place=True)
        assert np.array_equal(forward(backend, NAME, step), want)
        assert np.array_equal(pages, same) and pages.any()


def test_bindings():
    arrays = batch()
    backend = make()
    first, second = arrays["kv_cache"].copy(), arrays["kv_cache"].copy()
    backend.bind_cache("a", first)
    backend.bind_cache("b", second)
    assert backend.layer_names == ("a", "b")
    forward(backend, "b", arrays)
    assert np.array_equal(bits(first), bits(arrays["kv_cache"]))
    assert not np.array_equal(bits(second), bits(first))
    backend.bind_cache("a", second)  # again: another one
    assert backend.cache("a") is second and backend.layer_names == ("a", "b")
    with pytest.raises(ValueError, match=r"\(layer a\): ragged paged attention \(kv_cache\)"):
        backend.bind_cache("a", first[:, :, :1])
    assert backend.cache("a") is second
    assert backend.unbind_cache("a") is second
    for use in (backend.cache, backend.unbind_cache, lambda name: forward(backend, name, arrays)):
        with pytest.raises(ValueError, match=r"\(layer a\): no cache is bound as 'a'; bound are: b;"):
            use("a")
    backend.unbind_cache("b")
    with pytest.raises(ValueError, match="bound are: none; call bind_cache"):
        backend.cache("b")
    for i in range(9):
        backend.bind_cache(f"x.{i}", first)
    with pytest.raises(ValueError, match=r"bound are: x.0, x.1, x.2, x.3 and 5 more"):
        backend.cache("x")
    assert "9 caches" in repr(backend)


@pytest.mark.parametrize(
    "options, culprit",
    [
        ({"num_heads": 0}, "num_heads"),
        ({"num_kv_heads": 4}, "num_kv_heads"),
        ({"num_kv_heads": 0}, "num_kv_heads"),
        ({"head_size": 0}, "head_size"),
        ({"head_size": 513}, "head width 513"),
        ({"scale": 0.0}, "scale"),
        ({"scale": float("nan")}, "scale"),
        ({"alibi_slopes": [1.0]}, "alibi_slopes"),
        ({"sinks": [1.0] * 7}, "sinks"),
        ({"sliding_window": 0}, "sliding_window"),
        ({"sliding_window": -3}, "sliding_window"),
        ({"logits_soft_cap": 0.0}, "logits_soft_cap"),
        ({"kv_cache_dtype": "fp9"}, "kv_cache_dtype"),
        ({"kv_cache_dtype": "int32"}, "kv_cache_dtype"),
        ({"kv_cache_dtype": None}, "kv_cache_dtype"),
        ({"attn_type": "tree"}, "attn_type"),
        ({"attn_type": 0}, "attn_type"),
        ({"precision": "fp8"}, "precision"),
        ({"use_irope": True}, "irope_chunk_size"),
        ({"use_irope": True, "irope_chunk_size": 0}, "irope_chunk_size"),
        ({"kv_sharing_target_layer_name": ""}, "layer"),
        ({"vmem_limit_bytes": 1}, "vmem_limit_bytes"),
        ({"num_queries_per_block": -1}, "num_queries_per_block"),
        ({"attn_type": "encoder_decoder", "sliding_window": 3}, "sliding_window"),
        ({"attn_type": "encoder_decoder", "alibi_slopes": SLOPES}, "alibi_slopes"),
    ],
)
def test_wrong_options(options, culprit):
    given = {"num_heads": HQ, "head_size": D, "scale": SCALE, "num_kv_heads": HKV, **options}
    with pytest.raises(ValueError, match=rf"^attention backend \(.*{culprit}"):
        octavo.AttentionBackend(**given)


@pytest.mark.parametrize(
    "name, dtype",
    [
        ("auto", None), ("float32", "float32"), ("float", "float32"), ("float16", "float16"),
        ("half", "float16"), ("bfloat16", "bfloat16"), ("fp8", "float8_e4m3fn"),
        ("fp8_e4m3", "float8_e4m3fn"), ("fp8_e5m2", "float8_e5m2"), ("int8", "int8"),
        (np.float16, "float16"), (ml_dtypes.float8_e5m2, "float8_e5m2"),
    ],
)
def test_spellings_of_dtypes(name, dtype):
    backend = make(kv_cache_dtype=name)
    for other in KV_DTYPES:
        cache = batch(kv_dtype=other)["kv_cache"]
        if dtype in (None, other):
            backend.bind_cache(NAME, cache)
        else:
            with pytest.raises(ValueError, match=f"layer {NAME}.*the cache is {other}, but kv_cache"):
                backend.bind_cache(NAME, cache)


def test_wrong_caches():
    backend = make()
    cache = batch()["kv_cache"]
    read_only = cache.copy()
    read_only.flags.writeable = False
    for wrong, text in (
        (cache[0], "kv_cache"), (cache[..., :64], "kv_cache"), (read_only, "read-only"),
        (cache.view(np.int32), "kv_cache"), (np.zeros(cache.shape), "float64"),
    ):
        with pytest.raises(ValueError, match=rf"^attention backend \(layer {NAME}\): .*{text}"):
            backend.bind_cache(NAME, wrong)
    unaligned = np.zeros(cache.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(cache.shape)
    twice = np.lib.stride_tricks.as_strided(cache, cache.shape, (4, *cache.strides[1:]))
    for wrong, text in (
        (cache[::-1], f"stride -{cache[0].size} of axis 0; it must be at least {cache[0].size}: what"),
        (cache[:, ::-1], f"stride -{cache[0, 0].size} of axis 1; it must be at least"),
        (twice, "stride 1 of axis 0; it must be at least"),
        (unaligned, "is not aligned to its elements of 4 bytes"),
    ):
        with pytest.raises(ValueError, match=rf"^attention backend \(layer {NAME}\): .*\(kv_cache\): {text}"):
            backend.bind_cache(NAME, wrong)
    with pytest.raises(ValueError, match="stride -"):  # also where it would only be read
        make(kv_sharing_target_layer_name=NAME).bind_cache(NAME, cache[::-1])
    with pytest.raises(TypeError, match=rf"^attention backend \(layer {NAME}\): .*no array"):
        backend.bind_cache(NAME, [1, 2])
    with pytest.raises(ValueError, match="layout"):
        backend.bind_cache(NAME, cache, layout="diagonals")
    for name in ("", None, 3):
        with pytest.raises(ValueError, match="is no name"):
            backend.bind_cache(name, cache)
    assert backend.layer_names == ()


@pytest.mark.parametrize(
    "name, shown",
    [
        ("a" * 200 + ".31.attn", "a" * 57 + "..." + "a" * 52 + ".31.attn"),
        ("\u00e9" * 10**6, "\u00e9" * 57 + "..." + "\u00e9" * 60),
        ("\U0001f600" * 120, "\U0001f600" * 120),
        ("line\nline\0", r"line\nline\x00"),
        ("lone \ud800", r"lone \ud800"),
    ],
    ids=range(5),
)
def test_long_names_are_readable(name, shown):
    """Messages stay short, keep both ends of a name, and can be printed."""
    arrays = batch()
    backend = make()
    said = []

    def refused(function, *arguments):
        with pytest.raises(ValueError, match="backend") as raised:
            function(*arguments)
        said.append(str(raised.value))
        return said[-1]

    text = f"attention backend (layer {shown}): "
    assert refused(forward, backend, name, arrays) == (
        f"{text}no cache is bound as '{shown}'; bound are: none; call bind_cache"
    )
    backend.bind_cache(name, arrays["kv_cache"])
    assert refused(backend.bind_cache, name, arrays["kv_cache"][0]).startswith(f"{text}ragged")
    arrays["kv_lens"][0] = -3
    assert refused(forward, backend, name, arrays).startswith(f"{text}ragged paged attention (")
    for i in range(6):
        backend.bind_cache(f"{i}{name}", arrays["kv_cache"])
    assert "and 3 more; call bind_cache" in refused(backend.cache, "other")
    backend = make(kv_sharing_target_layer_name=name)
    assert f"no cache is bound as '{shown}'" in refused(forward, backend, "other", arrays)
    for message in said:
        assert len(message) < 700
        message.encode()


def test_wrong_calls():
    arrays = batch()
    query, key, value = (flat(arrays[x]) for x in ("queries", "keys", "values"))
    metadata = vars(metadata_of(arrays))
    backend = make()
    cache = arrays["kv_cache"].copy()
    backend.bind_cache(NAME, cache)
    out = np.full((len(query), HQ * D), 7, np.float32)
    good = {
        "layer": NAME, "query": query, "key": key, "value": value, "metadata": metadata, "output": out,
        "output_scale": None,
    }
    f16 = {"key": key.astype(np.float16), "value": value.astype(np.float16)}
    too_many = octavo.AttentionLayer(NAME, k_scales=np.ones(HQ, np.float32))
    for error, text, wrong in (
        (ValueError, r"query has shape \(8, 3\); it must be \[T, 6 \* 48\]", {"query": query[:, :3]}),
        (ValueError, "query has shape", {"query": query.reshape(-1, HKV, D)}),
        (ValueError, "key has shape", {"key": query}),
        (ValueError, "value has shape", {"value": value[0]}),
        (ValueError, r"\(keys\)", {"key": key[:-1], "value": value[:-1]}),
        (ValueError, r"\(keys\)", f16),
        (TypeError, "key is None", {"key": None}),
        (TypeError, "value", {"value": 3}),
        (TypeError, "query", {"query": "rows"}),
        (ValueError, "output has shape", {"output": out[:, :5]}),
        (ValueError, r"\(output\)", {"output": out.astype(np.float16)}),
        (ValueError, r"\(output\)", {"output_scale": 0.5}),
        (ValueError, r"\(kv_lens\): sequence 1", {"seq_lens": np.array([20, 2, 11, 0], np.int32)}),
        (ValueError, "no request_distribution or distribution", {"request_distribution": None}),
        (ValueError, "no seq_lens or kv_lens", {"metadata": None}),
        (ValueError, "block_tables has 3 rows for 4", {"block_tables": metadata["block_tables"][:3]}),
        (ValueError, r"\(query_start_loc\)", {"query_start_loc": metadata["seq_lens"]}),
        (ValueError, r"\(key_start_loc\)", {"key_start_loc": metadata["query_start_loc"]}),
        (ValueError, r"\(k_scales\)", {"layer": too_many}),
    ):
        call = {**good, "metadata": {**metadata, **{x: wrong[x] for x in wrong if x in metadata}}}
        call.update({x: wrong[x] for x in wrong if x in good})
        with pytest.raises(error, match=rf"^attention backend \(layer {NAME}\): .*{text}"):
            backend.forward(**call)
    assert (out == 7).all() and np.array_equal(bits(cache), bits(arrays["kv_cache"]))
    for layer in (None, 3, SimpleNamespace(layer_name="")):
        with pytest.raises(ValueError, match="is no name"):
            backend.forward(layer, query, key, value, metadata)


@pytest.mark.parametrize("scales", [{}, {"k_scale": 0.5}, {"v_scale": 0.5}])
def test_quantising_needs_both_scales(scales):
    arrays = batch(kv_dtype="float8_e4m3fn", new_dtype="float32")
    backend = make()
    backend.bind_cache(NAME, arrays["kv_cache"])
    with pytest.raises(ValueError, match=rf"layer {NAME}.*both k_scale and v_scale"):
        forward(backend, octavo.AttentionLayer(NAME, **scales), arrays)


def test_unknown_target():
    arrays = batch()
    backend = make(kv_sharing_target_layer_name="model.layers.1.attn")
    backend.bind_cache(NAME, arrays["kv_cache"])
    with pytest.raises(ValueError, match=rf"{NAME}\): no cache is bound as 'model.layers.1.attn'"):
        forward(backend, NAME, arrays)


class OnlyDLPack:
    """An array of a library that nobody knows."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    arrays = batch()
    want, want_cache = direct(arrays)
    cache, out = arrays["kv_cache"].copy(), np.zeros_like(want)
    backend = make()
    backend.bind_cache(NAME, OnlyDLPack(cache))
    rows = [OnlyDLPack(flat(arrays[x])) for x in ("queries", "keys", "values")]
    metadata = converted(metadata_of(arrays), OnlyDLPack)
    assert np.array_equal(backend.forward(NAME, *rows, metadata), want)
    backend.forward(NAME, *rows, metadata, OnlyDLPack(out))
    assert np.array_equal(out, want) and np.array_equal(bits(cache), bits(want_cache))


def test_torch():
    torch = framework("torch")
    from octavo._arrays import to_torch

    layer = SimpleNamespace(layer_name=NAME, _k_scale_float=0.5, _v_scale_float=0.25)
    for kv_dtype, scales in (("bfloat16", {}), ("float8_e4m3fn", {"k_scale": 0.5, "v_scale": 0.25})):
        arrays = batch(q_dtype="bfloat16", kv_dtype=kv_dtype, new_dtype="bfloat16")
        slopes = np.array(SLOPES, np.float32)
        want, want_cache = direct(arrays, alibi_slopes=slopes, **scales)
        backend = make(alibi_slopes=torch.from_numpy(slopes), sliding_window=100)
        cache = to_torch(arrays["kv_cache"].copy())
        backend.bind_cache(NAME, cache)
        rows = [to_torch(x) for x in fused(arrays)]
        metadata = SimpleNamespace(**converted(metadata_of(arrays), torch.from_numpy))
        got = backend.forward(layer, *rows, metadata)
        assert got.dtype == torch.bfloat16 and got.shape == want.shape
        assert torch.equal(got.view(torch.int16), to_torch(want).view(torch.int16))
        assert np.array_equal(bits(cache.view(torch.uint8).numpy()), bits(want_cache))
        out = torch.zeros_like(got)
        assert backend.forward(layer, *rows, metadata, output=out) is out
        assert torch.equal(out, got) and backend.cache(NAME) is cache
        reader = make(alibi_slopes=slopes, sliding_window=100, kv_sharing_target_layer_name=NAME)
        reader.bind_cache(NAME, cache)
        assert torch.equal(reader.forward("other", rows[0], None, None, metadata), got) or scales


def test_jax():
    jax = framework("jax")
    arrays = batch()
    want, want_cache = direct(arrays, sliding_window=5)
    backend = make(sliding_window=5)
    cache = jax.numpy.asarray(arrays["kv_cache"])
    rows = [jax.numpy.asarray(flat(arrays[x])) for x in ("queries", "keys", "values")]
    metadata = converted(metadata_of(arrays), jax.numpy.asarray)
    backend.bind_cache(NAME, cache)
    got = backend.forward(NAME, *rows, metadata)
    assert isinstance(got, jax.Array) and np.array_equal(got, want)
    assert np.array_equal(bits(backend.cache(NAME)), bits(want_cache))
    assert np.array_equal(bits(cache), bits(arrays["kv_cache"]))  # JAX arrays do not change

    def step(cache, rows, metadata):
        mine = make(sliding_window=5)
        mine.bind_cache(NAME, cache)
        reader = make(sliding_window=5, kv_sharing_target_layer_name=NAME)
        output = mine.forward(NAME, *rows, metadata)
        reader.bind_cache(NAME, mine.cache(NAME))
        return output, reader.forward("other", rows[0], None, None, metadata), mine.cache(NAME)

    output, again, updated = jax.jit(step, donate_argnums=0)(cache, rows, metadata)
    assert np.array_equal(output, want) and np.array_equal(again, want)
    assert np.array_equal(bits(updated), bits(want_cache))
    with pytest.raises(ValueError, match=rf"layer {NAME}.*JAX arrays do not change"):
        backend.forward(NAME, *rows, metadata, output=got)
    with pytest.raises(ValueError, match=rf"layer {NAME}.*\(kv_lens\)"):
        backend.forward(NAME, *rows, {**metadata, "seq_lens": jax.numpy.zeros(4, np.int32)})


def test_jax_binding_that_outlives_its_step():
    """A step that binds leaves its tracer bound: bind again what came back, or unbind."""
    jax = framework("jax")
    arrays = batch()
    want, want_cache = direct(arrays)
    backend = make()
    rows = [jax.numpy.asarray(flat(arrays[x])) for x in ("queries", "keys", "values")]
    metadata = converted(metadata_of(arrays), jax.numpy.asarray)

    @jax.jit
    def step(cache, rows, metadata):
        backend.bind_cache(NAME, cache)
        output = backend.forward(NAME, *rows, metadata)
        return output, backend.cache(NAME)

    output, cache = step(jax.numpy.asarray(arrays["kv_cache"]), rows, metadata)
    assert np.array_equal(output, want) and np.array_equal(bits(cache), bits(want_cache))
    with pytest.raises(TypeError, match=rf"layer {NAME}.*unexpected tracer"):
        jax.block_until_ready(backend.forward(NAME, *rows, metadata))
    backend.bind_cache(NAME, cache)
    assert np.array_equal(backend.forward(NAME, *rows, metadata), want)

    @jax.jit
    def both_names(cache, metadata):
        backend.bind_cache(NAME, cache)
        return backend.forward(NAME, *rows, metadata), backend.unbind_cache(NAME)

    with pytest.raises(ValueError, match="has both seq_lens and kv_lens, which are not known to be"):
        both_names(cache, {**metadata, "kv_lens": metadata["seq_lens"] + 0})
