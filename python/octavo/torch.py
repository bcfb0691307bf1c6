# SPDX-License-Identifier: Apache-2.0
"""Ragged paged attention as PyTorch operators, usable inside ``torch.compile``.

Importing this module registers, for tensors in the CPU's memory,

``torch.ops.octavo.ragged_page_attention_v3``
    Returns the output and an updated copy of the cache.
``torch.ops.octavo.ragged_page_attention_v3_``
    Writes the cache in place and returns the output.
``torch.ops.octavo.ragged_page_attention_v3_read``
    Writes nothing (``update_kv_cache`` is False) and returns the output.

Their arguments are those of `octavo.ragged_page_attention_v3`: tensors by position or name, in the
order queries, keys, values, kv_cache, kv_lens, block_tables, query_start_loc, distribution,
attention_sink, key_start_loc, alibi_slopes, k_scales, v_scales; the rest by name. ``output_dtype`` is a
name, and ``threads``, ``isa`` and ``pin`` stand for a context. `ragged_page_attention_v3` here has the
arguments of the one in `octavo` and calls the right operator. There are no gradients.
"""

import functools

import torch

from . import _attention
from ._arrays import DTYPE_NAMES, NAMES, copy, dtype_code
from ._call import (
    CHOICES,
    FLAGS,
    INTEGERS,
    REALS,
    Call,
    check_shapes,
    execute,
    run,
    scalars_of,
    specs_of,
)
from ._context import DEFAULT_SETTINGS

__all__ = ["ragged_page_attention_v3"]

_OPTIONAL = ("values", *NAMES[8:])

# The scalars of the operators and what stands for them if they are not given.
_DEFAULTS = {
    **dict.fromkeys((*REALS, *INTEGERS)),
    **{name: next(iter(choices)) for name, choices in CHOICES.items()},
    "update_kv_cache": True,
    "value_in_key": False,
    "output_dtype": None,
    "threads": DEFAULT_SETTINGS[0],
    "isa": DEFAULT_SETTINGS[1],
    "pin": DEFAULT_SETTINGS[2],
}


def _schema(writes_cache, result):
    """The text of an operator's schema."""
    arguments = []
    for name in NAMES:
        kind = "Tensor(a!)" if name == "kv_cache" and writes_cache else "Tensor"
        arguments.append(f"{kind}{'?' * (name in _OPTIONAL)} {name}{'=None' * (name in NAMES[8:])}")
    arguments.append("*")
    arguments += [f"float? {name}=None" for name in REALS]
    arguments += [f"int? {name}=None" for name in INTEGERS]
    arguments += [f"bool {name}={_DEFAULTS[name]}" for name in FLAGS]
    arguments += [f'str {name}="{_DEFAULTS[name]}"' for name in CHOICES]
    arguments += ["str? output_dtype=None", "int threads=0", 'str isa=""', "bool pin=False"]
    return f"({', '.join(arguments)}) -> {result}"


def _call_of(tensors, given, **fixed):
    """The call that an operator's arguments make."""
    given = {**_DEFAULTS, **given, **fixed}
    arrays = (*tensors, *[None] * (len(NAMES) - len(tensors)))
    output_dtype = given["output_dtype"]
    code = None if output_dtype is None else dtype_code(output_dtype)
    return Call(arrays, scalars_of(given), (given["threads"], given["isa"], given["pin"]), code)


def _new_output(call):
    queries = call.arrays[0]
    dtype = queries.dtype
    if call.output_code is not None:
        dtype = getattr(torch, DTYPE_NAMES[call.output_code])
    return queries.new_empty(call.output_shape, dtype=dtype)


def _copied(*tensors, **given):
    call = _call_of(tensors, given)
    output = _new_output(call)
    cache = copy(tensors[3], tensors[3], "kv_cache")
    execute(call, output, cache)
    return output, cache


def _in_place(*tensors, **given):
    call = _call_of(tensors, given)
    output = _new_output(call)
    execute(call, output, tensors[3])
    return output


def _read(*tensors, **given):
    call = _call_of(tensors, given, update_kv_cache=False)
    output = _new_output(call)
    execute(call, output, tensors[3])
    return output


def _fake_output(call):
    """The output's shape while a program is traced; what is known to be wrong is an error now."""
    output = _new_output(call)
    specs = specs_of(call.arrays)
    out = (dtype_code(output.dtype), tuple(output.shape))
    if all(type(n) is int for spec in (*specs, out) if spec for n in spec[1]):
        check_shapes(specs, call.scalars, out)
    return output


def _copied_fake(*tensors, **given):
    cache = torch.empty_like(tensors[3], memory_format=torch.contiguous_format)
    return _fake_output(_call_of(tensors, given)), cache


def _in_place_fake(*tensors, **given):
    return _fake_output(_call_of(tensors, given))


def _read_fake(*tensors, **given):
    return _fake_output(_call_of(tensors, given, update_kv_cache=False))


def _register(suffix, implementation, fake, result):
    writes = ("kv_cache",) if suffix == "_" else ()
    op = torch.library.custom_op(
        f"octavo::ragged_page_attention_v3{suffix}",
        implementation,
        mutates_args=writes,
        device_types="cpu",
        schema=_schema(bool(writes), result),
    )
    op.register_fake(fake)


_register("", _copied, _copied_fake, "(Tensor, Tensor)")
_register("_", _in_place, _in_place_fake, "Tensor")
_register("_read", _read, _read_fake, "Tensor")


def run_call(call, in_place, out):
    """Runs a call whose queries are a tensor; returns (output, cache)."""
    if not all(array is None or isinstance(array, torch.Tensor) for array in call.arrays):
        return run(call, in_place, out)
    tracing = torch.compiler.is_compiling()
    if out is not None and not tracing:
        output, cache = run(call, in_place, out)
        torch.autograd.graph.increment_version(out)
        if in_place and call.updates:
            torch.autograd.graph.increment_version(cache)
        return output, cache
    kv_cache = call.arrays[3]
    tensors = call.arrays
    given = _given(call)
    if not call.updates:
        output, cache = torch.ops.octavo.ragged_page_attention_v3_read(*tensors, **given), kv_cache
    elif in_place:
        output, cache = torch.ops.octavo.ragged_page_attention_v3_(*tensors, **given), kv_cache
    else:
        output, cache = torch.ops.octavo.ragged_page_attention_v3(*tensors, **given)
    return output if out is None else out.copy_(output), cache


def _given(call):
    """An operator's keywords for a call: what differs from its defaults, as each costs time."""
    given = {}
    for name, value in call.scalars.items():
        given[name] = list(CHOICES[name])[value] if name in CHOICES else value
    if call.output_code is not None:
        given["output_dtype"] = DTYPE_NAMES[call.output_code]
    given["threads"], given["isa"], given["pin"] = call.settings
    return {name: value for name, value in given.items() if value != _DEFAULTS[name]}


@functools.wraps(_attention.ragged_page_attention_v3)
def ragged_page_attention_v3(queries, *arguments, **keywords):
    """See `octavo.ragged_page_attention_v3`."""
    if not isinstance(queries, torch.Tensor):
        raise TypeError(
            f"ragged paged attention (queries): {type(queries).__name__} is no torch.Tensor"
        )
    return _attention.ragged_page_attention_v3(queries, *arguments, **keywords)
