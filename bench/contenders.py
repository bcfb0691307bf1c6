# SPDX-License-Identifier: Apache-2.0
"""Who takes part: octavo's kernel through its command and its Python module, PyTorch, ejkernel.

A contender opens a session for a case: its arrays exist and one call was made, so that nothing is
compiled, allocated or chosen while time is taken. What cannot be imported takes no part.
"""

import importlib
import json
import math
import platform
import subprocess
import time
from pathlib import Path
from statistics import median

from cases import Case


class Unsupported(Exception):
    """This contender cannot do this case; the text says why."""


class Session:
    """Calls of a function in this process."""

    def __init__(self, call, form: str = ""):
        self.call, self.form = call, form  # how the call is written, where there are several ways
        self.call()
        self.estimate = self.time()

    def time(self) -> float:
        start = time.perf_counter()
        self.call()
        return time.perf_counter() - start

    def turn(self, seconds: float) -> tuple[float, float, list]:
        """Best and median of as many calls as fit `seconds`; no limits of the machine."""
        some = [self.time() for _ in range(max(1, min(1000, int(seconds / self.estimate))))]
        return min(some), median(some), []


class Contender:
    is_peer = True

    def __init__(self, name: str, kv_bytes: int, q_bytes: int, arithmetic: str):
        self.name, self.kv_bytes, self.q_bytes = name, kv_bytes, q_bytes
        self.arithmetic = arithmetic  # "f32", "bf16", or "mixed": half of the operations each

    def peak(self, f32: float, bf16: float) -> float:
        """The limit of its arithmetic; f32 where the machine has no bf16 instructions."""
        if self.arithmetic == "f32" or bf16 <= 0.0:
            return f32
        return bf16 if self.arithmetic == "bf16" else 2.0 / (1.0 / bf16 + 1.0 / f32)


# ---- octavo ------------------------------------------------------------------------------------


class CommandSession:
    """`octavo bench attention`: a process for each turn, which times its own calls."""

    def __init__(self, command: list, with_limits: bool):
        self.command, self.with_limits, self.form = command, with_limits, ""
        self.estimate = self.run(1, False)["seconds"]["best"]

    def run(self, repeat: int, with_limits: bool) -> dict:
        command = self.command + ["--repeat", str(repeat)]
        if not with_limits:
            command.append("--no-limits")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unsupported(done.stderr.strip())
        return json.loads(done.stdout)

    def turn(self, seconds: float) -> tuple[float, float, list]:
        repeat = max(1, min(1000, int(seconds / self.estimate)))
        result = self.run(repeat, self.with_limits)
        limits = list(result["machine"].values()) if self.with_limits else []
        return result["seconds"]["best"], result["seconds"]["median"], limits


class Command(Contender):
    is_peer = False

    def __init__(self, path: str, threads: int, q_dtype: str, kv_dtype: str, layout: str,
                 precision: str = "strict", with_limits: bool = False):
        sizes = {"f32": 4, "f16": 2, "bf16": 2}
        is_bf16 = q_dtype == kv_dtype == "bf16"
        arithmetic = ("bf16" if precision == "bf16" else "mixed") if is_bf16 else "f32"
        name = f"octavo {kv_dtype} {layout}" + (" weights bf16" if precision == "bf16" else "")
        super().__init__(name, sizes.get(kv_dtype, 1), sizes[q_dtype], arithmetic)
        self.options = [path, "bench", "attention", "--json", "--threads", str(threads),
                        "--q-dtype", q_dtype, "--kv-dtype", kv_dtype, "--layout", layout,
                        "--precision", precision]
        self.with_limits = with_limits

    def open(self, case: Case) -> CommandSession:
        return CommandSession(self.options + [
            "--heads", str(case.heads), "--kv-heads", str(case.kv_heads),
            "--head-dim", str(case.head_dim), "--page-size", str(case.page_size),
            "--batch", case.batch], self.with_limits)


