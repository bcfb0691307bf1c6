# SPDX-License-Identifier: Apache-2.0
"""python/src/xla_abi.h declares XLA's structures again: here they are compared with jaxlib's header."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import HERE, framework

OURS = Path(os.environ.get("SOURCE", HERE.parent.parent)) / "python" / "src" / "xla_abi.h"

# struct of ours, of theirs, {field of ours: of theirs}
STRUCTS = [
    ("xla_extension", "XLA_FFI_Extension_Base", {"size": "struct_size", "type": "type", "next": "next"}),
    (
        "xla_version",
        "XLA_FFI_Api_Version",
        {"extensions": "extension_start", "major": "major_version", "minor": "minor_version"},
    ),
    ("xla_error_args", "XLA_FFI_Error_Create_Args", {"message": "message", "code": "errc"}),
    ("xla_api", "XLA_FFI_Api", {"version": "api_version", "error_create": "XLA_FFI_Error_Create"}),
    (
        "xla_buffer",
        "XLA_FFI_Buffer",
        {"size": "struct_size", "dtype": "dtype", "data": "data", "n_axes": "rank", "extents": "dims"},
    ),
    ("xla_text", "XLA_FFI_ByteSpan", {"text": "ptr", "length": "len"}),
    ("xla_scalar", "XLA_FFI_Scalar", {"dtype": "dtype", "value": "value"}),
    ("xla_values", "XLA_FFI_Args", {"n": "size", "types": "types", "values": "args"}),
    ("xla_values", "XLA_FFI_Rets", {"n": "size", "types": "types", "values": "rets"}),
    (
        "xla_attributes",
        "XLA_FFI_Attrs",
        {"n": "size", "types": "types", "names": "names", "values": "attrs"},
    ),
    (
        "xla_call_frame",
        "XLA_FFI_CallFrame",
        {
            "extensions": "extension_start",
            "api": "api",
            "context": "ctx",
            "stage": "stage",
            "operands": "args",
            "results": "rets",
            "attributes": "attrs",
        },
    ),
    ("xla_metadata", "XLA_FFI_Metadata", {"version": "api_version", "traits": "traits"}),
    (
        "xla_metadata_extension",
        "XLA_FFI_Metadata_Extension",
        {"base": "extension_base", "metadata": "metadata"},
    ),
]
# Structures that have grown behind what we know of them.
OPEN = {"xla_api", "xla_call_frame", "xla_metadata"}
NAMES = {
    "XLA_MAJOR": "XLA_FFI_API_MAJOR",
    "XLA_EXTENSION_METADATA": "XLA_FFI_Extension_Metadata",
    "XLA_STAGE_EXECUTE": "XLA_FFI_ExecutionStage_EXECUTE",
    "XLA_ATTRIBUTE_SCALAR": "XLA_FFI_AttrType_SCALAR",
    "XLA_ATTRIBUTE_STRING": "XLA_FFI_AttrType_STRING",
    "XLA_INVALID_ARGUMENT": "XLA_FFI_Error_Code_INVALID_ARGUMENT",
    "XLA_RESOURCE_EXHAUSTED": "XLA_FFI_Error_Code_RESOURCE_EXHAUSTED",
}


def program(change=None):
    """A C program that compiles if both declarations say the same; change: (pattern, text) breaks ours."""
    ours = OURS.read_text()
    if change:
        ours, changes = re.subn(*change, ours, count=1)
        assert changes
    dtypes = re.findall(r"\bXLA_([SFB]\w*\d\w*) = \d+", ours)
    assert len(dtypes) == 9
    values = {**NAMES, **{f"XLA_{name}": f"XLA_FFI_DataType_{name}" for name in dtypes}}
    values["XLA_BUFFER"] = "XLA_FFI_ArgType_BUFFER"
    lines = ["#include <xla/ffi/api/c_api.h>", ours]
    lines.append('_Static_assert(XLA_BUFFER == (int)XLA_FFI_RetType_BUFFER, "a result");')
    lines += [f'_Static_assert((int){a} == (int){b}, "{a}");' for a, b in values.items()]
    for a, b, fields in STRUCTS:
        if a not in OPEN:
            lines.append(f'_Static_assert(sizeof({a}) == sizeof({b}), "{a}");')
        for x, y in fields.items():
            lines.append(f'_Static_assert(offsetof({a}, {x}) == offsetof({b}, {y}), "{a}.{x}");')
            if a not in OPEN:
                size = f"sizeof((({a} *)0)->{x}) == sizeof((({b} *)0)->{y})"
                lines.append(f'_Static_assert({size}, "{a}.{x}");')
    return "\n".join((*lines, "int main(void) { return 0; }"))


def compiles(text):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    include = framework("jax").ffi.include_dir()
    command = [compiler, "-std=c17", "-fsyntax-only", "-isystem", include, "-x", "c", "-"]
    return subprocess.run(command, input=text, text=True, capture_output=True)


def test_declarations_agree():
    done = compiles(program())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "change",
    [
        (r"XLA_BF16 = 16", "XLA_BF16 = 15"),
        (r"    int stage;\n", ""),
        (r"    int64_t n_axes;", "    int n_axes, more;"),
    ],
)
def test_the_comparison_sees(change):
    done = compiles(program(change))
    assert done.returncode != 0 and "static assertion failed" in done.stderr
