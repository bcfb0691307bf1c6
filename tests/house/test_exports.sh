#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_exports.sh LIBRARY
# The shared library exports exactly the functions that the public headers declare.
. "$(dirname "$0")/lib.sh"
command -v nm >/dev/null || skip "no nm"

nm -D --defined-only "$1" | awk '$2 ~ /[A-Z]/ { print $3 }' |
    grep -v -e '^__sanitizer' -e '^__asan' -e '^__ubsan' -e '^__tsan' -e '^__odr_asan' -e '^__start_' \
        -e '^__stop_' -e '^_init$' -e '^_fini$' | LC_ALL=C sort >"$scratch/exported"

# A declaration starts at OCTAVO_API and its name is the last word before the first parenthesis.
cat "$SOURCE"/include/octavo/*.h | awk '
    /^[ ]*(#|\/?\*)/ { next }
    /OCTAVO_API/ { text = ""; open = 1 }
    open {
        text = text " " $0
        if (index(text, "(")) {
            sub(/\(.*/, "", text)
            n = split(text, word, /[^A-Za-z0-9_]+/)
            print word[n] != "" ? word[n] : word[n - 1]
            open = 0
        }
    }' | LC_ALL=C sort >"$scratch/declared"
[ -s "$scratch/declared" ] || die "no declarations found in include/octavo"

if ! diff "$scratch/declared" "$scratch/exported" >"$scratch/diff"; then
    sed -n -e 's/^</declared, not exported:/p' -e 's/^>/exported, not declared:/p' "$scratch/diff"
    die "the shared library and the public headers differ"
fi
echo "$(wc -l <"$scratch/exported") functions"
