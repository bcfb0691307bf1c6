# SPDX-License-Identifier: Apache-2.0
"""Random valid batches, and the comparison of a result with the oracle's."""

import numpy as np
import rpa_oracle as oracle

I32 = np.int32


def numbers(rng, shape, dtype, spread=1.0):
    """Normal numbers of a dtype."""
    x = rng.standard_normal(shape) * spread
    if np.dtype(dtype).name == "int8":
        return np.clip(np.rint(x * 40), -128, 127).astype(np.int8)
    return x.astype(np.float32).astype(dtype)


def poison(shape, dtype, rng):
    """What must not be read: NaN where the dtype has it, else large numbers."""
    if np.dtype(dtype).name == "int8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    return np.full(shape, np.nan, np.float32).astype(dtype)


def ragged(seed, *, lengths, page_size, heads, head_dim, q_dtype="float32", kv_dtype="float32",
           spare_pages=2, spare_rows=1, spare_seqs=1, new_dtype=None, cross=None, filled=False):
    """The arrays of a batch: lengths is a list of (new tokens, length with them); cross one of
    (new keys) for encoder-decoder attention; filled: the cache holds the new tokens too. What no query
    may see is poison."""
    rng = np.random.default_rng(seed)
    hq, hkv = heads
    q_dtype, kv_dtype = oracle.dtype_of(q_dtype), oracle.dtype_of(kv_dtype)
    new_dtype = kv_dtype if new_dtype is None else oracle.dtype_of(new_dtype)
    n = len(lengths)
    starts = np.concatenate([[0], np.cumsum([q for q, _ in lengths])]).astype(I32)
    tokens = int(starts[-1]) + spare_rows
    used = [oracle.ceil_div(kv, page_size) for _, kv in lengths]
    per_seq = max(used) + 1
    pages = sum(used) + spare_pages
    order = rng.permutation(pages).astype(I32)
    tables = rng.integers(-(2**31), 2**31, (n + spare_seqs, per_seq)).astype(I32)
    new = [q for q, _ in lengths] if cross is None else cross
    cache = poison(oracle.cache_shape(pages, page_size, hkv, head_dim, kv_dtype), kv_dtype, rng)
    at = 0
    for i, (_, kv) in enumerate(lengths):
        tables[i, : used[i]] = order[at : at + used[i]]
        at += used[i]
        old = np.arange(kv if filled else kv - new[i])
        rows = numbers(rng, (len(old), *cache.shape[2:]), kv_dtype)
        flat = rows.reshape(len(old), cache.shape[2] * cache.shape[3], cache.shape[4])
        flat[:, 2 * hkv :] = poison((1,), kv_dtype, rng)[0]
        flat[:, :, head_dim:] = poison((1,), kv_dtype, rng)[0]
        cache[tables[i, old // page_size], old % page_size] = rows
    key_rows = tokens if cross is None else sum(new) + 1
    arrays = {
        "queries": numbers(rng, (tokens, hq, head_dim), q_dtype),
        "keys": numbers(rng, (key_rows, hkv, head_dim), new_dtype),
        "values": numbers(rng, (key_rows, hkv, head_dim), new_dtype),
        "kv_cache": cache,
        "kv_lens": np.array([kv for _, kv in lengths] + [-5] * spare_seqs, I32),
        "block_tables": tables.reshape(-1),
        "query_start_loc": np.concatenate([starts, [2**31 - 1] * spare_seqs]).astype(I32),
        "distribution": np.array([0, 0, n], I32),
    }
    if cross is not None:
        key_starts = np.concatenate([[0], np.cumsum(new), [-7] * spare_seqs])
        arrays["key_start_loc"] = key_starts.astype(I32)
    return arrays


def bits(array):
    """The bytes of an array, for comparisons that see NaN's payloads and the sign of zero."""
    return np.ascontiguousarray(array).view(np.uint8)


def compare(got, want):
    """Asserts that (output, cache) is what the oracle's (output, cache, atol, rtol) allows."""
    output, cache = got
    expected, expected_cache, atol, rtol = want
    assert output.dtype == expected.dtype and output.shape == expected.shape
    g, w = output.astype(np.float64), expected.astype(np.float64)
    error = np.abs(g - w)
    allowed = atol + rtol * np.abs(w)
    worst = np.unravel_index(np.argmax(error - allowed), error.shape) if error.size else None
    assert not np.isnan(g).any(), "a NaN has reached the output"
    assert (error <= allowed).all(), (
        f"at {worst}: got {g[worst]}, want {w[worst]}, error {error[worst]}, allowed {allowed[worst]}"
    )
    assert cache.dtype == expected_cache.dtype and cache.shape == expected_cache.shape
    assert np.array_equal(bits(cache), bits(expected_cache)), "the cache differs"
