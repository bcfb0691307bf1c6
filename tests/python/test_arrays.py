# SPDX-License-Identifier: Apache-2.0
"""What may be an array, where results go, and what is refused before anything is written."""

import ctypes
import re

import ml_dtypes
import numpy as np
import octavo
import pytest
import rpa_oracle as oracle
from batches import bits, compare, ragged

SCALE = {"softmax_scale": 0.125}


def batch(**more):
    given = {"lengths": [(1, 20), (5, 9)], "page_size": 4, "heads": (4, 2), "head_dim": 24, **more}
    return ragged(3, **given)


def attend(arrays, **params):
    return octavo.ragged_page_attention_v3(**arrays, **SCALE, **params)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(bits(a), bits(b))


class Exported:
    """An array of another library: nothing but DLPack."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device
        self.exports = 0

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, max_version=None, **_):
        self.exports += 1
        return self.array.__dlpack__(max_version=max_version)


class OldExported(Exported):
    """The same from before versions."""

    def __dlpack__(self):
        return self.array.__dlpack__()


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("n_axes", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("extents", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 2),
    ]


class HandMade:
    """A DLPack array made by hand, for types that NumPy does not export: its strides may be absent."""

    def __init__(self, array, code):
        self.array = array
        self.extents = (ctypes.c_int64 * array.ndim)(*array.shape)
        item = array.itemsize
        self.tensor = _Tensor(
            array.__array_interface__["data"][0] - item,
            (1, 0),
            array.ndim,
            code,
            8 * item,
            1,
            ctypes.addressof(self.extents),
            None,
            item,
        )

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


# --- kinds ---


@pytest.mark.parametrize("kind", [Exported, OldExported])
def test_dlpack(kind):
    arrays = batch()
    want = attend(arrays)
    exported = {name: kind(array) for name, array in arrays.items()}
    output, cache = attend(exported)
    assert same(output, want[0]) and same(cache, want[1])
    in_place = attend(exported, in_place=True)
    assert same(in_place[0], want[0])
    assert in_place[1] is exported["kv_cache"] and same(arrays["kv_cache"], want[1])


@pytest.mark.parametrize("name, code", [("bfloat16", 4), ("float8_e4m3fn", 10), ("float8_e5m2", 12)])
def test_dlpack_types(name, code):
    arrays = batch(q_dtype="bfloat16", kv_dtype=name)
    want = attend(arrays)
    for key in ("keys", "values", "kv_cache"):
        arrays[key] = HandMade(arrays[key], code)
    output, cache = attend(arrays)
    assert same(output, want[0]) and same(cache, want[1])


def test_dlpack_is_only_read_when_it_can_be():
    arrays = batch()
    with pytest.raises(ValueError, match=r"\(keys\): is on DLPack device 2"):
        attend({**arrays, "keys": Exported(arrays["keys"], (2, 0))})
    with pytest.raises(ValueError, match=r"\(queries\): DLPack type 2 of 64 bits"):
        attend({**arrays, "queries": Exported(arrays["queries"].astype(np.float64))})
    arrays["kv_cache"].flags.writeable = False
    attend({**arrays, "kv_cache": Exported(arrays["kv_cache"])})
    with pytest.raises(ValueError, match=r"\(kv_cache\): is read-only"):
        attend({**arrays, "kv_cache": Exported(arrays["kv_cache"])}, in_place=True)


@pytest.mark.parametrize(
    "device", [None, (), 3, "cpu", "ab", ("1", 0), (1,), (1, 0, 0), (1.0, 0), (None, 0), {1: 0}, object()]
)
def test_dlpack_devices_that_are_none(device):
    arrays = batch()
    text = r"\): __dlpack_device__\(\) gives .*; it must give two integers, type and number"
    for name in ("queries", "keys", "kv_lens"):
        with pytest.raises(ValueError, match=rf"\({name}{text}"):
            attend({**arrays, name: Exported(arrays[name], device)})
    with pytest.raises(ValueError, match=rf"backend \(layer a\): .*\(kv_cache{text}"):
        octavo.AttentionBackend(4, 24, 1, 2).bind_cache("a", Exported(arrays["kv_cache"], device))


def test_dlpack_that_is_broken():
    arrays = batch()

    class NoDevice:
        def __dlpack__(self, **_):
            return arrays["keys"].__dlpack__()

    class NoMemory(Exported):
        def __dlpack__(self, **_):
            raise BufferError("lies in a cloud")

    class NoCapsule(Exported):
        def __dlpack__(self, **_):
            return 5

    class NoMethod(Exported):
        __dlpack__ = 3

    for bad, text in (
        (NoDevice(), "has __dlpack__, but no __dlpack_device__; both are needed"),
        (NoMemory(arrays["keys"]), "__dlpack__() gives no memory: lies in a cloud"),
        (NoCapsule(arrays["keys"]), "__dlpack__() gives no memory: no DLPack capsule"),
    ):
        with pytest.raises(ValueError, match=re.escape(f"(keys): {text}")):
            attend({**arrays, "keys": bad})
    for bad in (NoMethod(arrays["keys"]), np.ndarray):
        with pytest.raises(TypeError, match=r"\(keys\): \w+ is no array"):
            attend({**arrays, "keys": bad})


@pytest.mark.parametrize("bad", [None, [1, 2], 3, "text", object(), b"bytes"])
@pytest.mark.parametrize("name", ["queries", "keys", "kv_cache", "kv_lens", "distribution"])
def test_no_array(name, bad):
    with pytest.raises(TypeError, match=rf"\({name}\)"):
        attend({**batch(), name: bad})


def test_kinds_may_be_mixed():
    arrays = batch()
    want = attend(arrays)
    mixed = {**arrays, "kv_lens": Exported(arrays["kv_lens"]), "kv_cache": Exported(arrays["kv_cache"])}
    output, cache = attend(mixed)
    assert type(cache) is np.ndarray and same(output, want[0]) and same(cache, want[1])


# --- strides ---


def test_strided_inputs():
    """Queries, keys and values as views of one projection; a cache of every second layer."""
    arrays = batch()
    want = attend(arrays)
    joined = np.concatenate([arrays[name] for name in ("queries", "keys", "values")], axis=1)
    arrays["queries"], arrays["keys"], arrays["values"] = joined[:, :4], joined[:, 4:6], joined[:, 6:]
    layers = np.repeat(arrays["kv_cache"][:, None], 2, axis=1)
    arrays["kv_cache"] = layers[:, 1]
    other = layers[:, 0].copy()
    output, cache = attend(arrays)
    assert same(output, want[0]) and same(cache, want[1]) and cache.flags.c_contiguous
    output, cache = attend(arrays, in_place=True)
    assert same(output, want[0]) and same(layers[:, 1], want[1])
    assert same(layers[:, 0], other)


def test_strides_that_cannot_be():
    arrays = batch()
    zeros = np.broadcast_to(np.float32(0), arrays["keys"].shape)
    with pytest.raises(ValueError, match=r"\(keys\): every stride is 0"):
        attend({**arrays, "keys": zeros})
    with pytest.raises(ValueError, match=r"\(kv_lens\): every stride is 0"):
        attend({**arrays, "kv_lens": np.broadcast_to(np.int32(9), 3)})
    with pytest.raises(ValueError, match=r"\(queries\): stride 2 of the last axis"):
        attend({**arrays, "queries": np.repeat(arrays["queries"], 2, axis=2)[:, :, ::2]})
    raw = np.zeros(arrays["keys"].nbytes + 1, np.uint8)[1:]
    with pytest.raises(ValueError, match=r"\(keys\): is not aligned to its elements of 4 bytes; make"):
        attend({**arrays, "keys": raw.view(np.float32).reshape(arrays["keys"].shape)})
    pairs = np.zeros(arrays["keys"].shape[:2], [("key", np.float32, 24), ("other", np.uint8)])
    with pytest.raises(ValueError, match=r"\(keys\): strides .* are not whole elements"):
        attend({**arrays, "keys": pairs["key"]})
    with pytest.raises(ValueError, match=r"\(attention_sink\): has 0 axes"):
        attend({**arrays, "attention_sink": np.array(1, np.float32)})
    with pytest.raises(ValueError, match=r"\(kv_cache\): has 6 axes"):
        attend({**arrays, "kv_cache": arrays["kv_cache"][None]})


def test_dtypes_that_cannot_be():
    arrays = batch()
    with pytest.raises(ValueError, match=r"\(queries\): dtype is float64; it must be one of"):
        attend({**arrays, "queries": arrays["queries"].astype(np.float64)})
    with pytest.raises(ValueError, match=r"\(keys\): dtype >f4 has another byte order"):
        attend({**arrays, "keys": arrays["keys"].astype(">f4")})
    with pytest.raises(ValueError, match=r"\(kv_lens\): dtype is int64; it must be int32"):
        attend({**arrays, "kv_lens": arrays["kv_lens"].astype(np.int64)})
    with pytest.raises(ValueError, match=r"\(kv_cache\): dtype is uint16"):
        attend({**arrays, "kv_cache": arrays["kv_cache"].astype(np.float16).view(np.uint16)})
    with pytest.raises(ValueError, match=r"\(attention_sink\): dtype is float16"):
        attend({**arrays, "attention_sink": np.zeros(4, np.float16)})


# --- results ---


def test_the_inputs_stay():
    arrays = batch()
    before = {name: array.copy() for name, array in arrays.items()}
    output, cache = attend(arrays)
    assert all(same(arrays[name], before[name]) for name in arrays)
    assert not np.shares_memory(cache, arrays["kv_cache"]) and output.flags.writeable
    compare((output, cache), oracle.attention(**arrays, **SCALE))


def test_in_place():
    arrays = batch()
    want = attend(arrays)
    output, cache = attend(arrays, in_place=True)
    assert cache is arrays["kv_cache"] and same(cache, want[1]) and same(output, want[0])


def test_without_update_the_cache_is_returned():
    arrays = batch(filled=True)
    arrays["kv_cache"].flags.writeable = False
    for more in ({}, {"in_place": True}):
        output, cache = attend(arrays, update_kv_cache=False, **more)
        assert cache is arrays["kv_cache"]
    compare((output, cache), oracle.attention(**arrays, **SCALE, update_kv_cache=False))


def test_out():
    arrays = batch()
    want = attend(arrays)
    room = np.full((6 + 1, 8, 24), 7, np.float32)
    out = room[:, ::2]
    output, cache = attend(arrays, out=out)
    assert output is out and same(out, want[0]) and same(cache, want[1])
    assert (room[:, 1::2] == 7).all()
    with pytest.raises(ValueError, match=r"\(output\): shape"):
        attend(arrays, out=room)
    with pytest.raises(ValueError, match=r"\(output\): dtype is float16"):
        attend(arrays, out=out.astype(np.float16))
    frozen = np.zeros_like(want[0])
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match=r"\(output\): is read-only"):
        attend(arrays, out=frozen)


def test_what_is_written_lies_apart():
    arrays = batch()
    with pytest.raises(ValueError, match=r"\(output\): lies in the same memory as queries"):
        attend(arrays, out=arrays["queries"])
    memory = arrays["kv_cache"].reshape(-1)
    inside = memory[: arrays["keys"].size].reshape(arrays["keys"].shape)
    attend({**arrays, "keys": inside})  # a copy of the cache is written
    with pytest.raises(ValueError, match=r"\(kv_cache\): lies in the same memory as keys"):
        attend({**arrays, "keys": inside}, in_place=True)
    attend({**arrays, "keys": inside}, in_place=True, update_kv_cache=False)
    out = memory[: arrays["queries"].size].reshape(arrays["queries"].shape)
    before = arrays["kv_cache"].copy()
    for way in ({}, {"in_place": True}):
        with pytest.raises(ValueError, match=r"lies in the same memory as (kv_cache|output)"):
            attend(arrays, out=out, **way)
    assert same(arrays["kv_cache"], before)


def test_a_refused_call_writes_nothing():
    arrays = batch()
    arrays["kv_lens"][1] = 10**6
    out, before = np.full_like(arrays["queries"], 5), arrays["kv_cache"].copy()
    with pytest.raises(ValueError, match=r"\(block_tables\): sequence 1 of length 1000000"):
        attend(arrays, in_place=True, out=out)
    assert (out == 5).all() and same(arrays["kv_cache"], before)


def test_output_dtype():
    arrays = batch(kv_dtype="float8_e4m3fn", q_dtype="bfloat16")
    assert attend(arrays)[0].dtype == ml_dtypes.bfloat16
    assert attend(arrays, output_scale=0.5)[0].dtype == ml_dtypes.float8_e4m3fn
    for name in (np.int8, "int8", np.dtype(np.int8)):
        assert attend(arrays, output_scale=0.5, output_dtype=name)[0].dtype == np.int8
    for name in (ml_dtypes.float8_e5m2, "fp8_e5m2", "float8_e5m2"):
        assert attend(arrays, output_scale=0.5, output_dtype=name)[0].dtype == ml_dtypes.float8_e5m2
    out = np.zeros(arrays["queries"].shape, np.int8)
    assert attend(arrays, output_scale=0.5, out=out)[0] is out
    for bad in ("float64", "nothing", 7, object()):
        with pytest.raises(ValueError, match=r"\(output_dtype\)"):
            attend(arrays, output_scale=0.5, output_dtype=bad)
    with pytest.raises(ValueError, match=r"\(output\): dtype is int8"):
        attend(arrays, output_dtype="int8")


# --- scalars ---


def test_scalars_of_any_library():
    arrays = batch()
    want = attend(arrays, sliding_window=3, k_scale=0.5)
    got = attend(arrays, sliding_window=np.int64(3), k_scale=np.float32(0.5))
    assert same(got[0], want[0])
    wide = 2**63 - 1
    assert same(attend(arrays, sliding_window=wide)[0], attend(arrays)[0])


@pytest.mark.parametrize(
    "name, value",
    [
        ("sliding_window", 0),
        ("sliding_window", -1),
        ("sliding_window", 2**63),
        ("logits_soft_cap", 0.0),
        ("precision", "exact"),
        ("precision", None),
        ("type", "cross"),
        ("layout", "planes"),
        ("chunk_size", -1),
        ("num_queries_per_block", -1),
        ("vmem_limit_bytes", 1),
        ("output_scale", 0.0),
        ("value_dim", 8),
        ("mesh", object()),
    ],
)
def test_scalars_that_cannot_be(name, value):
    arrays = batch(kv_dtype="int8")
    with pytest.raises(ValueError, match="ragged paged attention \\("):
        attend(arrays, **{name: value})


def test_scale_of_none_is_the_head_width():
    arrays = batch()
    want = octavo.ragged_page_attention_v3(**arrays, softmax_scale=24**-0.5)
    got = octavo.ragged_page_attention_v3(**arrays, softmax_scale=None)
    assert same(got[0], want[0])


def test_empty_batches():
    arrays = batch()
    arrays["distribution"][:] = 0
    output, cache = attend(arrays)
    assert not output.any() and same(cache, arrays["kv_cache"])
    arrays = batch(lengths=[(0, 0)], spare_rows=0)
    output, _ = attend(arrays)
    assert output.shape == (0, 4, 24)


def test_page_elements():
    rows = 2 * 16 * 128  # at least keys and values
    assert octavo.page_elements(np.float32, 16, 1, 128) >= rows
    assert octavo.page_elements("bf16", 16, 1, 128) == octavo.page_elements(ml_dtypes.bfloat16, 16, 1, 128)
    narrow = octavo.page_elements("bfloat16", 16, 1, 576, 512, value_in_key=True)
    assert narrow < octavo.page_elements("bfloat16", 16, 1, 576, 512)
    for bad in [("int64", 16, 1, 64), ("bfloat16", 0, 1, 64), ("bfloat16", 16, 1, -1)]:
        with pytest.raises(ValueError, match=r"\(page\)"):
            octavo.page_elements(*bad)
