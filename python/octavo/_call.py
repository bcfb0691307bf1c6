# SPDX-License-Identifier: Apache-2.0
"""A call in one normal form, between the function that users see and the ways to run it."""

import operator
import re

import numpy as np

from . import _octavo
from ._arrays import (
    ALIASES,
    DTYPE_NAMES,
    DTYPES,
    NAMES,
    copy,
    describe,
    describe_dtype,
    dtype_code,
    empty,
    error,
    kind_of,
    known_code,
    like_queries,
    refuse_masked,
    shape_of,
    share_memory,
    shown,
)

TYPES = {"decoder": 0, "encoder": 1, "encoder_decoder": 2}
PRECISIONS = {"strict": 0, "bf16": 1}
LAYOUTS = {"rows": 0, "columns": 1}

# Scalars by kind; those that are None are left to the library.
REALS = ("softmax_scale", "q_scale", "k_scale", "v_scale", "logits_soft_cap", "output_scale")
INTEGERS = (
    "sliding_window",
    "chunk_size",
    "page_size",
    "value_dim",
    "chunk_prefill_size",
    "num_kv_pages_per_block",
    "num_queries_per_block",
    "vmem_limit_bytes",
)
FLAGS = ("update_kv_cache", "value_in_key")
CHOICES = {"type": TYPES, "precision": PRECISIONS, "layout": LAYOUTS}


# The library's words where they are those of C programs, and Python's.
_WORDS = (
    ("set use_logits_soft_cap = false for none", "None for none"),
    ("with OCTAVO_KV_COLUMNS", 'with layout="columns"'),
    ("octavo_attention_page_elements", "octavo.page_elements"),
    ("(value_in_key): needs layout = OCTAVO_KV_COLUMNS", '(value_dim): needs layout="columns"'),
    ("beside value_in_key", "beside value_dim"),
    ("(values): has 0 axes", "(values): is None"),
    ("it must be 1 (all strides 0 mean a dense array)", "it must be 1; make a dense copy"),
    ("leave it at 0", "leave it out"),
    (
        "(block_tables): has 2 axes; it must be [S * pages_per_seq]",
        "(block_tables): has 2 axes; it must be [S * pages_per_seq], flatten it by reshape(-1)",
    ),
)
_DTYPE_WORDS = re.compile(rf"\b({'|'.join((*ALIASES, *DTYPES))})\b(?: \(\d+\))?")


def in_python(text):
    """A message of the library in the words of this module."""
    for theirs, ours in _WORDS:
        text = text.replace(theirs, ours)
    return _DTYPE_WORDS.sub(lambda found: DTYPE_NAMES[dtype_code(found[1])], text)


def guarded(function, *arguments):
    """Calls a function of the C module; a ValueError of it comes in the words of this module."""
    try:
        return function(*arguments)
    except ValueError as reason:
        raise ValueError(in_python(str(reason))) from None


def real_of(name, value, call="ragged paged attention"):
    """A float; TypeError for what is no number, also for text and objects that float() would read."""
    if type(value) is float:
        return value
    refuse_masked(value, f"{call} ({name})")
    kind = getattr(getattr(value, "dtype", None), "kind", "f")  # of NumPy's and JAX's dtypes
    try:
        if kind in "OSUcmM" or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
            raise TypeError("it would have to be converted")
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{call} ({name}): {shown(value)}; it must fit a float, which ends at some 1.8e308"
        ) from None
    except (RuntimeError, TypeError, ValueError) as reason:
        raise TypeError(f"{call} ({name}): {shown(value)} is no number") from reason


def integer_of(name, value, call="ragged paged attention"):
    """An int of 64 bits; TypeError for what is no integer, such as a float."""
    try:
        number = operator.index(value)
    except TypeError as reason:
        raise TypeError(f"{call} ({name}): {shown(value)} is no integer") from reason
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{call} ({name}): {shown(number)}; it must fit 64 bits")
    return number


def choice(name, value):
    """The number of a choice's name."""
    number = CHOICES[name].get(value) if isinstance(value, str) else None
    if number is None:
        raise error(name, f"{shown(value)}; it must be one of {', '.join(CHOICES[name])}")
    return number


def scalars_of(given):
    """The scalars of a dict by name, as Python's own numbers, without those that are None."""
    scalars = {name: real_of(name, given[name]) for name in REALS if given[name] is not None}
    for name in INTEGERS:
        if given[name] is not None:
            scalars[name] = integer_of(name, given[name])
    for name in FLAGS:
        scalars[name] = bool(given[name])
    for name in CHOICES:
        scalars[name] = choice(name, given[name])
    return scalars


