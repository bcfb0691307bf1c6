# SPDX-License-Identifier: Apache-2.0
"""JAX: arrays, jit, donated caches, errors when tracing and when running."""

import inspect

import numpy as np
import octavo
import pytest
from batches import bits, ragged
from conftest import framework

jax = framework("jax", allow_module_level=True)
jnp = jax.numpy
import octavo.jax as module  # noqa: E402  needs jax

attend = module.ragged_page_attention_v3
NAMES = octavo._arrays.NAMES[:8]
SCALE = {"softmax_scale": 0.125}


def batch(q="float32", kv="float32", **more):
    given = {"lengths": [(1, 20), (5, 9)], "page_size": 4, "heads": (4, 2), "head_dim": 24, **more}
    return ragged(3, **given, q_dtype=q, kv_dtype=kv)


def put(arrays):
    return {name: jnp.array(array) for name, array in arrays.items()}


def same(got, want):
    assert isinstance(got, jax.Array)
    got = np.asarray(got)
    return got.dtype == want.dtype and np.array_equal(bits(got), bits(want))


@pytest.mark.parametrize(
    "q, kv", [("float32", "float32"), ("float16", "int8"), ("bfloat16", "bfloat16"),
              ("bfloat16", "float8_e4m3fn"), ("bfloat16", "float8_e5m2")]
)
@pytest.mark.parametrize("function", [octavo.ragged_page_attention_v3, attend])
def test_types(function, q, kv):
    arrays = batch(q, kv)
    want = octavo.ragged_page_attention_v3(**arrays, **SCALE)
    given = put(arrays)
    result = function(**given, **SCALE)
    assert type(result) is tuple
    output, cache = result
    assert same(output, want[0]) and same(cache, want[1])
    assert all(same(given[name], array) for name, array in arrays.items())
    output, cache = jax.jit(lambda given: function(**given, **SCALE))(given)
    assert same(output, want[0]) and same(cache, want[1])


def test_the_rest_of_the_arguments():
    arrays = batch(filled=True)
    slopes = np.float32([0.1, 0.2, 0.3, 0.4])
    for params in (
        {"update_kv_cache": False},
        {"output_scale": 0.1, "output_dtype": jnp.int8},
        {"output_scale": 0.1, "output_dtype": "float8_e4m3fn"},
        {"type": "encoder", "precision": "bf16", "sliding_window": 3},
        {"logits_soft_cap": 3.0, "k_scale": 0.5, "v_scale": 2.0, "chunk_size": 4},
        {"alibi_slopes": slopes, "attention_sink": -slopes},
        {"softmax_aux": slopes, "v_scales": slopes[:2]},
        {"context": octavo.AttentionContext(1, "scalar"), "vmem_limit_bytes": 1 << 20},
    ):
        want = octavo.ragged_page_attention_v3(**arrays, **SCALE, **params)
        got = attend(**put(arrays), **SCALE, **params)
        assert same(got[0], want[0]) and same(got[1], want[1])
        got = jax.jit(lambda given: attend(**given, **SCALE, **params))(put(arrays))  # noqa: B023
        assert same(got[0], want[0]) and same(got[1], want[1])


def test_cross_attention_without_new_keys():
    arrays = batch(lengths=[(3, 9), (1, 2)], filled=True)
    arrays["keys"] = arrays["values"] = np.zeros((0, 2, 24), np.float32)
    want = octavo.ragged_page_attention_v3(**arrays, **SCALE, type="encoder_decoder")
    given = put(arrays)
    output, cache = attend(**given, **SCALE, type="encoder_decoder")
    assert same(output, want[0]) and cache is given["kv_cache"]


def test_donated_caches_are_updated_where_they_lie():
    arrays = batch()
    want = octavo.ragged_page_attention_v3(**arrays, **SCALE)
    given = put(arrays)
    kv_cache = given.pop("kv_cache")
    step = jax.jit(
        lambda kv_cache, given: attend(**given, kv_cache=kv_cache, **SCALE), donate_argnames="kv_cache"
    )
    address = kv_cache.unsafe_buffer_pointer()
    output, cache = step(kv_cache, given)
    assert same(output, want[0]) and same(cache, want[1])
    assert kv_cache.is_deleted() and cache.unsafe_buffer_pointer() == address


def test_a_loop_of_steps():
    """Decode steps inside lax.fori_loop: the cache is carried."""
    steps, heads, dim = 7, 2, 16
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, steps, 1, heads, dim)).astype(np.float32)
    cache = np.zeros((2, 4, 2 * heads, 1, 128), np.float32)
    i32 = lambda *numbers: np.array(numbers, np.int32)  # noqa: E731
    fixed = (i32(0, 1), i32(0, 1), i32(1, 1, 1))
    want, growing = [], cache
    for i in range(steps):
        output, growing = octavo.ragged_page_attention_v3(q[i], k[i], v[i], growing, i32(i + 1), *fixed)
        want.append(output)

    @jax.jit
    def run(q, k, v, cache):
        def body(i, carry):
            cache, outputs = carry
            output, cache = attend(q[i], k[i], v[i], cache, jnp.array([i + 1], jnp.int32), *fixed)
            return cache, outputs.at[i].set(output)

        return jax.lax.fori_loop(0, steps, body, (cache, jnp.zeros_like(q)))

    got_cache, outputs = run(*map(jnp.array, (q, k, v, cache)))
    assert same(outputs, np.stack(want)) and same(got_cache, growing)


