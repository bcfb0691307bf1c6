# SPDX-License-Identifier: Apache-2.0
"""PyTorch: tensors, the operators, torch.compile."""

import inspect

import numpy as np
import octavo
import pytest
from batches import bits, ragged
from conftest import framework
from octavo._arrays import _view, describe, to_torch

torch = framework("torch", allow_module_level=True)
import octavo.torch as module  # noqa: E402  needs torch

attend = module.ragged_page_attention_v3
SCALE = {"softmax_scale": 0.125}
TYPES = [
    ("float32", "float32"),
    ("float16", "float16"),
    ("bfloat16", "bfloat16"),
    ("bfloat16", "float8_e4m3fn"),
    ("bfloat16", "float8_e5m2"),
    ("float16", "int8"),
]


def batch(q="float32", kv="float32", **more):
    given = {"lengths": [(1, 20), (5, 9)], "page_size": 4, "heads": (4, 2), "head_dim": 24, **more}
    return ragged(3, **given, q_dtype=q, kv_dtype=kv)


def tensors(arrays):
    return {name: to_torch(array.copy()) for name, array in arrays.items()}


def same(tensor, array):
    assert isinstance(tensor, torch.Tensor)
    seen = _view(describe(tensor, "tensor"))
    return seen.dtype == array.dtype and np.array_equal(bits(seen), bits(array))


@pytest.mark.parametrize("q, kv", TYPES)
@pytest.mark.parametrize("function", [octavo.ragged_page_attention_v3, attend])
def test_types(function, q, kv):
    arrays = batch(q, kv)
    want = octavo.ragged_page_attention_v3(**arrays, **SCALE)
    given = tensors(arrays)
    output, cache = function(**given, **SCALE)
    assert same(output, want[0]) and same(cache, want[1])
    assert all(same(given[name], array) for name, array in arrays.items())
    output, cache = function(**given, **SCALE, in_place=True)
    assert same(output, want[0]) and cache is given["kv_cache"] and same(cache, want[1])


def owned(arrays):
    """Tensors whose memory is PyTorch's own, which it can resize."""
    return {name: tensor.clone() for name, tensor in tensors(arrays).items()}


@pytest.mark.parametrize("name", list(batch()))
@pytest.mark.parametrize("strided", [False, True])
def test_a_storage_that_was_shrunk(name, strided):
    """resize_() takes memory away under a tensor, which keeps its shape and pointer."""
    given = owned(batch())
    if strided and given[name].dim() > 1:
        given[name] = torch.stack([given[name]] * 2, 1)[:, 1]
    elif strided:
        given[name] = torch.cat([torch.zeros(5, dtype=torch.int32), given[name]])[5:]
    tensor = given[name]
    far = sum(stride * (n - 1) for n, stride in zip(tensor.shape, tensor.stride()))
    needs = (tensor.storage_offset() + far + 1) * tensor.element_size()
    storage = tensor.untyped_storage()
    storage.resize_(needs)
    attend(**given, **SCALE)
    before = bits(_view(describe(given["kv_cache"], "kv_cache")).copy())
    storage.resize_(needs - 1)
    text = rf"\({name}\): has a storage of {needs - 1} bytes, but reaches to byte {needs} of it"
    out = torch.zeros(given["queries"].shape)
    for way in ({}, {"in_place": True}, {"out": out}, {"out": out, "in_place": True}):
        with pytest.raises(ValueError, match=text):
            attend(**given, **SCALE, **way)
    if name != "kv_cache":
        assert np.array_equal(bits(_view(describe(given["kv_cache"], "kv_cache"))), before)