class Call:
    """Arrays and scalars of one call, and what follows from them.

    Attributes
    ----------
    arrays : tuple
        One entry for each of ``NAMES``, an array or None.
    scalars : dict of str to int or float
        As the C module takes them.
    settings : tuple
        Threads, instruction set, pinning.
    output_code : int or None
        octavo_dtype of the output; None: that of the queries.
    """

    __slots__ = ("arrays", "output_code", "scalars", "settings")

    def __init__(self, arrays, scalars, settings, output_code):
        self.arrays = arrays
        self.scalars = scalars
        self.settings = settings
        self.output_code = output_code

    def array(self, name):
        """The array of this name, or None."""
        return self.arrays[NAMES.index(name)]

    @property
    def updates(self):
        """Whether the cache is written: not in cross-attention without new keys."""
        return self.scalars["update_kv_cache"] and not (
            self.scalars["type"] == TYPES["encoder_decoder"] and self.array("key_start_loc") is None
        )

    def choose_output(self, out):
        """Settles the output's dtype: with output_scale that of ``out`` or of the cache, if the
        caller names none."""
        if self.output_code is not None or "output_scale" not in self.scalars:
            return
        for name, array in (("output", out), ("kv_cache", self.array("kv_cache"))):
            if array is not None:
                self.output_code = describe_dtype(array, name)
                return

    @property
    def output_shape(self):
        """``(T, Hq, Dv)``, as far as the arrays are shaped well enough to tell."""
        shape = shape_of(self.arrays[0], "queries")
        if len(shape) != 3:
            raise error("queries", f"has {len(shape)} axes; it must be [T, Hq, D]")
        if self.scalars["layout"] == LAYOUTS["rows"]:
            return shape
        if self.scalars["value_in_key"]:
            # a width that no value has is refused when the call is checked, not by allocating it
            return (*shape[:2], min(max(self.scalars.get("value_dim", 0), 0), shape[2]))
        values = self.array("values")
        wide = shape_of(values, "values") if values is not None else ()
        return (*shape[:2], wide[2]) if len(wide) == 3 else shape


def output_code_of(output_dtype):
    """octavo_dtype of an output_dtype argument; None stays None."""
    if output_dtype is None:
        return None
    try:
        code = dtype_code(output_dtype)
    except TypeError:
        code = None
    if code is None:
        raise error(
            "output_dtype", f"{shown(output_dtype)} is not one of {', '.join(DTYPE_NAMES.values())}"
        )
    return code


def execute(call, output, kv_cache):
    """Runs a call into given memory: the output, and the cache if it is updated."""
    described = [
        None if array is None else describe(array, name)
        for name, array in zip(NAMES, call.arrays)
        if name != "kv_cache"
    ]
    described.insert(NAMES.index("kv_cache"), describe(kv_cache, "kv_cache", writable=call.updates))
    described.append(describe(output, "output", writable=True))
    guarded(_octavo.attention, tuple(described), call.scalars, *call.settings)


def specs_of(arrays):
    """What `check_shapes` wants to know of arrays, which may be traced ones."""
    return [
        None if array is None else (known_code(array.dtype, name), tuple(array.shape))
        for name, array in zip(NAMES, arrays)
    ]


def check_shapes(specs, scalars, output):
    """Raises ValueError for what dtypes, shapes and scalars alone show to be wrong.

    ``specs`` has ``(octavo_dtype, shape)`` or None for each of ``NAMES``; ``output`` is one
    more. The arrays need not exist: index arrays are taken to hold zeros, which is no sequence, and
    other vectors ones. A whole description in a spec's place is checked with its strides.
    """
    vectors = [spec[1] for spec in specs if spec and len(spec) == 2 and len(spec[1]) == 1]
    longest = max([1, *(shape[0] for shape in vectors)])
    zeros, ones = np.zeros(longest, np.int32), np.ones(longest, np.float32)
    described = []
    for name, spec in zip((*NAMES, "output"), (*specs, output)):
        if spec is None or len(spec) != 2:
            described.append(spec)
            continue
        code, shape = spec
        data = ones if code == DTYPES["float32"] else zeros
        described.append((data.__array_interface__["data"][0], code, tuple(shape), None, data))
    guarded(_octavo.check, tuple(described), scalars)


def run(call, in_place, out):
    """Runs a call on memory of NumPy, PyTorch or DLPack; returns (output, cache)."""
    queries, kv_cache = call.array("queries"), call.array("kv_cache")
    if out is None:
        output = empty(queries, call.output_shape, call.output_code)
    else:
        output = out
    updated = kv_cache
    if call.updates and not in_place:
        if out is not None and share_memory(
            describe(out, "output", writable=True), describe(kv_cache, "kv_cache")
        ):
            raise error("output", "lies in the same memory as kv_cache; what is written must lie apart")
        updated = copy(kv_cache, queries, "kv_cache")
    execute(call, output, updated)
    if kind_of(queries, "queries") == "dlpack":
        if out is None:
            output = like_queries(output, queries)
        if updated is not kv_cache:
            updated = like_queries(updated, queries)
    return output, updated
