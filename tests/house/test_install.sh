#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install` into an empty folder, which is then moved; a small program in C and in C++ compiles,
# links and runs against it by pkg-config and by find_package, with the shared and the static library.
. "$(dirname "$0")/lib.sh"
consumer=$SOURCE/tests/house/consumer

"$CMAKE" --install "$BUILD" --prefix "$scratch/first" >"$scratch/log" || {
    cat "$scratch/log"
    die "cmake --install (build everything first)"
}
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix
library=$(dirname "$(find "$prefix" -name liboctavo.a)")
version=$(sed -n 's/^#define OCTAVO_VERSION_[A-Z]* \([0-9]*\)$/\1/p' "$prefix/include/octavo/status.h" |
    paste -sd .)

[ -f "$library/liboctavo.so.$version" ] || die "no liboctavo.so.$version in $library"
cmp -s "$SOURCE/include/octavo/status.h" "$prefix/include/octavo/status.h" || die "headers differ"
if [ -x "$BUILD/octavo" ]; then
    [ "$("$prefix/bin/octavo" --version | grep -c "$version")" -ge 1 ] ||
        die "the installed command does not say its version, $version"
    for page in "$SOURCE"/docs/man/*.1; do
        [ -f "$prefix/share/man/man1/$(basename "$page")" ] || die "$(basename "$page") is not installed"
    done
    [ -f "$prefix/share/man/man5/octavo-rules.5" ] || die "octavo-rules.5 is not installed"
    [ -f "$prefix/share/bash-completion/completions/octavo" ] || die "no bash completion"
    [ -f "$prefix/share/zsh/site-functions/_octavo" ] || die "no zsh completion"
fi

for module in "$BUILD"/octavo_openmpi.so "$BUILD"/octavo_mpich.so; do
    [ ! -f "$module" ] || [ -f "$library/octavo/$(basename "$module")" ] ||
        die "$(basename "$module") is not installed"
done

export PKG_CONFIG_PATH="$library/pkgconfig" LD_LIBRARY_PATH="$library"
[ "$(pkg-config --modversion octavo)" = "$version" ] || die "octavo.pc has another version"

# try COMPILER... : compiles the consumer and runs it; it prints the version.
try() {
    "$@" -o "$scratch/program" || die "does not build: $*"
    [ "$("$scratch/program")" = "$version" ] || die "says another version than $version: $*"
}

# shellcheck disable=SC2046,SC2086
{
    try $CC $CFLAGS -std=c17 -Werror "$consumer/consumer.c" $(pkg-config --cflags --libs octavo)
    ldd "$scratch/program" | grep -q "$library/liboctavo.so" || die "does not use the shared library"
    all=$(pkg-config --static --cflags --libs octavo | sed "s|-loctavo|$library/liboctavo.a|")
    try $CC $CFLAGS -std=c17 "$consumer/consumer.c" $all
    if ldd "$scratch/program" | grep -q liboctavo; then die "does not use the static library"; fi
    if [ "$CXX" != none ]; then
        cp "$consumer/consumer.c" "$scratch/consumer.cpp"
        try $CXX $CFLAGS -std=c++17 -Werror "$scratch/consumer.cpp" $(pkg-config --cflags --libs octavo)
    fi
}

cxx=OFF
[ "$CXX" = none ] || cxx=ON
find_package() {
    "$CMAKE" -S "$consumer" -B "$scratch/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS="$CFLAGS" -DWITH_CXX=$cxx \
        -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_CXX_FLAGS="$CFLAGS" -DVERSION="$version" || return 1
    "$CMAKE" --build "$scratch/build"
}
if ! find_package >"$scratch/log" 2>&1; then
    cat "$scratch/log"
    die "find_package(octavo)"
fi
for program in "$scratch"/build/use_*; do
    [ "$("$program")" = "$version" ] || die "$(basename "$program") says another version"
done
