# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries, described for the C module without copying them.

A description is ``(address, dtype, shape, strides in elements or None, owner)``; the owner keeps the
memory alive for as long as the description lives.
"""

import ctypes
import math
import operator
import reprlib
import sys

import numpy as np

from . import _octavo

# The order of arrays at the border, as in src/arguments.h; the output stands behind them.
NAMES = (
    "queries",
    "keys",
    "values",
    "kv_cache",
    "kv_lens",
    "block_tables",
    "query_start_loc",
    "distribution",
    "attention_sink",
    "key_start_loc",
    "alibi_slopes",
    "k_scales",
    "v_scales",
)

# octavo_dtype by NumPy's name.
DTYPES = {
    "float32": 0,
    "float16": 1,
    "bfloat16": 2,
    "float8_e4m3fn": 3,
    "float8_e5m2": 4,
    "int8": 5,
    "int32": 6,
}
DTYPE_NAMES = {code: name for name, code in DTYPES.items()}
ITEM_BYTES = (4, 2, 2, 1, 1, 1, 4)
# The library's own names are understood as well.
ALIASES = {"f32": 0, "f16": 1, "bf16": 2, "fp8_e4m3": 3, "fp8_e5m2": 4, "i32": 6}

# What some arrays must be, whatever the rest is.
_WANTED = {
    **dict.fromkeys(
        ("kv_lens", "block_tables", "query_start_loc", "distribution", "key_start_loc"), "int32"
    ),
    **dict.fromkeys(("attention_sink", "alibi_slopes", "k_scales", "v_scales"), "float32"),
}

# octavo_dtype by DLPack's (type code, bits).
_DLPACK = {(2, 32): 0, (2, 16): 1, (4, 16): 2, (10, 8): 3, (12, 8): 4, (0, 8): 5, (0, 32): 6}
_DLPACK_CPU = (1, 3)  # plain memory, and memory of the host pinned for CUDA


def shown(value):
    """A value in a message: of bounded length, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 256:  # Python refuses to write very long ones
        return f"an integer of {value.bit_length()} bits"
    try:
        return reprlib.repr(value)
    except Exception:  # noqa: BLE001  its own __repr__ fails
        return f"an object of type {type(value).__name__}"


def refuse_masked(array, where):
    """TypeError for an array whose masked numbers the library would take for numbers."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{where}: a masked array, whose mask has no meaning here; give its filled(...)")


def error(name, text):
    """The exception for a bad array, worded as the library's own."""
    return ValueError(f"ragged paged attention ({name}): {text}")


def kind_of(array, name):
    """``"numpy"``, ``"torch"``, ``"jax"`` or ``"dlpack"``; TypeError for what is no array."""
    if isinstance(array, np.ndarray):
        if type(array) is not np.ndarray:
            refuse_masked(array, f"ragged paged attention ({name})")
        return "numpy"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return "torch"
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(array, jax.Array):
        return "jax"
    if not isinstance(array, type) and callable(getattr(array, "__dlpack__", None)):
        return "dlpack"
    raise TypeError(
        f"ragged paged attention ({name}): {type(array).__name__} is no array; give a NumPy array, "
        "a PyTorch tensor, a JAX array or anything with __dlpack__"
    )


def dtype_code(dtype):
    """octavo_dtype of a dtype or its name; None for one that the library does not have."""
    if not isinstance(dtype, str):
        dtype = str(dtype) if type(dtype).__module__ == "torch" else np.dtype(dtype).name
        dtype = dtype.rpartition(".")[2]
    return DTYPES.get(dtype, ALIASES.get(dtype))


def numpy_dtype(code):
    """The NumPy dtype of an octavo_dtype."""
    name = DTYPE_NAMES[code]
    if code in (2, 3, 4):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def _wanted(name):
    return _WANTED.get(name, f"one of {', '.join(DTYPES)}")


