# SPDX-License-Identifier: Apache-2.0
"""Entry points for a checker of golden cases: run(arrays, params) -> (output, cache).

Arrays are NumPy arrays by name, params the scalars by name. Each entry calls the module with arrays of
another library and gives NumPy arrays back.
"""

import os

import numpy as np

import octavo


def _call(function, arrays, params, **more):
    arrays, params = dict(arrays), dict(params)
    sink = arrays.pop("attention_sink", None)
    output, cache = function(**arrays, attention_sink=sink, **params, **more)
    return output, cache


def run(arrays, params):
    """NumPy, the cache copied. OCTAVO_ENTRY_IN_PLACE, _THREADS, _ISA choose otherwise."""
    context = octavo.AttentionContext(
        int(os.environ.get("OCTAVO_ENTRY_THREADS", 0)), os.environ.get("OCTAVO_ENTRY_ISA")
    )
    return _call(
        octavo.ragged_page_attention_v3,
        arrays,
        params,
        context=context,
        in_place="OCTAVO_ENTRY_IN_PLACE" in os.environ,
    )


def run_torch(arrays, params):
    """PyTorch tensors over the same memory."""
    from octavo._arrays import to_torch
    from octavo.torch import ragged_page_attention_v3

    tensors = {name: None if array is None else to_torch(array) for name, array in arrays.items()}
    output, cache = _call(ragged_page_attention_v3, tensors, params)
    return _from_torch(output), _from_torch(cache)


def _from_torch(tensor):
    from octavo._arrays import describe, _view

    return _view(describe(tensor, "result")).copy()


def run_jax(arrays, params):
    """JAX arrays, one call at a time."""
    import jax.numpy as jnp

    from octavo.jax import ragged_page_attention_v3

    arrays = {name: None if array is None else jnp.asarray(array) for name, array in arrays.items()}
    output, cache = _call(ragged_page_attention_v3, arrays, params)
    return np.asarray(output), np.asarray(cache)


def run_jit(arrays, params):
    """JAX arrays inside a compiled program that is given the cache."""
    import jax
    import jax.numpy as jnp

    from octavo.jax import ragged_page_attention_v3

    arrays = {name: None if array is None else jnp.asarray(array) for name, array in arrays.items()}
    cache = arrays.pop("kv_cache")

    def program(kv_cache, arrays):
        return _call(ragged_page_attention_v3, {**arrays, "kv_cache": kv_cache}, params)

    output, cache = jax.jit(program, donate_argnums=0)(cache, arrays)
    return np.asarray(output), np.asarray(cache)
