# SPDX-License-Identifier: Apache-2.0
"""What errors say: the argument's name, in the words of Python, what would be right."""

import functools
import re
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import octavo
import pytest
from batches import bits, ragged
from conftest import framework

CALL = "ragged paged attention "


def batch(**more):
    given = {"lengths": [(1, 20), (5, 9)], "page_size": 4, "heads": (4, 2), "head_dim": 24, **more}
    return ragged(3, **given)


def failure(kind, function, *arguments, **more):
    with pytest.raises(kind) as raised:
        function(*arguments, **more)
    assert raised.type is kind
    return str(raised.value)


def attend(**more):
    return octavo.ragged_page_attention_v3(**{**batch(), **more})


GOOD = batch()
INDEX = ("kv_lens", "block_tables", "query_start_loc", "distribution")
PAGES = np.zeros((3, 5), np.float32)
COLUMNS = {"layout": "columns", "kv_cache": PAGES, "page_size": 4}
TRANSLATED = {
    "no cap": ({"logits_soft_cap": 0.0}, "(logits_soft_cap): 0; it must not be 0 (None for none)"),
    "page size": ({**COLUMNS, "page_size": None}, '(page_size): 0; with layout="columns" it must be at'),
    "page": (COLUMNS, "(kv_cache): 5 elements a page; it must be [P, 1024] (see octavo.page_elements)"),
    "rows": ({"value_dim": 8}, '(value_dim): needs layout="columns"'),
    "both": ({**COLUMNS, "value_dim": 8}, "(values): given beside value_dim; leave them out"),
    "no values": ({"values": None}, "(values): is None; it must be [T, Hkv, Dv]"),
    "stride": (
        {"queries": np.repeat(GOOD["queries"], 2, axis=2)[:, :, ::2]},
        "(queries): stride 2 of the last axis; it must be 1; make a dense copy",
    ),
    "other size": ({"page_size": 9}, "(page_size): 9, but the cache's is 4; leave it out"),
    "table": (
        {"block_tables": GOOD["block_tables"].reshape(3, -1)},
        "(block_tables): has 2 axes; it must be [S * pages_per_seq], flatten it by reshape(-1)",
    ),
    "dtype": ({"queries": GOOD["queries"].astype(np.int8)}, "(queries): dtype int8; it must be float32,"),
    "keys": (
        {"keys": GOOD["keys"].astype(np.float16)},
        "(keys): dtype is float16, but the cache's is float32;",
    ),
    "sink": (
        {"attention_sink": np.zeros(4, np.float16)},
        "(attention_sink): dtype is float16; it must be float32",
    ),
}


@pytest.mark.parametrize("which", TRANSLATED)
def test_in_pythons_words(which):
    wrong, text = TRANSLATED[which]
    said = failure(ValueError, attend, **wrong)
    assert said.startswith(CALL + text)
    assert not re.search(r"octavo_|OCTAVO_|use_|NULL|value_in_key|\bb?f(16|32)\b|\bi32\b", said)


@pytest.mark.parametrize("name", INDEX)
def test_index_arrays_of_another_dtype(name):
    for dtype in (np.int64, np.uint32, np.float64, np.float32):
        said = failure(ValueError, attend, **{name: GOOD[name].astype(dtype)})
        assert said == f"{CALL}({name}): dtype is {np.dtype(dtype).name}; it must be int32"


@pytest.mark.parametrize("name", ["attention_sink", "alibi_slopes", "k_scales", "v_scales"])
def test_vectors_of_another_dtype(name):
    said = failure(ValueError, attend, **{name: np.ones(4)})
    assert said == f"{CALL}({name}): dtype is float64; it must be float32"


@pytest.mark.parametrize("function", ["eager", "traced"])
def test_index_arrays_of_frameworks(function):
    torch, jax = framework("torch"), framework("jax")
    from octavo import jax as ours
    from octavo import torch as theirs

    want = f"{CALL}(kv_lens): dtype is int64; it must be int32"
    wrong = {**GOOD, "kv_lens": GOOD["kv_lens"].astype(np.int64)}
    tensors = {name: torch.from_numpy(array) for name, array in wrong.items()}
    if function == "eager":
        assert failure(ValueError, theirs.ragged_page_attention_v3, **tensors) == want
    else:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode() as mode:
            fake = {name: mode.from_tensor(tensor) for name, tensor in tensors.items()}
            assert failure(ValueError, theirs.ragged_page_attention_v3, **fake) == want
    want = f"{CALL}(kv_lens): dtype is float32; it must be int32"
    wrong = {**GOOD, "kv_lens": GOOD["kv_lens"].astype(np.float32)}
    arrays = {name: jax.numpy.asarray(array) for name, array in wrong.items()}
    attend = ours.ragged_page_attention_v3
    traced = jax.jit(lambda arrays: attend(**arrays)) if function == "traced" else None
    given = ((arrays,), {}) if traced else ((), arrays)
    assert failure(ValueError, traced or attend, *given[0], **given[1]) == want


