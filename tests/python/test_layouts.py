# SPDX-License-Identifier: Apache-2.0
"""The layout of columns: the bits of the layout of rows, and widths that only it has."""

import numpy as np
import octavo
import pytest
import rpa_oracle as oracle
from batches import bits, numbers
from conftest import framework

I32 = np.int32
PAGES, PAGE_SIZE, PER_SEQ = 12, 24, 5
STEPS = ([(40, 40), (7, 7)], [(1, 41), (20, 27)], [(1, 42), (1, 28)])


def index(step):
    tables = np.array([3, 0, 7, 11, -9, 5, 2, 8, 1, 99], I32)
    return {
        "kv_lens": np.array([kv for _, kv in step], I32),
        "block_tables": tables,
        "query_start_loc": np.cumsum([0] + [new for new, _ in step]).astype(I32),
        "distribution": np.array([0, 0, 2], I32),
    }


def steps(rng, heads, dim, value_dim, q_dtype, kv_dtype):
    """New rows of each step: (queries, keys, values)."""
    hq, hkv = heads
    for step in STEPS:
        tokens = sum(new for new, _ in step)
        yield step, (
            numbers(rng, (tokens, hq, dim), q_dtype),
            numbers(rng, (tokens, hkv, dim), kv_dtype),
            numbers(rng, (tokens, hkv, value_dim), kv_dtype),
        )


def columns(hkv, dim, value_dim, dtype, **more):
    elements = octavo.page_elements(dtype, PAGE_SIZE, hkv, dim, value_dim, **more)
    return np.zeros((PAGES, elements), dtype)


def attend(arrays, cache, step, **params):
    q, k, v = arrays
    return octavo.ragged_page_attention_v3(q, k, v, cache, **index(step), softmax_scale=0.1, **params)


@pytest.mark.parametrize("kv", [*oracle.FLOATS, *oracle.NARROW])
@pytest.mark.parametrize("params", [{}, {"sliding_window": 9, "logits_soft_cap": 4.0}, {"precision": "bf16"}])
def test_same_bits(kv, params):
    dtype = oracle.dtype_of(kv)
    rows = np.zeros(oracle.cache_shape(PAGES, PAGE_SIZE, 2, 72, dtype), dtype)
    other = columns(2, 72, 72, dtype)
    for step, arrays in steps(np.random.default_rng(1), (6, 2), 72, 72, "float32", dtype):
        want, rows = attend(arrays, rows, step, **params)
        got, other = attend(arrays, other, step, layout="columns", page_size=PAGE_SIZE, **params)
        assert np.array_equal(bits(got), bits(want))


def test_values_of_another_width():
    """The values of each width are the lanes of a wider head's."""
    dim, dtype = 96, oracle.dtype_of("bfloat16")
    for value_dim in (32, 80):
        rows = np.zeros(oracle.cache_shape(PAGES, PAGE_SIZE, 2, dim, dtype), dtype)
        other = columns(2, dim, value_dim, dtype)
        for step, (q, k, v) in steps(np.random.default_rng(2), (4, 2), dim, dim, "float32", dtype):
            want, rows = attend((q, k, v), rows, step)
            narrow = (q, k, np.ascontiguousarray(v[..., :value_dim]))
            got, other = attend(narrow, other, step, layout="columns", page_size=PAGE_SIZE)
            assert got.shape == (*q.shape[:2], value_dim)
            assert np.array_equal(bits(got), bits(want[..., :value_dim]))


def test_values_in_keys():
    """Latent attention: a value is the first lanes of its key, stored once."""
    dim, value_dim, dtype = 80, 64, oracle.dtype_of("bfloat16")
    rows = np.zeros(oracle.cache_shape(PAGES, PAGE_SIZE, 1, dim, dtype), dtype)
    other = columns(1, dim, value_dim, dtype, value_in_key=True)
    more = {"layout": "columns", "page_size": PAGE_SIZE, "value_dim": value_dim}
    for step, (q, k, _) in steps(np.random.default_rng(3), (8, 1), dim, dim, "float32", dtype):
        want, rows = attend((q, k, k), rows, step)
        got, other = attend((q, k, None), other, step, **more)
        assert got.shape == (*q.shape[:2], value_dim)
        assert np.array_equal(bits(got), bits(want[..., :value_dim]))


def test_the_widest():
    dim, value_dim = 576, 512
    cache = columns(1, dim, value_dim, np.float32, value_in_key=True)
    more = {"layout": "columns", "page_size": PAGE_SIZE, "value_dim": value_dim}
    for step, (q, k, _) in steps(np.random.default_rng(4), (2, 1), dim, dim, "float32", np.float32):
        output, cache = attend((q, k, None), cache, step, **more)
        assert np.isfinite(output).all() and output.any()
    with pytest.raises(ValueError, match=r"\(queries\): head width 577|\(page\)"):
        attend((np.zeros((47, 2, 577), np.float32), np.zeros((47, 1, 577), np.float32), None),
               columns(1, 577, 512, np.float32, value_in_key=True), STEPS[0], **more)


def test_through_frameworks():
    torch, jax = framework("torch"), framework("jax")
    from octavo.jax import ragged_page_attention_v3 as jax_attend

    step, arrays = next(steps(np.random.default_rng(5), (4, 2), 48, 32, "float32", np.float32))
    more = {"layout": "columns", "page_size": PAGE_SIZE}
    cache = columns(2, 48, 32, np.float32)
    want, want_cache = attend(arrays, cache, step, **more)
    given = {"queries": arrays[0], "keys": arrays[1], "values": arrays[2], "kv_cache": cache, **index(step)}
    more["softmax_scale"] = 0.1
    output, got = octavo.ragged_page_attention_v3(
        **{name: torch.from_numpy(array) for name, array in given.items()}, **more
    )
    assert np.array_equal(output.numpy(), want) and np.array_equal(bits(got.numpy()), bits(want_cache))
    output, got = jax.jit(lambda given: jax_attend(**given, **more))(given)
    assert np.array_equal(np.asarray(output), want)
    assert np.array_equal(bits(np.asarray(got)), bits(want_cache))
