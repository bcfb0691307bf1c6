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
# two devices of the one CPU, so that something can be sharded
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
# hypothesis keeps its notes out of the source tree
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(tempfile.gettempdir()) / "octavo-hypothesis"))


def framework(name, *, allow_module_level=False):
    """A module that a test needs, or the test (or its whole file) is skipped."""
    if "OCTAVO_NO_FRAMEWORKS" in os.environ:
        pytest.skip("without frameworks", allow_module_level=allow_module_level)
    try:
        return importlib.import_module(name)
    except ImportError as reason:
        pytest.skip(f"{name} is not installed: {reason}", allow_module_level=allow_module_level)
