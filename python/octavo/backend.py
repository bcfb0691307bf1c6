# SPDX-License-Identifier: Apache-2.0
"""Ragged paged attention as an inference engine holds it: an object made from a layer's attributes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ._arrays import (
    DTYPE_NAMES,
    NAMES,
    _view,
    describe,
    describe_dtype,
    dtype_code,
    kind_of,
    like_queries,
    numpy_dtype,
    refuse_masked,
    shape_of,
    shown,
)
from ._attention import Array, ragged_page_attention_v3
from ._call import PRECISIONS, TYPES, check_shapes, integer_of, real_of, scalars_of
from ._context import AttentionContext, settings_of

__all__ = ["AttentionBackend", "AttentionLayer"]

_CALL = "attention backend"
_ATTN_TYPES = {**{name: name for name in TYPES}, "encoder_only": "encoder"}

# Engines' names of a cache's dtype besides those of dtypes.
_CACHE_DTYPES = {"float": 0, "half": 1, "fp8": 3, "fp8_e4m3fn": 3}
_WIDE = (0, 1, 2)  # float32, float16, bfloat16


@dataclasses.dataclass
class AttentionLayer:
    """A layer's name, and how its cache was quantised.

    Parameters
    ----------
    layer_name : str
        As in `AttentionBackend.bind_cache`.
    q_scale : float, optional
        Queries are divided by it and rounded to the cache's dtype first.
    k_scale, v_scale : float, optional
        The cache holds ``k / k_scale`` and ``v / v_scale``, whatever its dtype.
    k_scales, v_scales : array of float32, shape (num_kv_heads,), optional
        A further factor for each kv head.
    """

    layer_name: str
    q_scale: float | None = None
    k_scale: float | None = None
    v_scale: float | None = None
    k_scales: Array | None = None
    v_scales: Array | None = None


class AttentionBackend:
    """Attention of the layers that are alike, with KV caches bound by layer name.

    Parameters
    ----------
    num_heads : int
        Query heads.
    head_size : int
        Lanes of a head, 1 to 512.
    scale : float
        Factor of the logits, as a rule ``head_size ** -0.5``.
    num_kv_heads : int, optional
        Key and value heads; num_heads by default.
    alibi_slopes : sequence of float, length num_heads, optional
        Slopes of linear biases.
    sliding_window : int, optional
        Keys that a query sees at most, its own position included.
    kv_cache_dtype : str or dtype, default "auto"
        What every bound cache must be: "auto" for whatever is bound, or "float32", "float",
        "float16", "half", "bfloat16", "fp8", "fp8_e4m3" (both float8_e4m3fn), "fp8_e5m2", "int8", or
        a dtype.
    logits_soft_cap : float, optional
        Bound of the logits; not 0.
    attn_type : {"decoder", "encoder", "encoder_only", "encoder_decoder"}, default "decoder"
        Which keys a query sees, as ``type`` of `ragged_page_attention_v3`; "encoder_only" is
        "encoder". Encoders too keep keys and values in a bound cache.
    kv_sharing_target_layer_name : str, optional
        Every layer of this backend reads the cache that is bound under this name and writes none.
    use_irope : bool, default False
        Chunked local attention: a query sees keys of its own chunk of ``irope_chunk_size`` absolute
        positions.
    irope_chunk_size : int, optional
        Required with use_irope, not looked at without.
    sinks : sequence of float, length num_heads, optional
        One more logit for each head, without a value.
    precision : {"strict", "bf16"}, default "strict"
        As in `ragged_page_attention_v3`.
    chunk_prefill_size, num_kv_pages_per_block, num_queries_per_block, vmem_limit_bytes : int, optional
        Tuning, as in `ragged_page_attention_v3`.
    context : AttentionContext, optional
        Threads and instruction set.

    Raises
    ------
    ValueError
        Options that make no valid call.

    Notes
    -----
    NumPy arrays, PyTorch tensors and what has DLPack are bound as they are and updated in place.
    JAX arrays do not change: after a call `cache` has the updated one. Inside ``jax.jit`` bind the
    cache that the program is given, and return what `cache` has then; a donated one is updated where
    it lies.

    Examples
    --------
    >>> import numpy as np, octavo
    >>> backend = octavo.AttentionBackend(4, 64, 64 ** -0.5, num_kv_heads=2)
    >>> backend.bind_cache("model.layers.0.attn", np.zeros((8, 16, 4, 1, 128), np.float32))
    >>> i32 = lambda *numbers: np.array(numbers, np.int32)
    >>> metadata = {"seq_lens": i32(1, 2), "block_tables": i32(0, 1),
    ...             "query_start_loc": i32(0, 1, 3), "request_distribution": i32(1, 1, 2)}
    >>> query = np.ones((3, 256), np.float32)
    >>> key = value = np.ones((3, 128), np.float32)
    >>> backend.forward("model.layers.0.attn", query, key, value, metadata).shape
    (3, 256)
    """

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: Sequence[float] | Array | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: Any = "auto",
        logits_soft_cap: float | None = None,
        attn_type: Literal["decoder", "encoder", "encoder_only", "encoder_decoder"] = "decoder",
        kv_sharing_target_layer_name: str | None = None,
        use_irope: bool = False,
        *,
        irope_chunk_size: int | None = None,
        sinks: Sequence[float] | Array | None = None,
        precision: Literal["strict", "bf16"] = "strict",
        chunk_prefill_size: int | None = None,
        num_kv_pages_per_block: int | None = None,
        num_queries_per_block: int | None = None,
        vmem_limit_bytes: int | None = None,
        context: AttentionContext | None = None,
    ) -> None:
        self.num_heads = _count("num_heads", num_heads)
        self.head_size = _count("head_size", head_size)
        self.num_kv_heads = (
            self.num_heads if num_kv_heads is None else _count("num_kv_heads", num_kv_heads)
        )
        if self.num_heads % self.num_kv_heads:
            raise _error(
                "num_kv_heads", f"{self.num_kv_heads} do not divide {self.num_heads} query heads"
            )
        self.scale = real_of("scale", scale, _CALL)
        if not math.isfinite(self.scale) or self.scale == 0:
            raise _error("scale", f"{scale}; it is 1 / sqrt(head_size) as a rule")
        self.alibi_slopes = _per_head("alibi_slopes", alibi_slopes, self.num_heads)
        self.sinks = _per_head("sinks", sinks, self.num_heads)
        self.sliding_window = sliding_window
        self.kv_cache_dtype = kv_cache_dtype
        self.logits_soft_cap = logits_soft_cap
        self.attn_type = attn_type
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.use_irope = bool(use_irope)
        self.irope_chunk_size = irope_chunk_size
        self.context = context
        settings_of(context, _CALL)
        if kv_sharing_target_layer_name is not None:
            _check_name(kv_sharing_target_layer_name)
        self._dtype = _cache_dtype(kv_cache_dtype)
        self._type = _choice("attn_type", attn_type, _ATTN_TYPES)
        _choice("precision", precision, PRECISIONS)
        if self.use_irope:
            if irope_chunk_size is None:
                raise _error(
                    "irope_chunk_size", "not given; use_irope needs the positions of a chunk"
                )
            _count("irope_chunk_size", irope_chunk_size)
        # What all calls have in common, by the names of ragged_page_attention_v3.
        self._common = {
            "softmax_scale": self.scale,
            "sliding_window": sliding_window,
            "logits_soft_cap": logits_soft_cap,
            "chunk_size": irope_chunk_size if self.use_irope else None,
            "type": self._type,
            "precision": precision,
            "chunk_prefill_size": chunk_prefill_size,
            "num_kv_pages_per_block": num_kv_pages_per_block,
            "num_queries_per_block": num_queries_per_block,
            "vmem_limit_bytes": vmem_limit_bytes,
            "update_kv_cache": kv_sharing_target_layer_name is None,
        }
        self._bindings = {}
        lanes = -(-self.head_size // 128) * 128
        try:
            self._check_cache((0, (0, 1, 2 * self.num_kv_heads, 1, lanes)), "rows", None)
        except (TypeError, ValueError) as reason:
            raise _wrapped("options", reason) from None

    def __repr__(self):
        return (
            f"AttentionBackend({self.num_heads}, {self.head_size}, {self.scale}, "
            f"num_kv_heads={self.num_kv_heads}, kv_cache_dtype={self.kv_cache_dtype!r}, "
            f"{len(self._bindings)} caches)"
        )

    def bind_cache(
        self,
        layer_name: str,
        kv_cache: Array,
        *,
        layout: Literal["rows", "columns"] = "rows",
        page_size: int | None = None,
    ) -> None:
        """Bind a cache to a layer; a layer that has one changes it.

        Parameters
        ----------
        layer_name : str
            The name that `forward` looks for.
        kv_cache : array
            As in `ragged_page_attention_v3`. It is kept and written, not copied.
        layout : {"rows", "columns"}, default "rows"
            How its pages lie.
        page_size : int, optional
            Slots of a page, with ``layout="columns"`` only.

        Raises
        ------
        ValueError
            Its shape, dtype or strides do not fit; the layer keeps what it had.
        TypeError
            It is no array.
        """
        _check_name(layer_name)
        try:
            code = describe_dtype(kv_cache, "kv_cache")
            if self._dtype not in (None, code):
                raise ValueError(
                    f"the cache is {DTYPE_NAMES[code]}, but kv_cache_dtype says "
                    f"{DTYPE_NAMES[self._dtype]}; bind one of that dtype, or use auto"
                )
            writes = self.kv_sharing_target_layer_name is None
            if kind_of(kv_cache, "kv_cache") == "jax":
                spec = (code, shape_of(kv_cache, "kv_cache"))
            else:
                spec = describe(kv_cache, "kv_cache", writable=writes)
            self._check_cache(spec, layout, page_size)
        except (TypeError, ValueError) as reason:
            raise _wrapped(_place(layer_name), reason) from None
        self._bindings[layer_name] = (kv_cache, layout, page_size)

    def unbind_cache(self, layer_name: str) -> Array:
        """Take a layer's cache away and return it; ValueError if it has none."""
        kv_cache = self._binding(layer_name, layer_name)[0]
        del self._bindings[layer_name]
        return kv_cache

    def cache(self, layer_name: str) -> Array:
        """The cache that is bound to a layer, updated by the calls so far; ValueError if none is."""
        return self._binding(layer_name, layer_name)[0]

    @property
    def layer_names(self) -> tuple[str, ...]:
        """The names of the layers that have a cache, in the order in which they were bound."""
        return tuple(self._bindings)

    def forward(
        self,
        layer: str | AttentionLayer | Any,
        query: Array,
        key: Array | None,
        value: Array | None,
        metadata: Mapping[str, Array] | Any,
        output: Array | None = None,
        output_scale: float | None = None,
        *,
        output_dtype: Any = None,
    ) -> Array:
        """Write the new keys and values into the layer's cache, and attend.

        Parameters
        ----------
        layer : str or object
            A layer's name; an `AttentionLayer`; or an object with its attributes, of which all but
            ``layer_name`` may be missing. Objects with ``_q_scale_float``, ``_k_scale_float`` or
            ``_v_scale_float``, as vLLM's layers have, are read by these alone: a q_scale of 1 there
            means none, and the others count where the cache's dtype is not float32, float16 or
            bfloat16, or not the key's.
        query : array, shape (T, num_heads * head_size) or (T, num_heads, head_size)
            float32, float16 or bfloat16.
        key, value : array, shape (T, num_kv_heads * head_size) or (T, num_kv_heads, head_size)
            In the cache's dtype, or in the query's: they are then quantised by the layer's scales,
            of which there must be one of keys and one of values. Not looked at, and may be None,
            where nothing is written: with kv_sharing_target_layer_name, and in cross-attention
            without key_start_loc.
        metadata : mapping or object
            The int32 arrays of the batch: ``seq_lens`` or ``kv_lens``, shape (S,);
            ``block_tables`` or ``block_table``, shape (S * pages_per_seq,) or (S, pages_per_seq);
            ``query_start_loc``, shape (S + 1,); ``request_distribution`` or ``distribution``, shape
            (3,); for cross-attention ``key_start_loc``, shape (S + 1,), or None for no new keys. One
            name of each; both only with the same numbers.
        output : array, shape like query, optional
            Where the output goes.
        output_scale : float, optional
            The output is divided by it, clipped to the range of its dtype and rounded.
        output_dtype : dtype or str, optional
            With output_scale: float8_e4m3fn, float8_e5m2 or int8. By default output's dtype, or the
            cache's if that is one of these.

        Returns
        -------
        array, shape (T, num_heads * head_size)
            ``output`` itself, if given; else an array of the query's kind and dtype. Rows of no
            sequence are 0.

        Raises
        ------
        ValueError
            As `ragged_page_attention_v3`, or the layer has no cache; the text names the layer.
            Nothing was written then.
        TypeError
            An argument that is no array.
        MemoryError
            There is no memory for the call.
        """
        name = layer if isinstance(layer, str) else getattr(layer, "layer_name", None)
        _check_name(name)
        owner = self.kv_sharing_target_layer_name or name
        binding = self._binding(owner, name)
        try:
            result, kv_cache = self._call(
                layer, (query, key, value), metadata, binding, output, output_scale, output_dtype
            )
        except (TypeError, ValueError) as reason:
            raise _wrapped(_place(name), reason) from reason
        if kv_cache is not binding[0]:
            self._bindings[owner] = (kv_cache, *binding[1:])
        return result

    def _call(self, layer, rows, metadata, binding, output, output_scale, output_dtype):
        kv_cache, layout, page_size = binding
        batch = _batch_of(metadata)
        query, key, value = rows
        kind = kind_of(query, "query")
        queries = self._heads("query", query, self.num_heads)
        if self._common["update_kv_cache"] and not (
            self._type == "encoder_decoder" and batch["key_start_loc"] is None
        ):
            keys = self._heads("key", key, self.num_kv_heads)
            values = self._heads("value", value, self.num_kv_heads)
            updates = True
        else:
            keys = values = _no_rows(queries, self.num_kv_heads, kv_cache)
            updates = False
        out = None if output is None else self._heads("output", output, self.num_heads)
        in_place = updates and "jax" not in (kind, kind_of(kv_cache, "kv_cache"))
        result, updated = ragged_page_attention_v3(
            queries,
            keys,
            values,
            kv_cache,
            **batch,
            **self._common | {"update_kv_cache": updates},
            **_scales_of(layer, kv_cache, keys),
            attention_sink=_like(queries, self.sinks),
            alibi_slopes=_like(queries, self.alibi_slopes),
            output_scale=output_scale,
            output_dtype=output_dtype,
            layout=layout,
            page_size=page_size,
            in_place=in_place,
            out=out,
            context=self.context,
        )
        if output is not None:
            return output, updated
        result = result.reshape(result.shape[0], self.num_heads * self.head_size)
        return like_queries(result, query) if kind == "dlpack" else result, updated

    def _heads(self, name, rows, n_heads):
        """Rows as (T, heads, head_size), over the same memory."""
        if rows is None:
            raise TypeError(f"{name} is None; {self._wanted(n_heads)}")
        if kind_of(rows, name) == "dlpack":
            rows = _view(describe(rows, name, writable=name == "output"))
        shape = tuple(rows.shape)
        if len(shape) == 3 and shape[1:] == (n_heads, self.head_size):
            return rows
        if len(shape) != 2 or shape[1] != n_heads * self.head_size:
            raise ValueError(f"{name} has shape {shape}; {self._wanted(n_heads)}")
        return rows.reshape(shape[0], n_heads, self.head_size)

    def _wanted(self, n_heads):
        return f"it must be [T, {n_heads} * {self.head_size}] or [T, {n_heads}, {self.head_size}]"

    def _binding(self, name, layer_name):
        if name in self._bindings:
            return self._bindings[name]
        bound = [_shown_name(other) for other in sorted(self._bindings)]
        some = f"{', '.join(bound[:4])}{f' and {len(bound) - 4} more' * (len(bound) > 4)}"
        raise _error(
            _place(layer_name),
            f"no cache is bound as '{_shown_name(name)}'; bound are: {some or 'none'}; call bind_cache",
        )

    def _check_cache(self, kv_cache, layout, page_size):
        """Raises ValueError if no call with a cache of this spec (see `check_shapes`) can be right:
        tries one of no tokens."""
        code, i32 = kv_cache[0 if len(kv_cache) == 2 else 1], (6, (1,))
        specs = dict.fromkeys(NAMES)
        specs.update(
            queries=(0, (0, self.num_heads, self.head_size)),
            keys=(code, (0, self.num_kv_heads, self.head_size)),
            values=(code, (0, self.num_kv_heads, self.head_size)),
            kv_cache=kv_cache,
            kv_lens=i32,
            block_tables=i32,
            query_start_loc=(6, (2,)),
            distribution=(6, (3,)),
            alibi_slopes=None if self.alibi_slopes is None else (0, self.alibi_slopes.shape),
        )
        given = dict.fromkeys(("q_scale", "k_scale", "v_scale", "output_scale", "value_dim"))
        scalars = scalars_of(
            {
                **given,
                **self._common,
                "layout": layout,
                "page_size": page_size,
                "value_in_key": False,
            }
        )
        check_shapes([specs[name] for name in NAMES], scalars, specs["queries"])