# Python writes integers of more than some thousand digits only when told to.
HUGE = (
    (2**63, "9223372036854775808"),
    (-(2**63) - 1, "-9223372036854775809"),
    (10**5000, "an integer of 16610 bits"),
)


@pytest.mark.parametrize(
    "name",
    ["sliding_window", "chunk_size", "page_size", "value_dim", "num_kv_pages_per_block", "vmem_limit_bytes"],
)
def test_integers(name):
    said = failure(TypeError, attend, **{name: 2.5})
    assert said == f"{CALL}({name}): 2.5 is no integer"
    assert len(failure(TypeError, attend, **{name: np.zeros(5000)})) < 120
    for huge, told in HUGE:
        assert failure(ValueError, attend, **{name: huge}) == f"{CALL}({name}): {told}; it must fit 64 bits"
        assert failure(ValueError, attend, cfg=SimpleNamespace(chunk_prefill_size=huge)) == (
            f"{CALL}(chunk_prefill_size): {told}; it must fit 64 bits"
        )


NO_NUMBERS = (
    np.array("0.5"),
    np.array(b"0.5"),
    np.array(0.5, object),
    np.array("0.5", object),
    np.str_("0.5"),
    np.complex64(1),
    np.timedelta64(5, "s"),
)


@pytest.mark.parametrize("name", ["softmax_scale", "q_scale", "k_scale", "logits_soft_cap", "output_scale"])
def test_reals(name):
    for bad in ("wide", "0.5", b"1", memoryview(b"1"), [1.0], object(), 1j, *NO_NUMBERS):
        said = failure(TypeError, attend, **{name: bad})
        assert said.startswith(f"{CALL}({name}): ") and said.endswith(" is no number")
    for huge in (10**400, -(10**400), 10**5000):
        said = failure(ValueError, attend, **{name: huge})
        assert said == (
            f"{CALL}({name}): an integer of {huge.bit_length()} bits; it must fit a float, "
            "which ends at some 1.8e308"
        )


@pytest.mark.filterwarnings("error")
def test_numbers_of_numpy():
    """What float() would read, with or without a warning, is not always a number."""
    for bad in NO_NUMBERS:
        said = failure(TypeError, octavo.AttentionBackend, 4, 64, bad)
        assert said == f"attention backend (scale): {bad!r} is no number"
        said = failure(TypeError, octavo.AttentionBackend, 4, 64, 1, sinks=np.array([bad] * 4).reshape(-1))
        assert said.startswith("attention backend (sinks): ") and said.endswith(" is no number")
    want = attend(k_scale=0.5)
    for good in (np.array(0.5), np.float16(0.5), ml_dtypes.bfloat16(0.5), np.array(0.5, ml_dtypes.bfloat16)):
        assert np.array_equal(bits(attend(k_scale=good)[0]), bits(want[0]))


def test_masked_arrays():
    """Masked numbers would be taken for numbers."""

    def masked(array, mask=False):
        return np.ma.array(array, mask=mask)

    text = "a masked array, whose mask has no meaning here; give its filled(...)"
    arrays = {**GOOD, "attention_sink": np.zeros(4, np.float32), "k_scales": np.ones(2, np.float32)}
    for name, array in arrays.items():
        for mask in (False, True):
            said = failure(TypeError, attend, **{name: masked(array, mask)})
            assert said == f"{CALL}({name}): {text}"
    said = failure(TypeError, attend, out=masked(np.zeros_like(GOOD["queries"])))
    assert said == f"{CALL}(output): {text}"
    for value in (np.ma.masked, masked(0.5)):
        assert failure(TypeError, attend, k_scale=value) == f"{CALL}(k_scale): {text}"
    said = failure(TypeError, octavo.AttentionBackend, 4, 24, 1, sinks=masked(np.zeros(4)))
    assert said == f"attention backend (sinks): {text}"
    said = failure(
        TypeError, octavo.AttentionBackend(4, 24, 1, 2).bind_cache, "a", masked(GOOD["kv_cache"])
    )
    assert said == f"attention backend (layer a): {CALL}(kv_cache): {text}"


def test_value_dim_allocates_nothing():
    """A width that no value has is refused as such, not by the output's size."""
    elements = octavo.page_elements("float32", 4, 2, 24, 8, value_in_key=True)
    columns = {"layout": "columns", "page_size": 4, "kv_cache": np.zeros((10, elements), np.float32)}
    for wide in (-5, 0, 25, 2**40, 2**63 - 1):
        said = failure(ValueError, attend, **columns, values=None, value_dim=wide)
        assert said == f"{CALL}(value_dim): {wide} of 24 lanes of a key; it must be 1 to 24"


