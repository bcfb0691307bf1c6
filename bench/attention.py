#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention over context and prompt length: octavo, what else there is in Python, and the machine.

All that is measured for one length takes turns (A B C, A B C, ...), so that a machine that slows
down for a minute slows them all. Read ratios and shares before absolute figures. See README.md.
"""

import argparse
import gc
import json
import os
import shutil
import sys
import time
from pathlib import Path
from statistics import median

import contenders
import report
from cases import Case, decode, prefill

LENGTHS = {
    "decode": [256, 512, 1024, 2048, 4096, 8192],
    "prefill": [64, 128, 256, 512, 1024, 2048, 4096],
}
QUICK_LENGTHS = {"decode": [512, 4096], "prefill": [128, 1024]}
TURN_SECONDS = 0.3  # of measured calls
SLOWEST_CALL = 4.0  # seconds; longer lengths are then left out for that contender
PAUSE = 0.05  # until the threads of the last one have gone to sleep


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--octavo", default="octavo", metavar="PATH", help="the command (octavo)")
    parser.add_argument("--out", default="build/bench-attention", metavar="DIR", type=Path,
                        help="folder of the tables and plots (build/bench-attention)")
    parser.add_argument("--threads", default=0, type=int, metavar="N",
                        help="cores for everyone (all that this process may use)")
    parser.add_argument("--rounds", default=0, type=int, metavar="N",
                        help="turns of each (5; quick: 2)")
    parser.add_argument("--only", default="", metavar="NAME,...",
                        help="contenders whose name contains one of these")
    parser.add_argument("--phase", default="both", choices=["decode", "prefill", "both"])
    parser.add_argument("--quick", action="store_true",
                        help="few lengths, few rounds: one or two minutes")
    arguments = parser.parse_args()
    if arguments.rounds <= 0:
        arguments.rounds = 2 if arguments.quick else 5
    return arguments


def choose_cores(wanted: int) -> int:
    """Binds this process, and so all it starts, to one hardware thread of each of so many cores."""
    chosen, seen = [], set()
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = siblings.read_text() if siblings.exists() else str(cpu)
        if core not in seen:
            seen.add(core)
            chosen.append(cpu)
    chosen = chosen[:wanted] if wanted > 0 else chosen
    os.sched_setaffinity(0, chosen)
    return len(chosen)


def measure(case: Case, sessions: dict, rounds: int) -> tuple[dict, list]:
    """All turns of a case: {name: [(best, median) of each turn]}, and the limits meanwhile."""
    turns, limits = {name: [] for name in sessions}, []
    for _ in range(rounds):
        for name, session in list(sessions.items()):
            time.sleep(PAUSE)
            best, middle, machine = session.turn(TURN_SECONDS)
            turns[name].append((best, middle))
            limits += machine
    return turns, limits


def open_sessions(case: Case, field: list, too_slow: set) -> dict:
    sessions = {}
    for contender in field:
        if contender.name in too_slow:
            continue
        try:
            sessions[contender.name] = contender.open(case)
        except contenders.Unsupported as reason:
            print(f"  {contender.name}: {reason}", file=sys.stderr)
    return sessions


def summarise(case: Case, field: list, turns: dict, limits: list, forms: dict) -> dict:
    """The row of a case: what the limits were on average, and what each contender reached."""
    read = sum(one["read_gbps"] for one in limits) / len(limits)
    f32 = sum(one["f32_gflops"] for one in limits) / len(limits)
    bf16 = sum(one["bf16_gflops"] for one in limits) / len(limits)
    results = {}
    for contender in field:
        if not turns.get(contender.name):
            continue
        best = min(one[0] for one in turns[contender.name])
        middle = median(one[1] for one in turns[contender.name])
        gbps = case.bytes(contender.kv_bytes, contender.q_bytes) / best * 1e-9
        gflops = case.flops / best * 1e-9
        results[contender.name] = {
            "is_peer": contender.is_peer, "best_s": best, "median_s": middle,
            "tokens_per_s": case.queries / best, "gbps": gbps, "gflops": gflops,
            "bandwidth_share": gbps / read,
            "peak_share": gflops / contender.peak(f32, bf16),
            "form": forms.get(contender.name, ""), "turns": turns[contender.name],
        }
    peers = [result for result in results.values() if result["is_peer"]]
    for result in results.values():
        if peers:
            result["ratio_best"] = min(p["best_s"] for p in peers) / result["best_s"]
            result["ratio_median"] = min(p["median_s"] for p in peers) / result["median_s"]
    return {"phase": case.phase, "length": case.kv_len, "sequences": case.n,
            "limits": {"read_gbps": read, "read_gbps_least": min(o["read_gbps"] for o in limits),
                       "read_gbps_most": max(o["read_gbps"] for o in limits),
                       "f32_gflops": f32, "bf16_gflops": bf16},
            "results": results}


def run(arguments: argparse.Namespace, field: list) -> list:
    lengths = QUICK_LENGTHS if arguments.quick else LENGTHS
    rows = []
    for phase, make in (("decode", decode), ("prefill", prefill)):
        too_slow = set()
        for length in lengths[phase] if arguments.phase in (phase, "both") else []:
            case = make(length)
            print(f"{phase} {length}", file=sys.stderr)
            sessions = open_sessions(case, field, too_slow)
            turns, limits = measure(case, sessions, arguments.rounds)
            if not limits:
                limits = [contenders.measure_limits(arguments.octavo)]
            forms = {name: session.form for name, session in sessions.items()}
            rows.append(summarise(case, field, turns, limits, forms))
            too_slow |= {name for name, some in turns.items()
                         if min(one[0] for one in some) > SLOWEST_CALL / 2}
            del sessions
            gc.collect()
    return rows


def write(about: dict, rows: list, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    document = json.dumps({"about": about, "cases": rows}, indent=1)
    (folder / "attention.json").write_text(document + "\n")
    (folder / "attention.md").write_text(report.tables(about, rows))
    print(report.tables(about, rows))
    try:
        report.plots(rows, folder)
    except ImportError as reason:
        print(f"attention.py: warning: no plots ({reason})", file=sys.stderr)


def fail(text: str) -> int:
    print(f"attention.py: error: {text}", file=sys.stderr)
    return 2


def main() -> int:
    arguments = parse_arguments()
    if not shutil.which(arguments.octavo):
        return fail(f"octavo ({arguments.octavo}): no such command; give --octavo PATH")
    threads = choose_cores(arguments.threads)
    field = contenders.find(arguments.octavo, threads)
    if arguments.only:
        words = arguments.only.split(",")
        field = [one for one in field if any(word in one.name for word in words)]
    if not field:
        return fail(f"contenders ({arguments.only}): nobody of that name; see --only in --help")
    print("measuring: " + ", ".join(one.name for one in field), file=sys.stderr)
    about = {"threads": threads, "rounds": arguments.rounds,
             "machine": contenders.describe_machine(),
             "versions": contenders.versions(arguments.octavo)}
    write(about, run(arguments, field), arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
