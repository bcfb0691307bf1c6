# SPDX-License-Identifier: Apache-2.0
"""Ragged paged attention in float64: slow and plain on purpose.

One sequence and one kv head at a time, without blocks, straight from the rules at the head of
``include/octavo/attention.h``. NumPy and ml_dtypes only. Nothing here is shared with the library.

`attention` computes (output, updated cache) and the tolerance that the library's f32 arithmetic is owed.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

FLOATS = ("float32", "float16", "bfloat16")
NARROW = ("float8_e4m3fn", "float8_e5m2", "int8")
_ML = {name: getattr(ml_dtypes, name) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")}

# Mantissa bits: one unit in the last place is at most 2^-bits of a value.
_BITS = {"float32": 19, "float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e5m2": 2}
# Half the distance of the numbers next to 0.
_TINY = {
    "float32": 2.0**-149,
    "float16": 2.0**-24,
    "bfloat16": 2.0**-133,
    "float8_e4m3fn": 2.0**-9,
    "float8_e5m2": 2.0**-16,
    "int8": 1.0,
}


def dtype_of(name):
    return np.dtype(_ML.get(name, name))


def ceil_div(a, b):
    return -(-int(a) // int(b))


def cache_shape(pages, page_size, kv_heads, head_dim, dtype):
    packing = 4 // np.dtype(dtype).itemsize
    rows = ceil_div(2 * kv_heads, packing)
    return pages, page_size, rows, packing, ceil_div(head_dim, 128) * 128


def limits_of(dtype):
    """The least and the largest finite value."""
    if np.dtype(dtype).name == "int8":
        return -128.0, 127.0
    info = ml_dtypes.finfo(dtype)
    return float(info.min), float(info.max)


def round_once(x, dtype):
    """float64 to dtype with one rounding to nearest even.

    ml_dtypes goes through float32, which can round twice; so the intermediate is rounded to odd.
    """
    dtype = np.dtype(dtype)
    if dtype.name in ("float32", "float16"):
        with np.errstate(over="ignore"):
            return x.astype(dtype)
    if dtype.name == "int8":
        return np.rint(x).astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        f = x.astype(np.float32)
        back = f.astype(np.float64)
        inexact = np.isfinite(x) & np.isfinite(f) & (back != x)
        away = inexact & (np.abs(back) > np.abs(x))
        bits = f.view(np.uint32).copy()
        bits[away] -= 1
        bits[inexact] |= 1
        return bits.view(np.float32).astype(dtype)


def quantize_query(q, q_scale, kv_dtype):
    """Queries divided by q_scale, as float64 values of the cache's dtype."""
    with np.errstate(over="ignore"):
        divisor = np.float32(q_scale).astype(q.dtype).astype(np.float32)
        x = (q.astype(np.float32) / divisor).astype(q.dtype).astype(np.float32)
    low, high = limits_of(kv_dtype)
    if np.dtype(kv_dtype).name == "int8":
        return np.clip(np.trunc(x), low, high).astype(np.float64)
    x = np.clip(x, low, high).astype(q.dtype).astype(np.float32)
    return x.astype(kv_dtype).astype(np.float64)


def quantize_new(x, scale, kv_dtype):
    """New keys or values [t, Hkv, D] of the queries' dtype into the cache's; scale [Hkv] f32."""
    y = x.astype(np.float32) / scale[None, :, None]
    low, high = limits_of(kv_dtype)
    y = np.clip(y, np.float32(low), np.float32(high))
    return np.rint(y).astype(np.int8) if np.dtype(kv_dtype).name == "int8" else y.astype(kv_dtype)


@dataclass
class Extent:
    """The largest numbers that took part: what errors are in proportion to."""

    products: float = 0.0  # sum |q_i k_i| * scale
    values: float = 0.0  # |v| * scale of v
    biases: float = 0.0  # |alibi slope * distance|


def attend(q, k, v, seen, distance, *, scale, cap, sink, slopes, v_scale, extent):
    """One sequence and kv head: q [t, G, D], k [n, D], v [n, Dv] float64, seen and distance [t, n],
    sink and slopes [G] or None. Returns [t, G, Dv]."""
    t, g, d = q.shape
    n = k.shape[0]
    s = (q.reshape(t * g, d) @ k.T).reshape(t, g, n) * scale
    if cap is not None:
        s = cap * np.tanh(s / cap)
    if slopes is not None:
        bias = slopes[None, :, None] * -np.abs(distance)[:, None, :]
        s = s + bias
        extent.biases = max(extent.biases, np.abs(np.where(seen[:, None, :], bias, 0)).max(initial=0))
    s = np.where(seen[:, None, :], s, -np.inf)
    top = s.max(axis=-1, keepdims=True, initial=-np.inf)
    if sink is not None:
        top = np.maximum(top, sink[None, :, None])
    top = np.where(np.isfinite(top), top, 0.0)  # a query that sees nothing has weights of 0
    w = np.exp(s - top)
    sums = w.sum(axis=-1, keepdims=True)
    if sink is not None:
        sums = sums + np.exp(sink[None, :, None] - top)
    w = np.where(w > 0, w / np.where(sums > 0, sums, 1.0), 0.0)
    visible = seen.any(axis=0)
    product = (np.abs(q).reshape(t * g, d) @ np.abs(k[visible]).T).max(initial=0) * abs(scale)
    extent.products = max(extent.products, product)
    extent.values = max(extent.values, np.abs(v[visible]).max(initial=0) * abs(v_scale))
    return (w[:, :, visible].reshape(t * g, visible.sum()) @ v[visible]).reshape(t, g, v.shape[1]) * v_scale