class Paged:
    """The arrays of a case as the published interface wants them; pages in random order."""

    def __init__(self, case: Case, dtype):
        import numpy

        random = numpy.random.default_rng(1)
        dtype = numpy.dtype(dtype)
        packing = 4 // dtype.itemsize
        n_pages = case.n * case.pages_per_sequence

        def draw(*shape):
            return random.random(shape, dtype=numpy.float32).astype(dtype)

        self.queries = draw(case.queries, case.heads, case.head_dim)
        self.keys = draw(case.queries, case.kv_heads, case.head_dim)
        self.values = draw(case.queries, case.kv_heads, case.head_dim)
        self.kv_cache = draw(n_pages, case.page_size, 2 * case.kv_heads // packing, packing,
                             -(-case.head_dim // 128) * 128)
        self.kv_lens = numpy.full(case.n, case.kv_len, numpy.int32)
        self.block_tables = random.permutation(n_pages).astype(numpy.int32)
        self.query_start_loc = numpy.arange(case.n + 1, dtype=numpy.int32) * numpy.int32(case.q_len)
        decodes = case.n if case.q_len == 1 else 0
        self.distribution = numpy.array([decodes, decodes, case.n], numpy.int32)

    def all(self) -> list:
        return [self.queries, self.keys, self.values, self.kv_cache, self.kv_lens,
                self.block_tables, self.query_start_loc, self.distribution]


class Module(Contender):
    """The Python module; the cache is updated in place."""

    is_peer = False

    def __init__(self, module, ml_dtypes):
        super().__init__("octavo in Python, bf16 rows", 2, 2, "mixed")
        self.module, self.ml_dtypes = module, ml_dtypes

    def open(self, case: Case) -> Session:
        arrays = Paged(case, self.ml_dtypes.bfloat16).all()
        scale = 1.0 / math.sqrt(case.head_dim)
        attend = self.module.ragged_page_attention_v3
        return Session(lambda: attend(*arrays, softmax_scale=scale, in_place=True))


# ---- peers -------------------------------------------------------------------------------------


class Torch(Contender):
    """scaled_dot_product_attention over contiguous keys and values: no pages, no update."""

    def __init__(self, torch, dtype_name: str):
        size = {"f32": 4, "bf16": 2}[dtype_name]
        super().__init__(f"torch {dtype_name}", size, size, dtype_name)
        self.torch = torch
        self.dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype_name]

    def draw(self, *shape):
        generator = self.torch.Generator().manual_seed(1)
        return self.torch.rand(shape, generator=generator).to(self.dtype)

    def open(self, case: Case) -> Session:
        """Of the ways to write it down, the one that is fastest here."""
        attend = self.torch.nn.functional.scaled_dot_product_attention
        queries = self.draw(case.n, case.heads, case.q_len, case.head_dim)
        keys = self.draw(case.n, case.kv_heads, case.kv_len, case.head_dim)
        values = self.draw(case.n, case.kv_heads, case.kv_len, case.head_dim)
        group = case.heads // case.kv_heads
        is_causal = case.q_len > 1
        forms = {"enable_gqa": lambda: attend(queries, keys, values, is_causal=is_causal,
                                              enable_gqa=True)}
        if is_causal:
            many = [one.repeat_interleave(group, dim=1) for one in (keys, values)]
            forms["heads repeated"] = lambda: attend(queries, *many, is_causal=True)
        else:  # the query heads of a group as rows of one head
            rows = queries.reshape(case.n, case.kv_heads, group, case.head_dim)
            forms["heads as rows"] = lambda: attend(rows, keys, values)
        with self.torch.inference_mode():
            sessions = [TorchSession(self.torch, call, form) for form, call in forms.items()]
        return min(sessions, key=lambda session: session.estimate)


class TorchSession(Session):
    def __init__(self, torch, call, form: str):
        self.torch = torch
        super().__init__(call, form)

    def turn(self, seconds: float):
        with self.torch.inference_mode():
            return super().turn(seconds)


class Ejkernel(Contender):
    """The published interface's own form for CPUs."""

    def __init__(self, attend, jax):
        super().__init__("ejkernel bf16", 2, 2, "bf16")
        self.attend, self.jax = attend, jax

    def open(self, case: Case) -> Session:
        import ml_dtypes

        paged = Paged(case, ml_dtypes.bfloat16)
        before, after = paged.all()[:3], paged.all()[4:]
        before = [self.jax.numpy.asarray(one) for one in before]
        after = [self.jax.numpy.asarray(one) for one in after]
        cache = self.jax.numpy.asarray(paged.kv_cache)
        scale = 1.0 / math.sqrt(case.head_dim)

        def call():  # which takes the cache and gives it back updated
            nonlocal cache
            output, cache = self.attend(*before, cache, *after, softmax_scale=scale)
            self.jax.block_until_ready((output, cache))

        return Session(call)


def try_import(name: str):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def find(path: str, threads: int) -> list:
    """Everyone who is here."""
    field = [Command(path, threads, "bf16", "bf16", "columns", with_limits=True),
             Command(path, threads, "bf16", "bf16", "columns", "bf16"),
             Command(path, threads, "bf16", "bf16", "rows"),
             Command(path, threads, "bf16", "fp8_e4m3", "columns"),
             Command(path, threads, "bf16", "int8", "columns"),
             Command(path, threads, "f32", "f32", "columns")]
    module, ml_dtypes = try_import("octavo"), try_import("ml_dtypes")
    if ml_dtypes and hasattr(module, "ragged_page_attention_v3"):
        field.append(Module(module, ml_dtypes))
    torch = try_import("torch")
    if torch:
        torch.set_num_threads(threads)
        field += [Torch(torch, "f32"), Torch(torch, "bf16")]
    jax = try_import("jax")
    kernels = try_import("ejkernel.kernels._xla.ragged_page_attention_v3") if jax else None
    if kernels:
        field.append(Ejkernel(kernels.ragged_page_attention_v3, jax))
    return field


# ---- about -------------------------------------------------------------------------------------


def measure_limits(path: str) -> dict:
    done = subprocess.run([path, "bench", "machine", "--json"], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)["machine"][-1]


def describe_machine() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def versions(path: str) -> dict:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    found = {"octavo": done.stdout.split()[-1]}
    for name in ("torch", "jax", "ejkernel"):
        module = try_import(name)
        if module:
            found[name] = module.__version__
    return found
