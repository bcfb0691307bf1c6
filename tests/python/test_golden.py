# SPDX-License-Identifier: Apache-2.0
"""The golden cases through every way into the module, and those that must be refused."""

import numpy as np
import pytest
import rpa_entry
from batches import bits, compare
from conftest import framework
from golden import Case, folders

NEEDS = {"run": (), "run_torch": ("torch",), "run_jax": ("jax",), "run_jit": ("jax",)}
ENTRIES = pytest.mark.parametrize("entry", list(NEEDS))


def entry_of(name):
    for module in NEEDS[name]:
        framework(module)
    return getattr(rpa_entry, name)


def test_there_are_cases():
    assert len(folders()) > 10 and len(folders("errors")) > 10


@ENTRIES
@pytest.mark.parametrize("folder", folders(), ids=lambda path: path.name[:3])
def test_case(folder, entry):
    run, case = entry_of(entry), Case(folder)
    given = {name: None if a is None else a.copy() for name, a in case.arrays.items()}
    compare(run(given, case.params), case.want())
    for name, array in case.arrays.items():
        assert array is None or np.array_equal(bits(given[name]), bits(array)), f"{name} was changed"


@ENTRIES
@pytest.mark.parametrize("folder", folders("errors"), ids=lambda path: path.name)
def test_refused(folder, entry):
    run, case = entry_of(entry), Case(folder)
    error = ValueError
    if entry == "run_jit":  # what is known only when the program runs is JAX's own error
        error = (ValueError, framework("jax").errors.JaxRuntimeError)
    before = case.arrays["kv_cache"].copy()
    with pytest.raises(error, match="ragged paged attention \\("):
        run(case.arrays, case.params)
    assert np.array_equal(bits(case.arrays["kv_cache"]), bits(before))


@pytest.mark.parametrize("threads, isa", [(1, "scalar"), (1, None), (3, None)])
def test_other_contexts(threads, isa, monkeypatch):
    monkeypatch.setenv("OCTAVO_ENTRY_THREADS", str(threads))
    monkeypatch.setenv("OCTAVO_ENTRY_IN_PLACE", "1")
    if isa:
        monkeypatch.setenv("OCTAVO_ENTRY_ISA", isa)
    for folder in folders()[::5]:
        case = Case(folder)
        want = case.want()
        output, cache = rpa_entry.run(case.arrays, case.params)
        assert cache is case.arrays["kv_cache"]
        compare((output, cache), want)