def known_code(dtype, name):
    """octavo_dtype of an array's dtype; ValueError for one that the library does not have."""
    code = dtype_code(dtype)
    if code is None:
        dtype = str(dtype).rpartition(".")[2]
        raise error(name, f"dtype is {dtype}; it must be {_wanted(name)}")
    return code


def describe(array, name, writable=False):
    """The description of an array; ValueError if the call cannot use it."""
    kind = kind_of(array, name)
    if kind == "torch":
        return _describe_torch(array, name)
    if kind == "dlpack":
        return _describe_dlpack(array, name, writable)
    if kind == "jax":
        if writable:
            raise error(name, "JAX arrays do not change; leave out in_place and out")
        array = _jax_view(array, name)
    return _describe_numpy(array, name, writable)


def share_memory(one, other):
    """Whether the memory from first to last element of two descriptions overlaps."""

    def span(description):
        address, code, shape, strides, _ = description
        if 0 in shape:
            return address, address
        size = ITEM_BYTES[code]
        if strides is None:
            return address, address + math.prod(shape) * size
        far = [stride * (extent - 1) * size for stride, extent in zip(strides, shape)]
        return (
            address + sum(step for step in far if step < 0),
            address + sum(step for step in far if step > 0) + size,
        )

    (begin, end), (other_begin, other_end) = span(one), span(other)
    return begin < other_end and other_begin < end


# NumPy takes longer to name a dtype than the rest of a description takes.
_numpy_codes: dict = {}


def _numpy_code(dtype, name):
    if not dtype.isnative:
        raise error(name, f"dtype {dtype.str} has another byte order; convert it first")
    code = known_code(dtype, name)
    _numpy_codes[dtype] = code
    return code


