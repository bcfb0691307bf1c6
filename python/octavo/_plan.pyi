# SPDX-License-Identifier: Apache-2.0
"""The C module of the planner: see src/plan/module.c."""

def plan(
    path: bytes,
    mesh: str | None,
    devices: int,
    rules: bytes | None,
    all: str | None,
    prefill: str | None,
    generate: str | None,
    tokens: int,
    phases: int,
    dtype: str,
    logits_all: bool,
    link_gbps: float,
    memory_gbps: float,
    search: int,
    /,
) -> str: ...
