#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_headers.sh c|cxx
# Every public header compiles alone, twice in one file, in C17 or C++11, without a warning.
. "$(dirname "$0")/lib.sh"
strict='-Wall -Wextra -Wpedantic -Wundef -Werror -fsyntax-only'
if [ "$1" = c ]; then
    compile="$CC -x c -std=c17 -Wstrict-prototypes $strict"
else
    [ "$CXX" != none ] || skip "no C++ compiler"
    compile="$CXX -x c++ -std=c++11 -Wold-style-cast $strict"
fi
case $($CC --version) in
*clang*) compile="$compile -Wc11-extensions -Wc99-extensions" ;;
esac

count=0
for header in "$SOURCE"/include/octavo/*.h; do
    name=octavo/$(basename "$header")
    printf '#include "%s"\n#include "%s"\nint octavo_unit;\n' "$name" "$name" >"$scratch/alone"
    # shellcheck disable=SC2086
    $compile -I "$SOURCE/include" "$scratch/alone" || die "$name does not compile alone: $compile"
    count=$((count + 1))
done
[ "$count" -gt 0 ] || die "no public headers found"

# The check itself: a header that leans on its neighbour must not pass.
printf 'size_t leaning;\n' >"$scratch/alone"
# shellcheck disable=SC2086
if $compile "$scratch/alone" 2>/dev/null; then die "a header without its includes passes"; fi
echo "$count headers"