def _error(where, text):
    return ValueError(f"{_CALL} ({where}): {text}")


def _shown_name(name):
    """A layer's name in a message: characters that can be printed, and of a long one both ends."""
    if not name.isprintable():
        name = repr(name)[1:-1]
    return name if len(name) <= 120 else f"{name[:57]}...{name[-60:]}"


def _place(layer_name):
    return f"layer {_shown_name(layer_name)}"


def _wrapped(where, reason):
    """The same exception with the place before its text."""
    kind = TypeError if isinstance(reason, TypeError) else ValueError
    return kind(f"{_CALL} ({where}): {reason}")


def _count(name, value):
    """A number of at least 1."""
    number = integer_of(name, value, _CALL)
    if not 1 <= number < 2**31:
        raise _error(name, f"{number}; it must be 1 to {2**31 - 1}")
    return number


def _choice(name, value, choices):
    if not isinstance(value, str) or value not in choices:
        raise _error(name, f"{shown(value)}; it must be one of {', '.join(choices)}")
    return choices[value]


def _check_name(name):
    if not isinstance(name, str) or not name:
        raise _error("layer", f"{shown(name)} is no name; caches are bound by layer name")


def _cache_dtype(name):
    """octavo_dtype of a kv_cache_dtype; None for "auto"."""
    if isinstance(name, str) and name == "auto":
        return None
    code = _CACHE_DTYPES.get(name) if isinstance(name, str) else None
    if code is None:
        try:
            code = dtype_code(name)
        except TypeError:
            code = None
    if code is None or code == 6:
        raise _error(
            "kv_cache_dtype",
            f"{shown(name)} is no dtype of a cache; use auto, float32, float16, bfloat16, fp8, fp8_e4m3, "
            "fp8_e5m2 or int8",
        )
    return code


