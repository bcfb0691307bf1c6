# SPDX-License-Identifier: Apache-2.0
"""The function itself: its arguments, its text, and the way to what runs it."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from ._arrays import NAMES, error, kind_of, shape_of
from ._call import Call, output_code_of, run, scalars_of
from ._context import AttentionContext, settings_of

# A NumPy array, a PyTorch tensor, a JAX array or anything with __dlpack__.
Array = Any
Queries = TypeVar("Queries")


def ragged_page_attention_v3(
    queries: Queries,
    keys: Array,
    values: Array | None,
    kv_cache: Array,
    kv_lens: Array,
    block_tables: Array,
    query_start_loc: Array,
    distribution: Array,
    attention_sink: Array | None = None,
    *,
    softmax_scale: float | None = 1.0,
    sliding_window: int | None = None,
    logits_soft_cap: float | None = None,
    q_scale: float | None = None,
    k_scale: float | None = None,
    v_scale: float | None = None,
    chunk_prefill_size: int | None = None,
    num_kv_pages_per_block: int | None = None,
    num_queries_per_block: int | None = None,
    vmem_limit_bytes: int | None = None,
    platform: str | None = None,
    cfg: Any = None,
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    softmax_aux: Array | None = None,
    update_kv_cache: bool = True,
    precision: Literal["strict", "bf16"] = "strict",
    type: Literal["decoder", "encoder", "encoder_decoder"] = "decoder",  # noqa: A002  the library's word
    chunk_size: int | None = None,
    alibi_slopes: Array | None = None,
    k_scales: Array | None = None,
    v_scales: Array | None = None,
    output_scale: float | None = None,
    output_dtype: Any = None,
    key_start_loc: Array | None = None,
    layout: Literal["rows", "columns"] = "rows",
    page_size: int | None = None,
    value_dim: int | None = None,
    in_place: bool = False,
    out: Array | None = None,
    context: AttentionContext | None = None,
) -> tuple[Queries, Array]:
    """Ragged paged attention with the update of the cache, for a batch of ragged sequences.

    Sequence ``i`` owns the query rows ``query_start_loc[i]`` to ``query_start_loc[i + 1] - 1``. Its
    ``t``-th new token sits at position ``kv_lens[i] - q_len + t``, and position ``p`` lies in slot
    ``p % page_size`` of page ``block_tables[i * pages_per_seq + p // page_size]``. First the keys
    and values of all new tokens are written into their slots, then every query attends to the keys
    at positions up to its own. For the keys that it sees::

        s = q . k * softmax_scale * k_scale * q_scale
        s = logits_soft_cap * tanh(s / logits_soft_cap)     # with a cap
        s = s + alibi_slope * -|p - j|                      # with ALiBi
        out = v_scale * sum(softmax(s) * v)

    Sums are float32 and the result is rounded once. A row's bits depend on its query and the keys
    and values that it sees, and on the instruction set: not on the rest of the batch, threads, page
    size or the way a prompt is cut into calls.

    Sizes: ``T`` rows of tokens, ``S`` rows of sequences, ``P`` pages, ``Hq`` query and ``Hkv`` kv
    heads, ``D`` lanes of a query and a key (1 to 512, with ``layout="columns"`` to 576), ``Dv`` of a
    value and of the output (1 to 512; D with ``layout="rows"``).

    Parameters
    ----------
    queries : array, shape (T, Hq, D)
        float32, float16 or bfloat16. Its kind is that of the results.
    keys, values : array, shape (T, Hkv, D) and (T, Hkv, Dv)
        Of the new tokens, in the cache's dtype. Also in the queries' dtype, if both k and v scales
        are given: they are then divided by them, clipped to the range of the cache's dtype and
        rounded to it, nearest even, int8 as well. With ``value_dim`` values are None. Where nothing
        is written (``update_kv_cache=False``, or ``type="encoder_decoder"`` without
        ``key_start_loc``) their data are not read, but their shape and dtype still count, as Hkv is
        known from them: any memory of the right shape does, also one row broadcast. Only
        `AttentionBackend`, which is told its kv heads, takes None there.
    kv_cache : array, shape (P, page_size, ceil(2 * Hkv / pk), pk, Dp)
        float32, float16, bfloat16, float8_e4m3fn, float8_e5m2 or int8, with ``pk = 4 // itemsize``
        and ``Dp`` = D rounded up to a multiple of 128. In a slot row ``2 * h`` is the key and row
        ``2 * h + 1`` the value of kv head ``h``. Any strides, as long as slots are dense.
    kv_lens : array of int32, shape (S,)
        Length of each sequence in tokens after this call, the new ones included.
    block_tables : array of int32, shape (S * pages_per_seq,)
        Page ids, one row after the other. Entries that no sequence uses may hold anything.
    query_start_loc : array of int32, shape (S + 1,)
        First row of each sequence.
    distribution : array of int32, shape (3,)
        Sequences before ``[0]`` have one new token each, those before ``[1]`` a fixed number;
        ``[2]`` is how many there are. Results depend on ``[2]`` alone.
    attention_sink : array of float32, shape (Hq,), optional
        One more logit for each head, unscaled, without a value.
    softmax_scale : float, default 1.0
        Factor of the logits: 1, not ``D ** -0.5``, which None stands for.
    sliding_window : int, optional
        Keys that a query sees at most, its own position included.
    logits_soft_cap : float, optional
        Bound of the logits; not 0.
    q_scale : float, optional
        Queries are divided by it and rounded to the cache's dtype first. With an int8 cache they are
        truncated towards zero, as the original's cast does it, while new keys and values are rounded
        to the nearest.
    k_scale, v_scale : float, optional
        The cache holds ``k / k_scale`` and ``v / v_scale``.
    chunk_prefill_size, num_kv_pages_per_block, num_queries_per_block : int, optional
        Tuning, in tokens, pages and tokens: speed, never bits. Chosen from the caches' sizes by
        default.
    vmem_limit_bytes : int, optional
        Bytes of scratch of one thread; too few for one token is an error.
    platform : str, optional
        Accepted and not looked at: there is one platform.
    cfg : object, optional
        Its attributes of the names of the tuning arguments are used where those are None.
    mesh, in_specs, out_specs : optional
        JAX only, all three or none: run under ``jax.shard_map`` with these. in_specs has a spec for
        each of the first eight or nine arrays; other arrays are replicated.
    softmax_aux : array of float32, shape (Hq,), optional
        Another name of ``attention_sink``.
    update_kv_cache : bool, default True
        False: all is read from the cache, nothing is written, and the data of keys and values are
        not read; their shape and dtype still count.
    precision : {"strict", "bf16"}, default "strict"
        Softmax weights enter the product with the values as they are, or rounded to bfloat16, which
        costs up to 2**-9 of a value and is faster where the machine has bfloat16 products.
    type : {"decoder", "encoder", "encoder_decoder"}, default "decoder"
        Which keys a query sees: those up to its own position; all of its sequence (a window then
        reaches to both sides); or all of another sequence, whose new keys, if any, have rows of
        their own (``key_start_loc``).
    chunk_size : int, optional
        A query sees keys only of its own chunk of so many positions, counted from 0.
    alibi_slopes : array of float32, shape (Hq,), optional
        Slopes of linear biases.
    k_scales, v_scales : array of float32, shape (Hkv,), optional
        One scale for each kv head, besides ``k_scale`` and ``v_scale``: both are factors.
    output_scale : float, optional
        The output is divided by it, clipped to the range of ``output_dtype`` and rounded.
    output_dtype : dtype or str, optional
        With ``output_scale``: float8_e4m3fn, float8_e5m2 or int8. By default ``out``'s dtype, or the
        cache's if that is one of these.
    key_start_loc : array of int32, shape (S + 1,), optional
        With ``type="encoder_decoder"``: rows of each sequence's new keys and values, of which there
        may be more or fewer than T. Without it there are none: keys and values are then treated as
        with ``update_kv_cache=False``.
    layout : {"rows", "columns"}, default "rows"
        ``"columns"``: kv_cache has shape (P, E) with ``E = octavo.page_elements(...)``, the layout
        in which the kernel is fastest; keys may then be up to 576 lanes wide, and values narrower or
        wider than keys.
    page_size : int, optional
        Slots of a page, with ``layout="columns"`` only.
    value_dim : int, optional
        With ``layout="columns"``: a value is the first ``value_dim`` lanes of its key, and ``values``
        is None (latent attention).
    in_place : bool, default False
        Write into ``kv_cache`` and return it. By default the cache is copied first, as JAX does.
        Refused for JAX arrays: donate them.
    out : array, optional
        Where the output goes, shape (T, Hq, Dv); it may not share memory with the others.
    context : AttentionContext, optional
        Threads and instruction set. Calls that take less than some 0.1 ms (a few tokens over short
        sequences) are as fast with ``AttentionContext(threads=1)``, and leave the other cores alone.

    Returns
    -------
    output : array, shape (T, Hq, Dv)
        Of the queries' kind and dtype; rows of no sequence are 0.
    kv_cache : array
        The updated cache; the given one if nothing was to be written.

    Raises
    ------
    ValueError
        Shapes, dtypes, strides or numbers that make no valid call, the contents of the index arrays
        included; nothing was written then. Inside ``jax.jit`` contents are known only when the
        program runs: JAX then raises ``jax.errors.JaxRuntimeError`` or ValueError, either with the
        same text, and a cache that was donated to the program is gone.
    TypeError
        An argument that is no array, or a number that is none; also a float for an integer.
    MemoryError
        There is no memory for the call.

    Notes
    -----
    Arrays are used where they lie, without copies; they must be in the CPU's memory, with dense last
    axes. The interpreter's lock is released during the call. Any number of threads may call at once.

    Examples
    --------
    >>> import numpy as np, octavo
    >>> q = np.ones((3, 4, 64), np.float32)  # a prompt of two tokens and a decode step
    >>> k = v = np.ones((3, 2, 64), np.float32)
    >>> cache = np.zeros((8, 16, 4, 1, 128), np.float32)
    >>> i32 = lambda *numbers: np.array(numbers, np.int32)
    >>> output, cache = octavo.ragged_page_attention_v3(
    ...     q, k, v, cache, i32(1, 2), i32(0, 1), i32(0, 1, 3), i32(1, 1, 2), softmax_scale=0.125)
    >>> output.shape
    (3, 4, 64)
    """
    if softmax_aux is not None:
        if attention_sink is not None:
            raise error("softmax_aux", "given besides attention_sink, whose other name it is")
        attention_sink = softmax_aux
    arrays = (
        queries,
        keys,
        values,
        kv_cache,
        kv_lens,
        block_tables,
        query_start_loc,
        distribution,
        attention_sink,
        key_start_loc,
        alibi_slopes,
        k_scales,
        v_scales,
    )
    kind = kind_of(queries, "queries")
    for name, array in zip(NAMES, arrays):
        if array is not None:
            kind_of(array, name)
        elif name in _REQUIRED:
            raise TypeError(
                f"ragged paged attention ({name}): None is no array"
                + "; shape and dtype count even where no data are read" * (name == "keys")
            )
    if softmax_scale is None:
        softmax_scale = max(1, shape_of(queries, "queries")[-1]) ** -0.5
    tuning = {
        "chunk_prefill_size": chunk_prefill_size,
        "num_kv_pages_per_block": num_kv_pages_per_block,
        "num_queries_per_block": num_queries_per_block,
    }
    for name in tuning:
        if tuning[name] is None:
            tuning[name] = getattr(cfg, name, None)
    scalars = scalars_of(
        {
            **tuning,
            "softmax_scale": softmax_scale,
            "sliding_window": sliding_window,
            "logits_soft_cap": logits_soft_cap,
            "q_scale": q_scale,
            "k_scale": k_scale,
            "v_scale": v_scale,
            "vmem_limit_bytes": vmem_limit_bytes,
            "update_kv_cache": update_kv_cache,
            "precision": precision,
            "type": type,
            "chunk_size": chunk_size,
            "output_scale": output_scale,
            "layout": layout,
            "page_size": page_size,
            "value_in_key": value_dim is not None,
            "value_dim": value_dim,
        }
    )
    call = Call(arrays, scalars, settings_of(context), output_code_of(output_dtype))
    call.choose_output(out)
    if kind == "jax":
        from . import jax

        return jax.run_call(call, in_place, out, mesh, in_specs, out_specs)
    if mesh is not None:
        raise error("mesh", "only JAX arrays can be sharded by a mesh")
    if kind == "torch":
        from . import torch

        return torch.run_call(call, in_place, out)
    return run(call, in_place, out)


_REQUIRED = ("keys", "kv_cache", "kv_lens", "block_tables", "query_start_loc", "distribution")
