# SPDX-License-Identifier: Apache-2.0
"""The Python in the documents runs as it stands there: the blocks of a file one after the other."""

import os
import re
from pathlib import Path

import pytest
from conftest import framework

SOURCE = Path(os.environ.get("SOURCE", Path(__file__).resolve().parents[2]))


@pytest.mark.parametrize("name", ["README.md", "python/README.md", "docs/python.md"])
def test_examples(name):
    text = (SOURCE / name).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    names = {"__name__": "example"}
    for block in blocks:
        for needed in ("torch", "jax"):
            if re.search(rf"^(from|import) (octavo\.)?{needed}\b", block, re.MULTILINE):
                framework(needed)
        exec(compile(block, name, "exec"), names)