def _per_head(name, values, n_heads):
    """A float32 copy of one number for each head."""
    if values is None:
        return None
    refuse_masked(values, f"{_CALL} ({name})")
    try:
        values = list(values)
    except TypeError:
        raise TypeError(
            f"{_CALL} ({name}): {shown(values)}; it must have one number for each of {n_heads} heads"
        ) from None
    numbers = np.array([real_of(name, x, _CALL) for x in values], np.float32)
    if len(numbers) != n_heads:
        raise _error(name, f"{len(numbers)} values; it must have one for each of {n_heads} heads")
    return numbers


def _like(queries, vector):
    """A vector of the backend as the kind of the queries."""
    if vector is None or kind_of(queries, "query") != "torch":
        return vector
    import torch

    return torch.from_numpy(vector)


def _no_rows(queries, n_heads, kv_cache):
    """What stands for keys and values that nobody looks at: the right shape and dtype."""
    shape = (queries.shape[0], n_heads, queries.shape[2])
    kind = kind_of(queries, "query")
    if kind == "torch" and kind_of(kv_cache, "kv_cache") == "torch":
        return kv_cache.new_empty((1, 1, shape[2])).expand(shape)
    if kind == "jax":
        import jax

        return jax.numpy.zeros(shape, kv_cache.dtype)
    dtype = numpy_dtype(describe_dtype(kv_cache, "kv_cache"))
    return np.broadcast_to(np.zeros(shape[2], dtype), shape)


