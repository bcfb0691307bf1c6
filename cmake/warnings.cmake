# octavo_flags: what every target compiles with. No fast-math anywhere: masks are infinities and
# repeatability is a feature; FMA is written where it is wanted.
add_library(octavo_flags INTERFACE)
target_compile_options(octavo_flags INTERFACE
    -ffp-contract=off -fno-math-errno
    -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla -Wstrict-prototypes -Wmissing-prototypes
    -Wcast-qual -Wdouble-promotion -Wformat=2 -Wimplicit-fallthrough -Wwrite-strings
    $<$<C_COMPILER_ID:Clang>:-Wshorten-64-to-32>
    $<$<BOOL:${OCTAVO_WERROR}>:-Werror>)
