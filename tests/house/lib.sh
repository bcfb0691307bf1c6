# SPDX-License-Identifier: Apache-2.0
#
# What the house's test scripts share. Given by CMake: SOURCE, BUILD, CC, CXX, CFLAGS, CMAKE.
set -eu
: "${SOURCE:?run by ctest}" "${BUILD:?run by ctest}"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

skip() {
    echo "skipped: $*"
    exit 77
}

die() {
    echo "FAILED: $*" >&2
    exit 1
}

# rejects CHECKER TREE PATTERN: the checker must fail on the tree and say why.
rejects() {
    if "$1" "$2" >"$scratch/said" 2>&1; then
        die "$1 accepts $2, which it should refuse for: $3"
    fi
    grep -q -- "$3" "$scratch/said" || {
        cat "$scratch/said"
        die "$1 refuses $2 without saying: $3"
    }
}