def test_vmap():
    a, b = batch(), ragged(4, lengths=[(1, 20), (5, 9)], page_size=4, heads=(4, 2), head_dim=24)
    stacked = {name: jnp.array(np.stack([a[name], b[name]])) for name in a}
    output, cache = jax.vmap(lambda given: attend(**given, **SCALE))(stacked)
    for i, arrays in enumerate((a, b)):
        want = octavo.ragged_page_attention_v3(**arrays, **SCALE)
        assert same(output[i], want[0]) and same(cache[i], want[1])


def test_errors_when_traced():
    given = put(batch())
    jitted = jax.jit(lambda given: attend(**given))
    with pytest.raises(ValueError, match=r"\(kv_cache\): shape"):
        jitted({**given, "kv_cache": given["kv_cache"][..., :64]})
    with pytest.raises(ValueError, match=r"\(queries\): has 2 axes"):
        jitted({**given, "queries": given["queries"][0]})
    with pytest.raises(ValueError, match=r"\(keys\): dtype is float16"):
        jitted({**given, "keys": given["keys"].astype(jnp.float16)})
    with pytest.raises(ValueError, match=r"\(values\): dtype is int16; it must be one of"):
        jitted({**given, "values": given["values"].astype(jnp.int16)})
    with pytest.raises(ValueError, match=r"\(sliding_window\)"):
        jax.jit(lambda given: attend(**given, sliding_window=0))(given)
    with pytest.raises(ValueError, match=r"\(in_place\): JAX arrays do not change"):
        attend(**given, in_place=True)
    with pytest.raises(ValueError, match=r"\(out\): JAX arrays do not change"):
        attend(**given, out=given["queries"])
    with pytest.raises(ValueError, match=r"\(kv_cache\): JAX arrays do not change"):
        octavo.ragged_page_attention_v3(**{**batch(), "kv_cache": given["kv_cache"]}, in_place=True)
    with pytest.raises(TypeError, match=r"\(queries\): list is no array"):
        attend(**{**given, "queries": [1]})


def test_errors_of_contents():
    given = put(batch())
    bad = {**given, "block_tables": jnp.full_like(given["block_tables"], 99)}
    with pytest.raises(ValueError, match=r"\(block_tables\): entry 0 of sequence 0 is page 99"):
        attend(**bad)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"INVALID_ARGUMENT.*is page 99"):
        jax.block_until_ready(jax.jit(lambda given: attend(**given))(bad))


def test_errors_of_a_program_that_runs():
    """Either kind, whichever call it is; the donated cache is gone, the next one is updated."""
    given = put(batch())
    kv_cache = given.pop("kv_cache")
    copies = [kv_cache + 0 for _ in range(4)]
    bad = {**given, "block_tables": jnp.full_like(given["block_tables"], 99)}
    step = jax.jit(
        lambda kv_cache, given: attend(**given, kv_cache=kv_cache, **SCALE), donate_argnames="kv_cache"
    )
    want = octavo.ragged_page_attention_v3(**batch(), **SCALE)
    for call, cache in enumerate(copies):
        if call == 2:
            output, updated = step(cache, given)
            assert same(output, want[0]) and same(updated, want[1])
            continue
        with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match=r"is page 99"):
            jax.block_until_ready(step(cache, bad))
        assert cache.is_deleted()


def test_shards():
    """Heads over the devices of a mesh, as the original takes it."""
    arrays = batch()
    want = octavo.ragged_page_attention_v3(**arrays, **SCALE)
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:2]), ("heads",))
    assert mesh.size == 2
    P = jax.sharding.PartitionSpec
    heads, all_of_it = P(None, "heads"), P()
    specs = (heads, heads, heads, P(None, None, "heads"), *[all_of_it] * 4)
    for in_specs in (specs, (*specs, None)):
        output, cache = attend(
            **put(arrays), **SCALE, mesh=mesh, in_specs=in_specs, out_specs=(heads, P(None, None, "heads"))
        )
        assert same(output, want[0]) and same(cache, want[1])
    with pytest.raises(ValueError, match=r"\(in_specs\): 3 specs"):
        attend(**put(arrays), mesh=mesh, in_specs=specs[:3], out_specs=heads)
    assert same(attend(**put(arrays), **SCALE, mesh=mesh)[0], want[0])  # without specs there is one device


def test_signature():
    assert inspect.signature(attend) == inspect.signature(octavo.ragged_page_attention_v3)