def mask_of(type, positions, kv_len, window, chunk):
    """Which of kv_len keys the queries at these positions see, [t, n] bool."""
    p, j = positions[:, None], np.arange(kv_len)[None, :]
    seen = np.ones((len(positions), kv_len), bool)
    if type == "encoder_decoder":
        return seen
    if type == "decoder":
        seen &= j <= p
    if window is not None:
        seen &= np.abs(p - j) < window
    if chunk:
        seen &= p // chunk == j // chunk
    return seen


def attention(
    queries,
    keys,
    values,
    kv_cache,
    kv_lens,
    block_tables,
    query_start_loc,
    distribution,
    attention_sink=None,
    *,
    softmax_scale=1.0,
    sliding_window=None,
    logits_soft_cap=None,
    q_scale=None,
    k_scale=None,
    v_scale=None,
    update_kv_cache=True,
    type="decoder",
    chunk_size=None,
    alibi_slopes=None,
    k_scales=None,
    v_scales=None,
    output_scale=None,
    output_dtype=None,
    key_start_loc=None,
    precision="strict",
):
    """Returns (output, cache, atol, rtol); the arguments must make a valid call and stay as they are."""
    tokens, hq, d = queries.shape
    hkv = keys.shape[1]
    group = hq // hkv
    page_size = kv_cache.shape[1]
    per_seq = block_tables.shape[0] // kv_lens.shape[0]
    cache = kv_cache.copy()
    out = np.zeros((tokens, hq, d))
    extent = Extent()
    ones = np.ones(hkv, np.float32)
    scales_k = (ones if k_scales is None else k_scales) * np.float32(1 if k_scale is None else k_scale)
    scales_v = (ones if v_scales is None else v_scales) * np.float32(1 if v_scale is None else v_scale)
    new_starts = key_start_loc if type == "encoder_decoder" else query_start_loc

    for i in range(int(distribution[2])):
        first, last = int(query_start_loc[i]), int(query_start_loc[i + 1])
        kv_len = int(kv_lens[i])
        position = np.arange(kv_len)
        page, slot = block_tables[i * per_seq + position // page_size], position % page_size
        if update_kv_cache and new_starts is not None:
            begin, end = int(new_starts[i]), int(new_starts[i + 1])
            new = slice(kv_len - (end - begin), kv_len)
            k, v = keys[begin:end], values[begin:end]
            if keys.dtype != kv_cache.dtype:
                k = quantize_new(k, scales_k, kv_cache.dtype)
                v = quantize_new(v, scales_v, kv_cache.dtype)
            rows = np.zeros((end - begin, cache.shape[2] * cache.shape[3], cache.shape[4]), cache.dtype)
            rows[:, 0 : 2 * hkv : 2, :d] = k
            rows[:, 1 : 2 * hkv : 2, :d] = v
            cache[page[new], slot[new]] = rows.reshape(end - begin, *cache.shape[2:])
        if last == first:
            continue
        rows = cache[page, slot].reshape(kv_len, cache.shape[2] * cache.shape[3], cache.shape[4])
        k = rows[:, 0 : 2 * hkv : 2, :d].astype(np.float64)
        v = rows[:, 1 : 2 * hkv : 2, :d].astype(np.float64)
        q = queries[first:last]
        q = q.astype(np.float64) if q_scale is None else quantize_query(q, q_scale, kv_cache.dtype)
        q = q.reshape(last - first, hkv, group, d)
        where = np.arange(kv_len - (last - first), kv_len)
        seen = mask_of(type, where, kv_len, sliding_window, chunk_size)
        for h in range(hkv):
            heads = slice(h * group, (h + 1) * group)
            out[first:last, heads] = attend(
                q[:, h],
                k[:, h],
                v[:, h],
                seen,
                where[:, None] - position[None, :],
                scale=softmax_scale * float(scales_k[h]) * (1.0 if q_scale is None else q_scale),
                cap=logits_soft_cap,
                sink=None if attention_sink is None else attention_sink[heads].astype(np.float64),
                slopes=None if alibi_slopes is None else alibi_slopes[heads].astype(np.float64),
                v_scale=float(scales_v[h]),
                extent=extent,
            )

    dtype = dtype_of(output_dtype) if output_dtype else queries.dtype
    if output_scale is not None:
        out = np.clip(out / output_scale, *limits_of(dtype))
    atol = tolerance(extent, d, logits_soft_cap, precision) / abs(output_scale or 1.0)
    return round_once(out, dtype), cache, atol + _TINY[dtype.name], 2.0 ** -_BITS.get(dtype.name, 99)


def tolerance(extent, head_dim, cap, precision):
    """The absolute error that f32 sums are owed; see tests/data/rpa/README.md."""
    logit = 2.0**-24 * ((4 + head_dim / 16) * extent.products + 4 * extent.biases)
    logit += abs(cap or 0.0) * 2.0**-21
    weights = 2.0**-8 if precision == "bf16" else 0.0
    return extent.values * (2 * logit + 2.0**-19 + weights)
