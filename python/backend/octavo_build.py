# SPDX-License-Identifier: Apache-2.0
"""scikit-build-core, and how the library's sources get into a source distribution.

A wheel is built from the sources of the repository around this folder. A source distribution has no
such thing around it: they are copied into its folder ``library``, where CMakeLists.txt looks first.
"""

import os
import shutil
import tempfile
from pathlib import Path

from scikit_build_core.build import *  # noqa: F403  every hook of the backend
from scikit_build_core.build import build_sdist as _build_sdist

_PYTHON = Path(__file__).resolve().parent.parent
_LIBRARY = (
    "LICENSE",
    "cmake/isa.cmake",
    "cmake/warnings.cmake",
    "include/octavo",
    "src/attention",
    "src/base",
    "src/cache",
    "src/engine",
    "src/formats",
    "src/kernels",
    "src/model",
    "src/program",
    "src/sharding",
    "src/text",
)


def build_sdist(sdist_directory, config_settings=None):
    """The hook of PEP 517, from a copy of the folder that has the library in it."""
    if (_PYTHON / "library").is_dir():
        return _build_sdist(sdist_directory, config_settings)
    target = os.path.abspath(sdist_directory)
    previous = os.getcwd()
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "octavo"
        shutil.copytree(
            _PYTHON, copy, ignore=shutil.ignore_patterns("build", "dist", "__pycache__")
        )
        for name in _LIBRARY:
            source, place = _PYTHON.parent / name, copy / "library" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, place)
        os.chdir(copy)
        try:
            return _build_sdist(target, config_settings)
        finally:
            os.chdir(previous)
