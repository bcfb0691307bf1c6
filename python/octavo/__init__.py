# SPDX-License-Identifier: Apache-2.0
"""Ragged paged attention on CPUs for NumPy, PyTorch and JAX, and plans of models that are split.

`ragged_page_attention_v3` is the attention of one step; `AttentionBackend` calls it for the layers of an
inference engine. `octavo.torch` and `octavo.jax` hold the same function for programs that compile: a
PyTorch custom operator and a JAX custom call. `plan` tells what splitting a model over ranks costs.
"""

from __future__ import annotations

from typing import Any

from . import _octavo
from ._arrays import dtype_code, error
from ._attention import ragged_page_attention_v3
from ._call import integer_of
from ._context import AttentionContext
from ._planner import plan
from .backend import AttentionBackend, AttentionLayer

__version__: str = _octavo.version
__all__ = [
    "AttentionBackend",
    "AttentionContext",
    "AttentionLayer",
    "__version__",
    "page_elements",
    "plan",
    "ragged_page_attention_v3",
]


def page_elements(
    dtype: Any,
    page_size: int,
    num_kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    *,
    value_in_key: bool = False,
) -> int:
    """Elements of a page of a cache with ``layout="columns"``.

    Parameters
    ----------
    dtype : dtype or str
        Of the cache.
    page_size : int
        Slots of a page.
    num_kv_heads, head_dim : int
        Heads, and lanes of a key.
    value_dim : int, optional
        Lanes of a value; those of a key by default.
    value_in_key : bool, default False
        Values are the first lanes of their keys and take no room.

    Returns
    -------
    int
        The second axis of such a cache, whose shape is (P, page_elements).

    Raises
    ------
    ValueError
        There is no such page, or an extent does not fit 64 bits.
    TypeError
        An extent is no integer.
    """
    code = dtype_code(dtype)
    extents = {
        "page_size": page_size,
        "num_kv_heads": num_kv_heads,
        "head_dim": head_dim,
        "value_dim": head_dim if value_dim is None else value_dim,
    }
    numbers = [integer_of(name, extent) for name, extent in extents.items()]
    elements = 0
    if code is not None:
        elements = _octavo.page_elements(code, *(max(n, 0) for n in numbers), value_in_key)
    if elements <= 0:
        raise error(
            "page",
            f"none of {numbers[0]} slots, {numbers[1]} heads and {numbers[2]} lanes of {dtype}",
        )
    return elements
