# SPDX-License-Identifier: Apache-2.0
"""Threads, instruction sets, concurrent calls, forks."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import octavo
import pytest
from batches import bits, ragged
from conftest import framework

SCALE = {"softmax_scale": 0.125}


def batch(seed=1, **more):
    given = {"lengths": [(1, 700), (64, 64)], "page_size": 16, "heads": (8, 2), "head_dim": 64, **more}
    return ragged(seed, **given)


def test_settings():
    context = octavo.AttentionContext(2, "scalar")
    assert (context.threads, context.isa, context.pin) == (2, "scalar", False)
    assert repr(context) == "AttentionContext(threads=2, isa='scalar', pin=False)"
    assert context == octavo.AttentionContext(2, "scalar") != octavo.AttentionContext(2)
    assert pickle.loads(pickle.dumps(context)) == context
    assert len({context, octavo.AttentionContext(2, "scalar")}) == 1
    context.release()
    context.release()
    octavo.ragged_page_attention_v3(**batch(), **SCALE, context=context)


@pytest.mark.parametrize(
    "threads, isa", [(-1, None), (2**31, None), (2**70, None), (1, "sse9"), (1, "x" * 100), (1, "a\0b")]
)
def test_settings_that_cannot_be(threads, isa):
    with pytest.raises(ValueError, match="."):
        octavo.AttentionContext(threads, isa)


def test_context_of_another_type():
    with pytest.raises(TypeError, match=r"\(context\): int is no octavo.AttentionContext"):
        octavo.ragged_page_attention_v3(**batch(), context=3)


def test_many_threads_at_once():
    """More calls at once than idle contexts are kept, on the same and on other settings."""
    batches = [batch(seed) for seed in range(4)]
    alone = [octavo.ragged_page_attention_v3(**arrays, **SCALE) for arrays in batches]
    contexts = [None, octavo.AttentionContext(1), octavo.AttentionContext(2)]
    failures, gate = [], threading.Barrier(24)

    def work(me):
        try:
            gate.wait()
            for i in range(6):
                which = (me + i) % len(batches)
                got = octavo.ragged_page_attention_v3(
                    **batches[which], **SCALE, context=contexts[(me + i) % len(contexts)]
                )
                assert all(np.array_equal(bits(a), bits(b)) for a, b in zip(got, alone[which]))
        except BaseException as reason:  # noqa: BLE001  told to the thread that asks
            failures.append(reason)

    threads = [threading.Thread(target=work, args=(me,)) for me in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_lock_is_released():
    """Another Python thread runs while a call does."""
    arrays = batch(lengths=[(1500, 1500)], heads=(8, 8), head_dim=128)
    context = octavo.AttentionContext(1)
    running, ticks = threading.Event(), []

    def tick():
        running.wait()
        while running.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    ticker = threading.Thread(target=tick)
    ticker.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        running.set()
        begin = time.perf_counter()
        octavo.ragged_page_attention_v3(**arrays, **SCALE, context=context)
        end = time.perf_counter()
    finally:
        running.clear()
        ticker.join()
        sys.setswitchinterval(interval)
    middle = [at for at in ticks if begin + (end - begin) / 4 < at < end - (end - begin) / 4]
    assert middle, f"no tick within a call of {end - begin:.3f} s"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer")
@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("in_place", [False, True])
def test_interrupt(kind, in_place):
    """Ctrl-C within a call: the call completes, and KeyboardInterrupt is what it raises."""
    arrays = batch(lengths=[(1500, 1500)], heads=(8, 8), head_dim=128)
    more = {**SCALE, "context": octavo.AttentionContext(1)}
    want = octavo.ragged_page_attention_v3(**arrays, **more)[1]
    before = arrays["kv_cache"].copy()
    if kind == "torch":
        arrays = {name: framework("torch").from_numpy(array) for name, array in arrays.items()}
    lengths = []
    for _ in range(3):
        begin = time.perf_counter()
        octavo.ragged_page_attention_v3(**arrays, **more)
        lengths.append(time.perf_counter() - begin)
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)  # as Ctrl-C's
    try:
        for _ in range(10):  # a busy machine may stop the thread between the timer and the call
            arrays["kv_cache"][:] = framework("torch").from_numpy(before) if kind == "torch" else before
            with pytest.raises(KeyboardInterrupt) as raised:
                signal.setitimer(signal.ITIMER_REAL, min(lengths) / 4)
                octavo.ragged_page_attention_v3(**arrays, **more, in_place=in_place)
                time.sleep(10)
            if raised.traceback[-1].name == "guarded":  # where the C module is called
                break
        else:
            pytest.fail("no call was interrupted")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert np.array_equal(bits(np.asarray(arrays["kv_cache"])), bits(want if in_place else before))
    after, _ = octavo.ragged_page_attention_v3(**batch(), **more)  # what it borrowed was given back
    assert not np.isnan(after[: 1 + 64]).any()


ENVIRONMENT = """
import sys
import numpy as np
import octavo
if sys.argv[1] == "jax":
    import jax.numpy as xp
else:
    xp = np
i32 = lambda *numbers: xp.asarray(np.array(numbers, np.int32))
q = xp.ones((1, 2, 8), np.float32)
v = xp.ones((1, 1, 8), np.float32)
cache = xp.zeros((1, 4, 2, 1, 128), np.float32)
for call in (octavo.AttentionContext, lambda: octavo.ragged_page_attention_v3(
        q, v, v, cache, i32(1), i32(0), i32(0, 1), i32(0, 0, 1))):
    try:
        call()
        print("no error")
    except UnicodeDecodeError as reason:
        print("not decoded:", reason)
    except (ValueError, RuntimeError) as reason:
        print(ascii(str(reason)))
"""


@pytest.mark.parametrize("kind", ["numpy", "jax"])
@pytest.mark.parametrize("level", [b"\xff\xfe", b"avx2\xc3", "\u00e9".encode() * 40 + b"x"])
def test_environment_of_any_bytes(kind, level):
    if kind == "jax":
        framework("jax")
    environment = {**os.environb, b"OCTAVO_CPU": level}
    done = subprocess.run(
        [sys.executable, "-c", ENVIRONMENT, kind], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "instruction set" in line and "OCTAVO_CPU): no such level; use best" in line
    shown = ascii(level[:40].decode(errors="replace").replace("\ufffd", "?"))[1:-1]
    assert f'"{shown}"' in lines[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_fork():
    """A child has no worker threads, but calls all the same."""
    arrays = batch()
    want, _ = octavo.ragged_page_attention_v3(**arrays, **SCALE)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            got, _ = octavo.ragged_page_attention_v3(**arrays, **SCALE)
            code = 0 if np.array_equal(bits(got), bits(want)) else 2
        finally:
            os._exit(code)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    again, _ = octavo.ragged_page_attention_v3(**arrays, **SCALE)
    assert np.array_equal(bits(again), bits(want))
