# SPDX-License-Identifier: Apache-2.0
"""The shapes that are measured, and what attention over them must read and compute at least.

The counts are those of `octavo bench attention`: every key and value that some query sees once, the
queries and the output; four operations for each query head, lane and visible pair.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    phase: str  # "decode" or "prefill"
    n: int  # sequences
    q_len: int  # new tokens of each: 1, or all of its context
    kv_len: int
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    page_size: int = 16

    @property
    def queries(self) -> int:
        return self.n * self.q_len

    @property
    def pages_per_sequence(self) -> int:
        return -(-self.kv_len // self.page_size)

    @property
    def flops(self) -> int:
        pairs = self.q_len * (2 * self.kv_len - self.q_len + 1) // 2
        return 4 * self.heads * self.head_dim * self.n * pairs

    def bytes(self, kv_bytes: int, q_bytes: int) -> int:
        """With elements of so many bytes in the cache, and in the queries and the output."""
        cache = 2 * self.kv_heads * self.head_dim * self.n * self.kv_len * kv_bytes
        return cache + 2 * self.heads * self.head_dim * self.queries * q_bytes

    @property
    def batch(self) -> str:
        """As --batch takes it."""
        return f"{self.n}x{self.q_len}:{self.kv_len}"


def decode(length: int) -> Case:
    return Case("decode", n=16, q_len=1, kv_len=length)


def prefill(length: int) -> Case:
    return Case("prefill", n=1, q_len=length, kv_len=length)
