# SPDX-License-Identifier: Apache-2.0
"""Ragged paged attention as a JAX custom call, usable under ``jax.jit`` on the CPU.

`ragged_page_attention_v3` has the arguments of `octavo.ragged_page_attention_v3`; all that is no array
is static. Shapes, dtypes and scalars that make no valid call are a ValueError when the program is
traced, and so are the contents of the index arrays outside of a compiled program. Inside of one they
are an error when the program runs, with the same text: JAX raises ``jax.errors.JaxRuntimeError`` or,
as a rule where the program is compiled already, ValueError, so catch both. A donated cache is updated
where it lies::

    step = jax.jit(step, donate_argnames="kv_cache")

Donated is given away: after a step that failed when it ran, the cache is gone.

There are no gradients.
"""

import functools
import re
from pathlib import Path

import numpy as np

from . import _attention, _octavo
from ._arrays import NAMES, describe, dtype_code, error, kind_of, numpy_dtype
from ._call import check_shapes, guarded, specs_of

try:
    import jax
    from jax import ffi
except ImportError as reason:
    raise ImportError(
        "octavo.jax needs jax 0.5 or later with its CPU backend: pip install 'octavo[jax]'"
    ) from reason

__all__ = ["ragged_page_attention_v3"]

_TARGET = "octavo_ragged_page_attention_v3"


def _register():
    """Register the custom call, for the version of XLA's interface that jaxlib's header tells."""
    header = Path(ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    major, minor = (
        int(re.search(rf"^#define XLA_FFI_API_{part} (\d+)", header, re.MULTILINE)[1])
        for part in ("MAJOR", "MINOR")
    )
    if major != 0:
        raise ImportError(f"octavo.jax knows XLA's custom calls of version 0, not {major}.{minor}")
    ffi.register_ffi_target(_TARGET, _octavo.xla_target(minor), platform="cpu")


_register()


def _check_contents(call, output):
    """Everything, where arrays are at hand: the same checks as for NumPy arrays."""
    described = [
        None if array is None else describe(array, name) for name, array in zip(NAMES, call.arrays)
    ]
    described.append((described[0][0], dtype_code(output.dtype), output.shape, None, None))
    guarded(_octavo.check, tuple(described), call.scalars)


def _attributes(call):
    attributes = {
        name: np.float64(value) if isinstance(value, float) else np.int64(value)
        for name, value in call.scalars.items()
    }
    threads, isa, pin = call.settings
    present = sum(1 << i for i, array in enumerate(call.arrays) if array is not None)
    attributes.update(
        operands=np.int64(present), threads=np.int64(threads), pin=np.int64(pin), isa=isa
    )
    return attributes


def _run(call):
    """The custom call for arrays or tracers; returns (output, cache)."""
    queries, kv_cache = call.arrays[0], call.array("kv_cache")
    dtype = queries.dtype if call.output_code is None else numpy_dtype(call.output_code)
    output = jax.ShapeDtypeStruct(call.output_shape, dtype)
    check_shapes(specs_of(call.arrays), call.scalars, (dtype_code(dtype), output.shape))
    operands = [array for array in call.arrays if array is not None]
    if not any(isinstance(array, jax.core.Tracer) for array in operands):
        _check_contents(call, output)
    call.scalars["update_kv_cache"] = call.updates
    results, aliases = (output,), {}
    if call.updates:
        results = (output, jax.ShapeDtypeStruct(kv_cache.shape, kv_cache.dtype))
        aliases = {NAMES.index("kv_cache") - sum(x is None for x in call.arrays[:3]): 1}
    function = ffi.ffi_call(
        _TARGET, results, input_output_aliases=aliases, vmap_method="sequential"
    )
    got = function(*operands, **_attributes(call))
    return tuple(got) if call.updates else (got[0], kv_cache)


def _run_sharded(call, mesh, in_specs, out_specs):
    """Each device of a mesh runs the call on its part of the arrays."""
    if len(in_specs) not in (8, 9):
        raise error("in_specs", f"{len(in_specs)} specs; want one for each of the first 8 or 9 arrays")
    replicated = jax.sharding.PartitionSpec()
    specs = [*in_specs, *[replicated] * (len(NAMES) - len(in_specs))]
    present = [i for i, array in enumerate(call.arrays) if array is not None]

    def local(*arrays):
        mine = [None] * len(NAMES)
        for i, array in zip(present, arrays):
            mine[i] = array
        return _run(type(call)(tuple(mine), dict(call.scalars), call.settings, call.output_code))

    if hasattr(jax, "shard_map"):
        shard_map = functools.partial(jax.shard_map, check_vma=False)
    else:  # before jax 0.6
        from jax.experimental.shard_map import shard_map as before

        shard_map = functools.partial(before, check_rep=False)
    function = shard_map(
        local,
        mesh=mesh,
        in_specs=tuple(replicated if specs[i] is None else specs[i] for i in present),
        out_specs=out_specs,
    )
    return function(*(call.arrays[i] for i in present))


def run_call(call, in_place, out, mesh, in_specs, out_specs):
    """Runs a call whose queries are a JAX array; returns (output, cache)."""
    if in_place or out is not None:
        raise error(
            "in_place" if in_place else "out",
            "JAX arrays do not change; donate the cache to jax.jit, which then updates it in place",
        )
    call.arrays = tuple(None if x is None else jax.numpy.asarray(x) for x in call.arrays)
    if mesh is not None and in_specs is not None and out_specs is not None:
        return _run_sharded(call, mesh, in_specs, out_specs)
    return _run(call)


@functools.wraps(_attention.ragged_page_attention_v3)
def ragged_page_attention_v3(queries, *arguments, **keywords):
    """See `octavo.ragged_page_attention_v3`."""
    if kind_of(queries, "queries") == "numpy":
        queries = jax.numpy.asarray(queries)
    return _attention.ragged_page_attention_v3(queries, *arguments, **keywords)
