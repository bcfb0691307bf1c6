# SPDX-License-Identifier: Apache-2.0
"""What a way to split a model over ranks costs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ._call import integer_of, real_of

AXES = ("data", "expert", "seq", "model")
PHASES = {"both": 3, "prefill": 1, "generate": 2}
DTYPES = ("file", "f32", "bf16")
LOGITS = ("last", "all")
STRATEGY = {
    "data_parallelism": "data",
    "expert_parallelism": "expert",
    "sequence_parallelism": "seq",
    "tensor_parallelism": "model",
}


def _error(name: str, why: str) -> ValueError:
    return ValueError(f"plan ({name}): {why}")


def _path(name: str, value: Any) -> bytes:
    try:
        path = os.fsencode(value)
    except TypeError:
        raise TypeError(f"plan ({name}): {type(value).__name__} is no path") from None
    if b"\0" in path:
        raise _error(name, "a path holds no zero byte")
    return path


def _choice(name: str, value: Any, choices: Any) -> str:
    if isinstance(value, str) and value in choices:
        return value
    raise _error(name, f"{value!r}; it must be one of {', '.join(choices)}")


def _integer(name: str, value: Any, least: int, most: int) -> int:
    number = integer_of(name, value, "plan")
    if not least <= number <= most:
        raise _error(name, f"{number}; it must be in {least} to {most}")
    return number


def _speed(name: str, value: Any) -> float:
    """GB/s; 0, which is the library's default, for None."""
    if value is None:
        return 0.0
    number = real_of(name, value, "plan")
    if not 0.0 < number <= 1e6:
        raise _error(name, f"{number!r}; it must be a speed above 0, in GB/s")
    return number


def _mesh(mesh: Any) -> str | None:
    if mesh is None or isinstance(mesh, str):
        if mesh is not None and "\0" in mesh:
            raise _error("mesh", "it holds a zero byte")
        return mesh
    if not isinstance(mesh, Mapping):
        raise TypeError(f"plan (mesh): {type(mesh).__name__} is neither a text nor a mapping")
    for axis in mesh:
        if axis not in AXES:
            raise _error("mesh", f"{axis!r} is no axis; the axes are {', '.join(AXES)}")
    degrees = ((a, _integer(f"mesh[{a!r}]", n, -(2**31), 2**31 - 1)) for a, n in mesh.items())
    return ",".join(f"{axis}={degree}" for axis, degree in degrees) or None


def _only(where: str, mapping: Any, keys: Any) -> Mapping[str, Any]:
    """The mapping, if it is one and has no other keys."""
    if not isinstance(mapping, Mapping):
        raise TypeError(f"plan ({where}): {type(mapping).__name__} is no mapping")
    for key in mapping:
        if key not in keys:
            raise _error(where, f"{key!r} is none of {', '.join(keys)}")
    return mapping


def _overrides(phase: str, rules: Any) -> str:
    if not isinstance(rules, Mapping):
        raise TypeError(f"plan (rules[{phase!r}]): {type(rules).__name__} is no mapping")
    for tensor in rules:
        if not isinstance(tensor, str):
            raise TypeError(f"plan (rules[{phase!r}]): {tensor!r} is no tensor's name")
    try:
        return json.dumps(dict(rules), allow_nan=False)
    except (TypeError, ValueError) as reason:
        raise type(reason)(f"plan (rules[{phase!r}]): {reason}") from None


def _rules(rules: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """A mesh or None, and JSON by phase, from rules that are no file."""
    mesh = None
    if "sharding" in rules:
        rules = _only("rules", rules, ("sharding",))["sharding"]
        rules = _only("rules['sharding']", rules, ("sharding_strategy", "logical_rules"))
        if "sharding_strategy" in rules:
            strategy = _only("sharding_strategy", rules["sharding_strategy"], STRATEGY)
            mesh = {STRATEGY[name]: degree for name, degree in strategy.items()}
        rules = rules.get("logical_rules", {})
    rules = _only("rules", rules, ("all", "prefill", "generate"))
    return mesh, {phase: _overrides(phase, of_phase) for phase, of_phase in rules.items()}


def plan(
    model: str | os.PathLike[str],
    *,
    mesh: str | Mapping[str, int] | None = None,
    devices: int | None = None,
    rules: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    tokens: int = 512,
    phase: str = "both",
    dtype: str = "file",
    logits: str = "last",
    link_gbps: float | None = None,
    memory_gbps: float | None = None,
    search: int = 0,
) -> dict[str, Any]:
    """Plans a model that is split over ranks, without reading its weights.

    Parameters
    ----------
    model : path
        A GGUF file, the folder of a Hugging Face checkpoint, or a config.json.
    mesh : str or mapping, optional
        Degrees of the axes data, expert, seq and model, ``"data=2,model=4"`` or
        ``{"data": 2, "model": 4}``. One may be -1 and is inferred from ``devices``. By default those
        that the rules name, else all 1.
    devices : int, optional
        How many ranks there are; by default the product of the degrees.
    rules : path or mapping, optional
        Which axes of the mesh split which tensors, where it is not the default: a file as the
        command's ``--rules`` takes it, the same as a mapping, or its part
        ``{"all": {TENSOR: RULE}, "prefill": {...}, "generate": {...}}``. A rule has for each axis
        of the tensor None, an axis of the mesh, or a list of them.
    tokens : int, default 512
        Of a step, those of all data groups.
    phase : {"both", "prefill", "generate"}
        Which steps are planned.
    dtype : {"file", "f32", "bf16"}
        Of weights.
    logits : {"last", "all"}
        Of each sequence's last token, or of all tokens.
    link_gbps, memory_gbps : float, optional
        GB/s that a rank sends, and reads of its memory: 1.25 and 50 by default.
    search : int, default 0
        Not 0: looks for rules that take less time and returns so many of the best.

    Returns
    -------
    dict
        The document of ``octavo plan --format json``: the model, mesh and rules, how each tensor is
        cut, the memory of a rank, and of each phase its collectives and time. With ``search``: a list
        of rules, each with the memory and times that it comes to.

    Raises
    ------
    ValueError
        A bad argument, mesh or rule, or a file that is malformed or cannot be planned.
    FileNotFoundError, OSError
        A file is not there, or cannot be read.
    TypeError
        An argument is of no type that it may have.
    ImportError
        This build of the module has no planner.
    """
    overrides: dict[str, str] = {}
    file = None
    if rules is not None and search != 0:
        raise _error("rules", "search tries rules of its own; leave one of the two out")
    if isinstance(rules, Mapping):
        named, overrides = _rules(rules)
        mesh = named if mesh is None else mesh
    elif rules is not None:
        file = _path("rules", rules)
    arguments = (
        _path("model", model),
        _mesh(mesh),
        0 if devices is None else _integer("devices", devices, 1, 2**20),
        file,
        overrides.get("all"),
        overrides.get("prefill"),
        overrides.get("generate"),
        _integer("tokens", tokens, 1, 2**24),
        PHASES[_choice("phase", phase, PHASES)],
        _choice("dtype", dtype, DTYPES),
        _choice("logits", logits, LOGITS) == "all",
        _speed("link_gbps", link_gbps),
        _speed("memory_gbps", memory_gbps),
        _integer("search", search, 0, 100),
    )
    try:
        from . import _plan
    except ImportError as reason:
        raise ImportError(
            "plan: this build has no planner; install the headers of jansson, PCRE2 and utf8proc, "
            "and then octavo again"
        ) from reason
    document: dict[str, Any] = json.loads(_plan.plan(*arguments))
    return document