def _scales_of(layer, kv_cache, keys):
    """The scales of a layer, by the names of ragged_page_attention_v3."""
    if isinstance(layer, str):
        return {}
    if any(hasattr(layer, f"_{letter}_scale_float") for letter in "qkv"):
        code = describe_dtype(kv_cache, "kv_cache")
        if code in _WIDE and describe_dtype(keys, "key") == code:
            return {}
        scales = {f"{x}_scale": getattr(layer, f"_{x}_scale_float", None) for x in "qkv"}
        if scales["q_scale"] is not None and real_of("_q_scale_float", scales["q_scale"]) == 1:
            scales["q_scale"] = None
        return scales
    names = ("q_scale", "k_scale", "v_scale", "k_scales", "v_scales")
    return {name: getattr(layer, name, None) for name in names}


_FIELDS = {
    "kv_lens": ("seq_lens", "kv_lens"),
    "block_tables": ("block_tables", "block_table"),
    "query_start_loc": ("query_start_loc",),
    "distribution": ("request_distribution", "distribution"),
    "key_start_loc": ("key_start_loc",),
}


def _batch_of(metadata):
    """The index arrays of a step, by the names of ragged_page_attention_v3."""
    batch = {}
    for name, spellings in _FIELDS.items():
        if isinstance(metadata, Mapping):
            found = [metadata.get(x) for x in spellings]
        else:
            found = [getattr(metadata, x, None) for x in spellings]
        found = [array for array in found if array is not None]
        if not found and name != "key_start_loc":
            raise ValueError(f"the metadata has no {' or '.join(spellings)}")
        if len(found) == 2 and found[0] is not found[1] and not _are_equal(*found, name):
            raise ValueError(
                f"the metadata has both {' and '.join(spellings)}, which are not known to be equal; "
                "leave one out"
            )
        batch[name] = found[0] if found else None
    tables = batch["block_tables"]
    if len(shape_of(tables, "block_tables")) == 2:
        batch["block_tables"] = _flat_tables(tables, shape_of(batch["kv_lens"], "kv_lens"))
    return batch


def _are_equal(a, b, name):
    """Whether two index arrays hold the same numbers, where that is known: not of traced ones."""
    try:
        a, b = (_view(describe(array, name)).reshape(-1) for array in (a, b))
    except (TypeError, ValueError) as reason:
        if type(reason) in (TypeError, ValueError):
            raise
        return False  # JAX's own error for an array without contents
    return np.array_equal(a, b)


def _is_compiling():
    import torch

    return torch.compiler.is_compiling()


def _flat_tables(tables, lens_shape):
    """(S, pages_per_seq) as (S * pages_per_seq,)."""
    kind = kind_of(tables, "block_tables")
    if kind == "dlpack":
        tables = _view(describe(tables, "block_tables"))
    elif kind == "torch" and not tables.is_contiguous() and not _is_compiling():
        describe(tables, "block_tables")  # a storage that is too short is not to be read by reshape()
    if len(lens_shape) == 1 and tables.shape[0] != lens_shape[0]:
        raise ValueError(
            f"block_tables has {tables.shape[0]} rows for {lens_shape[0]} sequences; it must have one "
            "for each"
        )
    return tables.reshape(-1)