def test_storages_that_were_shrunk_elsewhere():
    """The output; a bound cache; a table that reshape() would copy; an empty tensor needs none."""
    given = owned(batch())
    out = torch.zeros(given["queries"].shape)
    out.untyped_storage().resize_(4)
    with pytest.raises(ValueError, match=r"\(output\): has a storage of 4 bytes"):
        attend(**given, **SCALE, out=out)
    backend = octavo.AttentionBackend(4, 24, 0.125, 2)
    backend.bind_cache("a", given["kv_cache"])
    tables = torch.cat([given["block_tables"].reshape(3, -1)] * 2, 1)[:, :6]
    rows = [given[name].flatten(1) for name in ("queries", "keys", "values")]
    metadata = {name: given[name] for name in ("kv_lens", "query_start_loc", "distribution")}
    backend.forward("a", *rows, {**metadata, "block_tables": tables})
    tables.untyped_storage().resize_(4)
    with pytest.raises(ValueError, match=r"\(layer a\): .*\(block_tables\): has a storage of 4 bytes"):
        backend.forward("a", *rows, {**metadata, "block_tables": tables})
    given["kv_cache"].untyped_storage().resize_(0)
    with pytest.raises(ValueError, match=r"\(layer a\): .*\(kv_cache\): has a storage of 0 bytes"):
        backend.forward("a", *rows, {**metadata, "block_tables": given["block_tables"]})
    given = owned(batch(lengths=[(0, 0)], spare_rows=0))
    given["queries"].untyped_storage().resize_(0)
    assert attend(**given, **SCALE)[0].shape == (0, 4, 24)


def test_the_rest_of_the_arguments():
    arrays = batch(filled=True)
    given = tensors(arrays)
    for params in (
        {"update_kv_cache": False},
        {"output_scale": 0.1, "output_dtype": torch.int8},
        {"type": "encoder", "precision": "bf16", "sliding_window": 3},
        {"logits_soft_cap": 3.0, "k_scale": 0.5, "v_scale": 2.0, "chunk_size": 4},
        {"context": octavo.AttentionContext(1, "scalar"), "vmem_limit_bytes": 1 << 20},
    ):
        plain = {k: "int8" if v is torch.int8 else v for k, v in params.items()}
        want = octavo.ragged_page_attention_v3(**arrays, **SCALE, **plain)
        got = attend(**given, **SCALE, **params)
        assert same(got[0], want[0]) and same(got[1], want[1])
    slopes = np.float32([0.1, 0.2, 0.3, 0.4])
    want = octavo.ragged_page_attention_v3(**arrays, alibi_slopes=slopes, attention_sink=-slopes)
    got = attend(**given, alibi_slopes=torch.from_numpy(slopes), attention_sink=torch.from_numpy(-slopes))
    assert same(got[0], want[0])


def test_out_and_versions():
    arrays = batch()
    want = octavo.ragged_page_attention_v3(**arrays, **SCALE)
    given = tensors(arrays)
    out = torch.empty_like(given["queries"])
    versions = out._version, given["kv_cache"]._version
    output, cache = attend(**given, **SCALE, out=out, in_place=True)
    assert output is out and same(out, want[0]) and same(cache, want[1])
    assert out._version > versions[0] and cache._version > versions[1]
    version = cache._version
    attend(**given, **SCALE, in_place=True)
    assert cache._version > version


def test_mixed_with_numpy():
    arrays = batch()
    want = octavo.ragged_page_attention_v3(**arrays, **SCALE)
    mixed = {**arrays, "queries": torch.from_numpy(arrays["queries"])}
    output, cache = octavo.ragged_page_attention_v3(**mixed, **SCALE)
    assert same(output, want[0]) and same(cache, want[1])
    mixed = {**arrays, "kv_cache": torch.from_numpy(arrays["kv_cache"])}
    output, cache = octavo.ragged_page_attention_v3(**mixed, **SCALE)
    assert type(output) is type(cache) is np.ndarray and np.array_equal(bits(cache), bits(want[1]))


def test_refused():
    arrays = batch()
    given = tensors(arrays)
    with pytest.raises(TypeError, match=r"\(queries\): ndarray is no torch.Tensor"):
        attend(**arrays)
    with pytest.raises(ValueError, match=r"\(sliding_window\)"):
        attend(**given, sliding_window=0)
    with pytest.raises(ValueError, match=r"\(queries\): dtype is float64"):
        attend(**{**given, "queries": given["queries"].double()})
    with pytest.raises(ValueError, match=r"\(keys\): is on device meta"):
        octavo._arrays.describe(given["keys"].to("meta"), "keys")
    with pytest.raises(ValueError, match=r"\(kv_cache\): has layout torch.sparse"):
        octavo._arrays.describe(given["kv_cache"].to_sparse(), "kv_cache")


