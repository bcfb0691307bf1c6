# SPDX-License-Identifier: Apache-2.0
"""Reads the golden cases of tests/data/rpa; its README says what they are."""

import numpy as np
import rpa_oracle as oracle
from conftest import DATA

PARAMS = {
    "softmax_scale": ("softmax_scale", float),
    "sliding_window": ("sliding_window", int),
    "soft_cap": ("logits_soft_cap", float),
    "logits_soft_cap": ("logits_soft_cap", float),
    "q_scale": ("q_scale", float),
    "k_scale": ("k_scale", float),
    "v_scale": ("v_scale", float),
    "update_kv_cache": ("update_kv_cache", lambda text: text != "0"),
}
EXPECTED = ("expect_out", "expect_slots", "expect_rows")


class Case:
    """A case: arrays and params of the call, and what it must give."""

    def __init__(self, folder):
        self.arrays, self.params, self.expected = {"attention_sink": None}, {}, {}
        self.rtol = self.atol = None
        for line in (folder / "case.txt").read_text().splitlines():
            name, *words = line.split()
            if name == "array":
                array = np.load(folder / words[1]).view(oracle.dtype_of(words[3]))
                (self.expected if words[0] in EXPECTED else self.arrays)[words[0]] = array
            elif name == "tolerance":
                self.rtol, self.atol = float(words[0]), float(words[1])
            elif name in PARAMS:
                key, convert = PARAMS[name]
                self.params[key] = None if words[0] == "none" else convert(words[0])

    def want(self):
        """(output, cache, atol, rtol), as the oracle gives them."""
        cache = self.arrays["kv_cache"].copy()
        flat = cache.reshape(-1, *cache.shape[2:])
        flat[self.expected["expect_slots"]] = self.expected["expect_rows"]
        return self.expected["expect_out"], cache, self.atol, self.rtol


def folders(of=""):
    """The folders of the cases in tests/data/rpa, or in a folder of it."""
    return sorted(path.parent for path in (DATA / "rpa" / of).glob("*/case.txt"))
