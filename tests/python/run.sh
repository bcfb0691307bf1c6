#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: run.sh PYTHON [ARGUMENT...]
#
# Runs the tests of the Python module that $PYTHONPATH leads to. Writes nothing into the source tree.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${1:?the interpreter}
shift
export PYTHONDONTWRITEBYTECODE=1
if [ -n "${PRELOAD:-}" ]; then
    # The interpreter itself leaks by design, and large frameworks are not built to run under a sanitizer.
    export LD_PRELOAD="$PRELOAD" ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}" OCTAVO_NO_FRAMEWORKS=1
fi
exec "$python" -m pytest -q -p no:cacheprovider "$here" "$@"
