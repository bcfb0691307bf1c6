# SPDX-License-Identifier: Apache-2.0
"""The C module: see src/module.c. Descriptions of arrays are made by _arrays.py."""

from typing import Any

Description = tuple[int, int, tuple[int, ...], tuple[int, ...] | None, Any]
Arrays = tuple[Description | None, ...]
Scalars = dict[str, int | float]

version: str

def attention(arrays: Arrays, scalars: Scalars, threads: int, isa: str, pin: bool, /) -> None: ...
def check(arrays: Arrays, scalars: Scalars, /) -> None: ...
def prepare(threads: int, isa: str, pin: bool, /) -> None: ...
def release(threads: int, isa: str, pin: bool, /) -> None: ...
def page_elements(
    dtype: int,
    page_size: int,
    kv_heads: int,
    head_dim: int,
    value_dim: int,
    value_in_key: bool,
    /,
) -> int: ...
def dlpack(
    capsule: object, /
) -> tuple[int, int, int, int, tuple[int, ...], tuple[int, ...] | None, int]: ...
def xla_target(minor: int, /) -> object: ...