def _describe_numpy(array, name, writable):
    code = _numpy_codes.get(array.dtype)
    if code is None:
        code = _numpy_code(array.dtype, name)
    if writable and not array.flags.writeable:
        raise error(name, "is read-only, but would be written")
    strides = None
    if not array.flags.c_contiguous:
        item = array.itemsize
        if any(stride % item for stride in array.strides):
            raise error(name, f"strides {array.strides} are not whole elements; make a dense copy")
        strides = tuple(stride // item for stride in array.strides)
    return array.__array_interface__["data"][0], code, array.shape, strides, array


def _describe_torch(tensor, name):
    if tensor.device.type != "cpu":
        raise error(name, f"is on device {tensor.device}; only the CPU's memory is used")
    if str(tensor.layout) != "torch.strided":
        raise error(name, f"has layout {tensor.layout}; it must be strided")
    if tensor.is_neg():
        raise error(name, "is a view whose sign is still to be turned; use resolve_neg()")
    code = known_code(tensor.dtype, name)
    shape = tuple(tensor.shape)
    strides = None if tensor.is_contiguous() else tuple(tensor.stride())
    # untyped_storage().resize_() takes memory away under a tensor, which keeps its shape
    if strides is None:
        reach = math.prod(shape)
    else:
        reach = 0 not in shape and 1 + sum(s * (n - 1) for s, n in zip(strides, shape))
    has = tensor.untyped_storage().nbytes()
    needs = (tensor.storage_offset() + reach) * ITEM_BYTES[code]
    if needs > has and reach:
        raise error(name, f"has a storage of {has} bytes, but reaches to byte {needs} of it; was it resized?")
    return tensor.data_ptr(), code, shape, strides, tensor


def _jax_view(array, name):
    if any(device.platform != "cpu" for device in array.devices()):
        raise error(name, "is not on a CPU device; only the CPU's memory is used")
    return np.asarray(array)


def _dlpack_device(array, name):
    """The type of the device of a DLPack object, as a number."""
    ask = getattr(array, "__dlpack_device__", None)
    if not callable(ask):
        raise error(name, "has __dlpack__, but no __dlpack_device__; both are needed")
    device = ask()
    try:
        kind, number = map(operator.index, device)
    except (TypeError, ValueError):
        raise error(
            name, f"__dlpack_device__() gives {shown(device)}; it must give two integers, type and number"
        ) from None
    return kind


def _describe_dlpack(array, name, writable):
    device = _dlpack_device(array, name)
    if device not in _DLPACK_CPU:
        raise error(name, f"is on DLPack device {shown(device)}; only the CPU's memory is used")
    try:
        try:
            capsule = array.__dlpack__(max_version=(1, 1))
        except TypeError:
            capsule = array.__dlpack__()
        address, type_code, bits, lanes, shape, strides, read_only = _octavo.dlpack(capsule)
    except (BufferError, ValueError) as reason:
        raise error(name, f"__dlpack__() gives no memory: {reason}") from reason
    code = _DLPACK.get((type_code, bits)) if lanes == 1 else None
    if code is None:
        raise error(name, f"DLPack type {type_code} of {bits} bits; it must be {_wanted(name)}")
    if writable and read_only:
        raise error(name, "is read-only, but would be written")
    return address, code, shape, strides, capsule


def describe_dtype(array, name):
    """octavo_dtype of any array."""
    if kind_of(array, name) == "dlpack":
        return describe(array, name)[1]
    return known_code(array.dtype, name)


def shape_of(array, name):
    """The shape of any array, as a tuple."""
    if kind_of(array, name) == "dlpack":
        return describe(array, name)[2]
    return tuple(array.shape)


def empty(like, shape, code):
    """A new array of like's kind (NumPy's for DLPack objects); code None for like's own dtype."""
    if kind_of(like, "queries") == "torch":
        import torch

        dtype = like.dtype if code is None else getattr(torch, DTYPE_NAMES[code])
        return torch.empty(shape, dtype=dtype)
    if code is None:
        code = describe(like, "queries")[1]
    return np.empty(shape, numpy_dtype(code))


def copy(array, like, name):
    """A dense copy, bit for bit, of like's kind."""
    kind = kind_of(array, name)
    to = kind_of(like, "queries")
    if kind == to == "torch":
        import torch

        describe(array, name)  # a storage that is too short is not to be read
        return array.detach().clone(memory_format=torch.contiguous_format)
    copied = np.array(array if kind == "numpy" else _view(describe(array, name)), order="C", copy=True)
    return to_torch(copied) if to == "torch" else copied


def _view(description):
    """A NumPy view of described memory."""
    address, code, shape, strides, owner = description
    dtype = numpy_dtype(code)
    if 0 in shape:
        return np.empty(shape, dtype)
    if strides is None:
        strides = [1] * len(shape)
        for axis in range(len(shape) - 1, 0, -1):
            strides[axis - 1] = strides[axis] * shape[axis]
    far = [stride * (extent - 1) for stride, extent in zip(strides, shape)]
    begin = sum(step for step in far if step < 0) * dtype.itemsize
    end = (sum(step for step in far if step > 0) + 1) * dtype.itemsize
    buffer = (ctypes.c_char * (end - begin)).from_address(address + begin)
    buffer.owner = owner
    return np.ndarray(shape, dtype, buffer, -begin, [stride * dtype.itemsize for stride in strides])


def to_torch(array):
    """A tensor over a NumPy array's memory, ml_dtypes included."""
    import torch

    name = array.dtype.name
    if array.dtype.kind != "V" and name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return torch.from_numpy(array)
    bits = np.int16 if array.itemsize == 2 else np.uint8
    return torch.from_numpy(array.view(bits)).view(getattr(torch, name))


def like_queries(array, queries):
    """A NumPy result as the kind of a DLPack object, where that kind says how it is made."""
    namespace = getattr(queries, "__array_namespace__", None)
    if namespace is None:
        return array
    try:
        return namespace().from_dlpack(array)
    except (AttributeError, BufferError, TypeError, ValueError):
        return array
