# SPDX-License-Identifier: Apache-2.0
"""The published interface: names, order, defaults; what stubs and texts say about them."""

import inspect
import re
from types import SimpleNamespace

import numpy as np
import octavo
import pytest
from batches import bits, ragged
from conftest import framework

PARAMETERS = inspect.signature(octavo.ragged_page_attention_v3).parameters

# Of the function that programs call, and of the kernels below it, which take more tuning.
ARRAYS = (
    "queries",
    "keys",
    "values",
    "kv_cache",
    "kv_lens",
    "block_tables",
    "query_start_loc",
    "distribution",
    "attention_sink",
)
BY_NAME = {
    "softmax_scale": 1.0,
    "sliding_window": None,
    "logits_soft_cap": None,
    "q_scale": None,
    "k_scale": None,
    "v_scale": None,
    "chunk_prefill_size": None,
    "num_kv_pages_per_block": None,
    "num_queries_per_block": None,
    "vmem_limit_bytes": None,
    "platform": None,
    "cfg": None,
    "mesh": None,
    "in_specs": None,
    "out_specs": None,
}


def batch():
    return ragged(3, lengths=[(1, 20), (5, 9)], page_size=4, heads=(4, 2), head_dim=24)


def test_signature():
    assert tuple(PARAMETERS)[:9] == ARRAYS
    assert all(p.kind is p.POSITIONAL_OR_KEYWORD for p in list(PARAMETERS.values())[:9])
    assert PARAMETERS["attention_sink"].default is None
    assert tuple(PARAMETERS)[9 : 9 + len(BY_NAME)] == tuple(BY_NAME)
    for name, default in BY_NAME.items():
        assert PARAMETERS[name].default == default and PARAMETERS[name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", ["softmax_aux", "attention_sink"])
def test_both_names_of_the_sink(name):
    arrays, sink = batch(), np.float32([1, 2, 3, 4])
    want = octavo.ragged_page_attention_v3(*arrays.values(), sink)[0]
    got = octavo.ragged_page_attention_v3(**arrays, **{name: sink})[0]
    assert np.array_equal(bits(got), bits(want))
    assert not np.array_equal(got, octavo.ragged_page_attention_v3(**arrays)[0])
    with pytest.raises(ValueError, match=r"\(softmax_aux\): given besides"):
        octavo.ragged_page_attention_v3(**arrays, attention_sink=sink, softmax_aux=sink)


def test_what_is_only_accepted():
    arrays = batch()
    want = octavo.ragged_page_attention_v3(**arrays)[0]
    cfg = SimpleNamespace(num_kv_pages_per_block=2, num_queries_per_block=1, num_warps=4, platform="auto")
    given = {"platform": "xla", "cfg": cfg, "mesh": None, "vmem_limit_bytes": 1 << 27}
    got = octavo.ragged_page_attention_v3(**arrays, **given)
    assert np.array_equal(bits(got[0]), bits(want))


def test_cfg_gives_tuning():
    bad = SimpleNamespace(num_queries_per_block=-3)
    with pytest.raises(ValueError, match=r"\(num_queries_per_block\): -3"):
        octavo.ragged_page_attention_v3(**batch(), cfg=bad)
    octavo.ragged_page_attention_v3(**batch(), cfg=bad, num_queries_per_block=1)


def test_the_text_names_every_argument():
    text = inspect.getdoc(octavo.ragged_page_attention_v3)
    described = re.findall(r"^([a-z_0-9, ]+) : ", text, re.MULTILINE)
    names = [name for line in described for name in line.split(", ")]
    assert set(PARAMETERS) <= set(names)
    for public in octavo.__all__:
        thing = getattr(octavo, public)
        assert isinstance(thing, str) or inspect.getdoc(thing)


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", octavo.__version__)


def test_the_example_of_the_text():
    import doctest

    from octavo import _attention

    found = doctest.DocTestFinder(recurse=False).find(octavo.ragged_page_attention_v3, "example")
    assert found and found[0].examples
    assert doctest.DocTestRunner().run(found[0]).failed == 0
    assert _attention.__doc__


def test_the_original_accepts_no_more():
    """Where it is installed: each of its arguments is one of ours."""
    framework("jax")
    operations = framework("ejkernel.modules.operations")
    theirs = inspect.signature(operations.ragged_page_attention_v3).parameters
    assert set(theirs) <= set(PARAMETERS)
    for name, parameter in theirs.items():
        assert PARAMETERS[name].default == parameter.default
    positional = [n for n, p in theirs.items() if p.kind is p.POSITIONAL_ONLY]
    ours = [{"attention_sink": "softmax_aux"}.get(name, name) for name in ARRAYS]
    assert positional in (ours, list(ARRAYS))
