# SPDX-License-Identifier: Apache-2.0
"""How a call runs: threads and instruction set."""

from __future__ import annotations

from . import _octavo
from ._arrays import shown
from ._call import integer_of


class AttentionContext:
    """How calls run: on how many threads, and with which instruction set.

    A context is only a setting: any number of threads may use one at once. Behind it the module
    keeps the workers and the memory of earlier calls, one set for each call that runs at the same
    time. The bits of a result do not depend on ``threads`` or ``pin``.

    Parameters
    ----------
    threads : int, default 0
        Threads of one call, the caller's included; 0: one for each physical core that the process
        may use. Where many threads call at once, 1 serves them best.
    isa : {"scalar", "avx2", "avx512", "avx512_vnni", "avx512_vbmi", "avx512_bf16", "neon", "best"}, optional
        The instruction set; by default the best that the machine has (the environment variable
        ``OCTAVO_CPU`` narrows it).
    pin : bool, default False
        Bind the threads to cores.

    Raises
    ------
    ValueError
        The machine does not have this instruction set, or this many threads cannot be made.
    """

    __slots__ = ("_isa", "_pin", "_threads")

    def __init__(self, threads: int = 0, isa: str | None = None, *, pin: bool = False) -> None:
        self._threads = integer_of("threads", threads, "attention context")
        self._isa = "" if isa is None else str(isa)
        if not self._isa.isascii():
            raise ValueError(f"attention context (isa): {shown(isa)}; no instruction set has such a name")
        self._pin = bool(pin)
        _octavo.prepare(*self._settings)

    @property
    def threads(self) -> int:
        """Threads of one call; 0: one for each core."""
        return self._threads

    @property
    def isa(self) -> str | None:
        """The instruction set that was asked for, or None."""
        return self._isa or None

    @property
    def pin(self) -> bool:
        """Whether the threads are bound to cores."""
        return self._pin

    @property
    def _settings(self) -> tuple[int, str, bool]:
        return self._threads, self._isa, self._pin

    def release(self) -> None:
        """Free the idle threads and the memory of calls that ran with these settings."""
        _octavo.release(*self._settings)

    def __eq__(self, other):
        if not isinstance(other, AttentionContext):
            return NotImplemented
        return self._settings == other._settings

    def __hash__(self):
        return hash(self._settings)

    def __reduce__(self):
        return _make, self._settings

    def __repr__(self):
        return f"AttentionContext(threads={self.threads}, isa={self.isa!r}, pin={self.pin})"


def _make(threads, isa, pin):
    return AttentionContext(threads, isa or None, pin=pin)


DEFAULT_SETTINGS = (0, "", False)


def settings_of(context, call="ragged paged attention"):
    """``(threads, isa, pin)`` of a context or of None."""
    if context is None:
        return DEFAULT_SETTINGS
    if not isinstance(context, AttentionContext):
        raise TypeError(f"{call} (context): {type(context).__name__} is no octavo.AttentionContext")
    return context._settings