def test_huge_numbers_of_frameworks():
    """Not errors of their own about the types of an operator's arguments."""
    torch, jax = framework("torch"), framework("jax")
    for convert in (torch.from_numpy, jax.numpy.asarray):
        arrays = {name: convert(array) for name, array in GOOD.items()}
        said = failure(ValueError, attend, **arrays, sliding_window=2**63)
        assert said == f"{CALL}(sliding_window): 9223372036854775808; it must fit 64 bits"


def test_other_callers():
    said = failure(TypeError, octavo.page_elements, "float32", 16, 1.5, 64)
    assert said == f"{CALL}(num_kv_heads): 1.5 is no integer"
    for huge, told in HUGE:
        fit = f"{told}; it must fit 64 bits"
        said = failure(ValueError, octavo.page_elements, "float32", huge, 1, 64)
        assert said == f"{CALL}(page_size): {fit}"
        said = failure(ValueError, octavo.AttentionContext, huge)
        assert said == f"attention context (threads): {fit}"
        said = failure(ValueError, octavo.AttentionBackend, 4, huge, 1)
        assert said == f"attention backend (head_size): {fit}"
    said = failure(ValueError, octavo.AttentionBackend, 2**31, 64, 1)
    assert said == "attention backend (num_heads): 2147483648; it must be 1 to 2147483647"
    said = failure(TypeError, octavo.AttentionBackend, 4, 64, 1, sinks=3)
    assert said == "attention backend (sinks): 3; it must have one number for each of 4 heads"
    assert "(layout): 'sidewayss" in failure(ValueError, attend, layout="sideways" + "s" * 10**6)
    assert len(failure(ValueError, attend, layout="sideways" + "s" * 10**6)) < 120
    said = failure(TypeError, octavo.AttentionContext, 1.5)
    assert said == "attention context (threads): 1.5 is no integer"
    said = failure(ValueError, octavo.AttentionContext, 1, "\ud800")
    assert said == "attention context (isa): '\\ud800'; no instruction set has such a name"
    assert failure(TypeError, attend, context=3) == f"{CALL}(context): int is no octavo.AttentionContext"


def test_keys_count_where_nothing_is_written():
    """Not their data; their shape and dtype, which any memory has."""
    arrays = batch(filled=True)
    want = octavo.ragged_page_attention_v3(**arrays, update_kv_cache=False)[0]
    one = np.broadcast_to(np.full(24, np.nan, np.float32), arrays["keys"].shape)
    cross = octavo.ragged_page_attention_v3(**arrays, type="encoder_decoder")[0]
    f16 = np.zeros(one.shape, np.float16)
    for more, expected in (({"update_kv_cache": False}, want), ({"type": "encoder_decoder"}, cross)):
        given = {**arrays, **more, "keys": one, "values": one}
        attention = functools.partial(octavo.ragged_page_attention_v3, **given)
        assert not np.isnan(expected).any() and np.array_equal(bits(attention()[0]), bits(expected))
        said = failure(TypeError, attention, keys=None)
        assert said == f"{CALL}(keys): None is no array; shape and dtype count even where no data are read"
        assert "(values): is None" in failure(ValueError, attention, values=None)
        assert "(kv_cache): shape" in failure(ValueError, attention, keys=one[:, :1], values=one[:, :1])
        assert "(keys): dtype is float16" in failure(ValueError, attention, keys=f16, values=f16)


def test_int8_truncates_queries_and_rounds_keys():
    arrays = batch(kv_dtype="int8")
    scale = {"q_scale": 1.0, "softmax_scale": 0.01}
    near = {**arrays, "queries": np.trunc(arrays["queries"] * 4) + np.float32(0.75)}
    near["queries"][near["queries"] < 0.75] -= np.float32(1.5)  # -n - 0.75
    whole = {**arrays, "queries": np.trunc(near["queries"])}
    got, want = (octavo.ragged_page_attention_v3(**x, **scale)[0] for x in (near, whole))
    assert np.array_equal(bits(got), bits(want))
    rows = {"keys": np.full((7, 2, 24), 2.75, np.float32), "values": np.full((7, 2, 24), -2.75, np.float32)}
    cache = octavo.ragged_page_attention_v3(**{**arrays, **rows}, k_scale=1.0, v_scale=1.0)[1]
    page = cache[arrays["block_tables"][4], 3].reshape(-1, 128)[:, :24]  # position 19 of the first
    assert (page[0] == 3).all() and (page[1] == -3).all()
