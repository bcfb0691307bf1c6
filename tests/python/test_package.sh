#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_package.sh PYTHON
#
# A source distribution holds all it needs: the wheel built from it works, elsewhere and alone.
# Environment: SOURCE, the source tree. Needs scikit-build-core; nothing is downloaded.
set -eu
: "${SOURCE:?run by ctest}"
python=${1:?the interpreter}
unset PYTHONPATH
export PYTHONDONTWRITEBYTECODE=1
"$python" -c 'import pip, scikit_build_core' 2>/dev/null || {
    echo "skipped: no pip or no scikit-build-core"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

die() {
    echo "FAILED: $*" >&2
    exit 1
}

git -C "$SOURCE" status --porcelain -- python >"$scratch/before" 2>/dev/null || :
(cd "$SOURCE/python" && PYTHONPATH=backend "$python" -c \
    'import octavo_build, sys; octavo_build.build_sdist(sys.argv[1])' "$scratch" >/dev/null)
sdist=$(echo "$scratch"/octavo-*.tar.gz)
[ -f "$sdist" ] || die "no source distribution"
tar -tzf "$sdist" | sed 's|^[^/]*/||' >"$scratch/files"
for file in pyproject.toml CMakeLists.txt backend/octavo_build.py octavo/py.typed octavo/_octavo.pyi \
    src/module.c src/plan/module.c octavo/_plan.pyi library/LICENSE library/include/octavo/attention.h library/src/attention/attend.c \
    library/src/engine/model.c; do
    grep -qx "$file" "$scratch/files" || die "the source distribution lacks $file"
done
if grep -E '(^|/)(build|__pycache__|tests)/|\.(so|o|pyc)$' "$scratch/files"; then
    die "the source distribution holds what it should not"
fi

# Debug without symbols: the quickest to compile.
"$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --no-index \
    --config-settings=cmake.build-type=Debug \
    --config-settings=cmake.define.CMAKE_C_FLAGS_DEBUG=-O0 --wheel-dir "$scratch" "$sdist"
wheel=$(echo "$scratch"/octavo-*.whl)
case $wheel in
*-cp310-abi3-*.whl) ;;
*) die "the wheel is not of the stable ABI: $wheel" ;;
esac
mkdir "$scratch/site"
"$python" -m zipfile -e "$wheel" "$scratch/site"
# check_module NAME LIBRARIES: what a module needs of the system, and that it exports nothing else.
check_module() {
    module=$scratch/site/octavo/$1.abi3.so
    [ -f "$module" ] || die "no $1 in the wheel"
    command -v readelf >/dev/null || return 0
    if readelf -d "$module" | grep NEEDED |
        grep -Ev "lib($2|c|m|dl|pthread|asan|ubsan|gcc_s)\\.so|ld-linux"; then
        die "$1 needs more than the system's libraries"
    fi
    exported=$(readelf -W --dyn-syms "$module" |
        awk '$5 == "GLOBAL" && $7 != "UND" && $6 == "DEFAULT" { print $8 }')
    [ "$exported" = "PyInit_$1" ] || die "$1 exports: $exported"
}
check_module _octavo hwloc
if pkg-config --exists jansson libpcre2-8 libutf8proc; then
    check_module _plan 'hwloc|jansson|pcre2-8|utf8proc'
fi
cd "$scratch"
PYTHONPATH=$scratch/site "$python" - <<'PYTHON'
import importlib.metadata

import numpy as np
import octavo

i32 = lambda *numbers: np.array(numbers, np.int32)
q = np.ones((1, 2, 8), np.float32)
v = np.full((1, 1, 8), 3, np.float32)
cache = np.zeros((1, 4, 2, 1, 128), np.float32)
output, cache = octavo.ragged_page_attention_v3(q, v, v, cache, i32(1), i32(0), i32(0, 1), i32(0, 0, 1))
assert (output == 3).all() and (cache[0, 0, :, 0, :8] == 3).all()
assert importlib.metadata.version("octavo") == octavo.__version__
PYTHON
git -C "$SOURCE" status --porcelain -- python >"$scratch/after" 2>/dev/null || :
cmp -s "$scratch/before" "$scratch/after" || die "building has changed the source tree"
