# SPDX-License-Identifier: Apache-2.0
"""Against the published implementation, where it is installed, on batches that it computes right.

It must not be given NaN in unused slots, table entries that repeat, queries without keys, or prompts
longer than a sliding window; with those ours is checked against the oracle alone.
"""

import numpy as np
import octavo
import pytest
from batches import numbers
from conftest import framework
from rpa_oracle import attention, cache_shape, dtype_of

jax = framework("jax", allow_module_level=True)
original = framework("ejkernel.kernels._xla.ragged_page_attention_v3", allow_module_level=True)

CASES = {
    "plain": {},
    "soft cap and scales": {"logits_soft_cap": 5.0, "k_scale": 0.5, "v_scale": 2.0},
    "sink": {"sink": True},
    "window": {"sliding_window": 6, "lengths": [(1, 30), (1, 5), (1, 11)]},
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_against_the_original(case, dtype):
    params = dict(CASES[case])
    lengths = params.pop("lengths", [(1, 30), (7, 7), (4, 21)])
    rng, dtype = np.random.default_rng(5), dtype_of(dtype)
    hq, hkv, dim, page_size, per_seq = 4, 2, 64, 8, 5
    tokens = sum(new for new, _ in lengths)
    arrays = {
        "queries": numbers(rng, (tokens, hq, dim), dtype),
        "keys": numbers(rng, (tokens, hkv, dim), dtype),
        "values": numbers(rng, (tokens, hkv, dim), dtype),
        "kv_cache": numbers(rng, cache_shape(20, page_size, hkv, dim, dtype), dtype),
        "kv_lens": np.array([kv for _, kv in lengths], np.int32),
        "block_tables": rng.permutation(20)[: 3 * per_seq].astype(np.int32),
        "query_start_loc": np.cumsum([0] + [new for new, _ in lengths]).astype(np.int32),
        "distribution": np.array([0, 0, 3], np.int32),
    }
    sink = np.float32([0.5, 1, -1, 2]) if params.pop("sink", False) else None
    params["softmax_scale"] = 0.125
    positional = [*arrays.values(), sink]
    theirs, their_cache = original.ragged_page_attention_v3(
        *(None if array is None else jax.numpy.asarray(array) for array in positional), **params
    )
    ours, our_cache = octavo.ragged_page_attention_v3(*positional, **params)
    _, _, atol, rtol = attention(*positional, **params)
    theirs = np.asarray(theirs).astype(np.float64)
    # its own products are f32 too, and it rounds once before the scale of the values and once after
    assert (np.abs(ours.astype(np.float64) - theirs) <= 4 * atol + 2 * rtol * np.abs(theirs)).all()
    live = sorted({(int(arrays["block_tables"][i * per_seq + p // page_size]), p % page_size)
                   for i, (_, kv) in enumerate(lengths) for p in range(kv)})
    pages, slots = np.array(live).T
    got = our_cache[pages, slots][..., :dim].astype(np.float32)
    want = np.asarray(their_cache)[pages, slots][..., :dim].astype(np.float32)
    assert np.array_equal(got, want)
