# SPDX-License-Identifier: Apache-2.0
"""What the tests share. OCTAVO_NO_FRAMEWORKS leaves PyTorch and JAX out."""

import importlib
import os
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
DATA = Path(os.environ.get("TEST_DATA", HERE.parent / "data"))

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# hypothesis keeps its notes out of the source tree
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(tempfile.gettempdir()) / "octavo-hypothesis"))


def framework(name):
    """A module that a test needs, or the test is skipped."""
    if "OCTAVO_NO_FRAMEWORKS" in os.environ:
        pytest.skip("without frameworks")
    try:
        return importlib.import_module(name)
    except ImportError as reason:
        pytest.skip(f"{name} is not installed: {reason}")


@pytest.fixture(scope="session")
def torch():
    return framework("torch")


@pytest.fixture(scope="session")
def jax():
    return framework("jax")
