#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Our own tree is clean; and the checker sees each kind of dirt.
. "$(dirname "$0")/lib.sh"
check=$SOURCE/tools/check_style

"$check" "$SOURCE"

good=$scratch/good
mkdir -p "$good/src/base" "$good/src/cli" "$good/src/text" "$good/docs"
spdx='/* SPDX-License-Identifier: Apache-2.0 */'
printf '%s\nint a; /* free(x) and\n * malloc(1), printf( */ const char *s = "getenv(1)"; // exit(0)\n' \
    "$spdx" >"$good/src/text/a.c"
printf '%s\nvoid *p = malloc(1);\n' "$spdx" >"$good/src/base/memory.c"
printf '%s\nchar *p = getenv("OCTAVO_CPU");\n' "$spdx" >"$good/src/base/cpu.c"
printf '%s\nvoid f(void) { puts(getenv("HOME")); octavo_free(x); y->free(x); y.free(x); exit(1); }\n' \
    "$spdx" >"$good/src/cli/main.c"
printf 'A page. It may speak of malloc(1).\n' >"$good/docs/page.md"
"$check" "$good" >/dev/null || die "a clean tree is refused"

# refuse FILE TEXT REASON: the clean tree with TEXT (a printf format) at the end of a file.
refuse() {
    bad=$scratch/bad
    rm -rf "$bad"
    cp -R "$good" "$bad"
    # shellcheck disable=SC2059
    printf "$2" >>"$bad/$1"
    rejects "$check" "$bad" "$3"
}

refuse docs/page.md 'a\tb\n' 'a tab'
refuse docs/page.md 'end \n' 'blanks at the end'
refuse docs/page.md 'no end' 'no newline at the end'
refuse docs/page.md 'line\r\n' 'a carriage return'
refuse docs/page.md 'a\342\200\256b\n' 'hidden Unicode'
refuse docs/page.md 'a\342\201\246b\n' 'hidden Unicode'
refuse docs/page.md '\357\273\277\n' 'hidden Unicode'
refuse src/text/b.c 'int b;\n' 'no SPDX'
refuse src/text/a.c '#include "text/b.c"\n' 'includes a .c file'
refuse src/text/a.c '#ifdef __AVX2__\n#endif\n' 'instruction set'
refuse src/text/a.c '#if defined(__ARM_NEON)\n#endif\n' 'instruction set'
refuse src/text/a.c '#if 0\n#endif\n' 'dead code'
refuse src/text/a.c 'void *p = malloc(1);\n' 'src/text/a.c:4: heap calls'
refuse src/text/a.c 'void f(void) { free (p); }\n' 'heap calls'
refuse src/cli/main.c 'char *p = strdup(q);\n' 'heap calls'
refuse src/text/a.c 'char *p = getenv("HOME");\n' 'environment'
refuse src/text/a.c 'void f(void) { printf("x"); }\n' 'neither prints nor exits'
refuse src/text/a.c 'void f(void) { fprintf(stderr, "x"); }\n' 'standard streams'
refuse src/text/a.c 'void f(void) { abort(); }\n' 'neither prints nor exits'
refuse src/base/memory.c 'void f(char *t) { strcpy(t, "x"); }\n' 'unbounded'