def test_operators():
    """They are registered, and do what torch.library asks of operators."""
    given = {name: to_torch(array) for name, array in batch().items()}
    arguments = tuple(given[name] for name in octavo._arrays.NAMES[:8])
    ops = torch.ops.octavo
    output, cache = ops.ragged_page_attention_v3(*arguments, softmax_scale=0.125)
    want, _ = attend(*arguments, **SCALE)
    assert torch.equal(output, want) and cache is not arguments[3]
    clean = [torch.nan_to_num(x) if x.is_floating_point() else x for x in arguments]
    for suffix in ("", "_", "_read"):
        op = getattr(ops, f"ragged_page_attention_v3{suffix}")
        torch.library.opcheck(op.default, tuple(clean), {"softmax_scale": 0.125, "sliding_window": 3})


def _program(queries, keys, values, kv_cache, *index, **params):
    output, cache = attend(queries * 2, keys, values, kv_cache, *index, **SCALE, **params)
    return output + 1, cache


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"in_place": True},
        {"update_kv_cache": False},
        {"sliding_window": 3, "logits_soft_cap": 5.0, "context": octavo.AttentionContext(1)},
    ],
    ids=["copy", "in place", "read", "options"],
)
def test_compile(params, backend):
    torch.compiler.reset()
    arrays = batch("bfloat16", "bfloat16", filled=True)

    def program(*arguments):
        return _program(*arguments, **params)

    compiled = torch.compile(program, fullgraph=True, backend=backend)
    names = octavo._arrays.NAMES[:8]
    for _ in range(2):
        a, b = tensors(arrays), tensors(arrays)
        want = program(*(a[name] for name in names))
        got = compiled(*(b[name] for name in names))
        assert torch.equal(got[0], want[0]) and same(got[1], _view(describe(want[1], "cache")))
        assert same(b["kv_cache"], _view(describe(a["kv_cache"], "cache")))


def test_compile_with_out():
    torch.compiler.reset()
    given = tensors(batch())
    names = octavo._arrays.NAMES[:8]

    def program(out, *arguments):
        return attend(*arguments, **SCALE, out=out)[0]

    out = torch.empty_like(given["queries"])
    torch.compile(program, fullgraph=True, backend="aot_eager")(out, *(given[name] for name in names))
    assert torch.equal(out, attend(**given, **SCALE)[0])


def test_compile_for_any_number_of_tokens():
    torch.compiler.reset()
    compiled = torch.compile(_program, fullgraph=True, backend="aot_eager", dynamic=True)
    names = octavo._arrays.NAMES[:8]
    for new in (2, 3, 7):
        given = tensors(batch(lengths=[(new, new + 3), (1, 9)]))
        arguments = [given[name] for name in names]
        want = _program(*arguments)
        got = compiled(*arguments)
        assert torch.equal(got[0], want[0])


def test_what_is_wrong_is_an_error_when_traced():
    fake = torch._subclasses.FakeTensorMode()
    given = tensors(batch())
    with fake:
        given = {name: fake.from_tensor(tensor) for name, tensor in given.items()}
        with pytest.raises(ValueError, match=r"\(kv_cache\): shape"):
            attend(**{**given, "kv_cache": given["kv_cache"][..., :64]})
        assert attend(**given)[0].shape == given["queries"].shape


def test_no_gradients_are_made_up():
    given = tensors(batch())
    given["queries"].requires_grad_()
    output, _ = attend(**given, **SCALE)
    with pytest.raises(RuntimeError, match="autograd|backward|differentiable"):
        output.sum().backward()


def test_signature():
    assert inspect.signature(attend) == inspect.signature(octavo.ragged_page_attention_v3)
