#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_docs_plans.sh [write]
# The plans in docs/*.md are those that the command prints now: of each indented block that begins with
# "$ octavo plan" every line is looked for in the output, in order. Words must be the same, numbers may be
# off by a fifth; lines of dots are left out. With "write" lines whose words are the same get the numbers of today:
#     OCTAVO=build/release/octavo TEST_DATA=tests/data sh tests/cli/test_docs_plans.sh write
set -eu
mode=${1:-check}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$scratch/bin"
ln -s "$(realpath "$OCTAVO")" "$scratch/bin/octavo"
PATH=$scratch/bin:$PATH
cd "$TEST_DATA/../../docs/examples"

cat >"$scratch/plans.awk" <<'END'
# The words of a line, a # for each number, which get[1..] has: bytes, seconds or as it stands.
function words_of(line, get, field, n, i, words, count, size) {
    n = split(line, field, " ")
    words = ""
    count = 0
    for (i = 1; i <= n; i++) {
        if (field[i] !~ /^[-+]?[0-9][0-9,]*(\.[0-9]+)?$/) {
            words = words " " field[i]
            continue
        }
        gsub(",", "", field[i])
        size = i < n && field[i + 1] in unit ? unit[field[++i]] : 1
        get[++count] = field[size == 1 && !(field[i] in unit) ? i : i - 1] * size
        words = words " #"
    }
    return words
}

function is_near(a, b) { return a - b <= (a > b ? a : b) / 5 && b - a <= (a > b ? a : b) / 5 }

# Writes the block's lines, and looks for each in what the command prints.
function end_block(n_out, out, i, at, j, k, want, is, n, words, ok, found) {
    n_out = 0
    if (n_lines > 0) {
        while ((command | getline found) > 0) out[++n_out] = found
        close(command)
    }
    at = 1
    for (i = 1; i <= n_lines; i++) {
        found = 0
        words = words_of(lines[i], want)
        for (j = at; j <= n_out && !found && words != "" && words !~ /^ \.+$/; j++) {
            if (words_of(out[j], is) != words) continue
            ok = 1
            n = gsub("#", "#", words)
            for (k = 1; k <= n; k++) ok = ok && is_near(want[k], is[k])
            if (ok || mode == "write") found = j
        }
        if (found) {
            at = found + 1
            sub(/[ \t]+$/, "", out[found])
            lines[i] = "    " out[found]
        } else if (words != "" && words !~ /^ \.+$/) {
            print path ": of `" command "` this is not printed now:\n" lines[i] >"/dev/stderr"
            failed = 1
        }
        checked += found > 0
    }
    for (i = 1; i <= n_lines && mode == "write"; i++) print lines[i]
    for (i = 1; i <= n_blank && mode == "write"; i++) print ""
    is_block = n_lines = n_blank = 0
}

BEGIN {
    unit["B"] = unit["s"] = unit["%"] = 1
    unit["kB"] = 1e3; unit["MB"] = 1e6; unit["GB"] = 1e9; unit["TB"] = 1e12
    unit["us"] = 1e-6; unit["ms"] = 1e-3
}
/^    \$ / || (is_block && !/^    / && !/^$/) { if (is_block) end_block() }
/^    \$ octavo plan .*[^|>]$/ && !/[|>]/ {
    is_block = 1
    command = substr($0, 7)
    if (mode == "write") print
    is_open = command ~ /\\$/
    next
}
is_block && is_open {
    sub(/\\$/, "", command)
    command = command $0
    is_open = command ~ /\\$/
    if (mode == "write") print
    next
}
is_block && /^$/ { n_blank++; next }
is_block {
    for (; n_blank > 0; n_blank--) lines[++n_lines] = ""
    lines[++n_lines] = $0
    next
}
mode == "write" { print }
END {
    if (is_block) end_block()
    print path ": " checked + 0 " lines" >"/dev/stderr"
    exit failed
}
END

wrong=0
for page in ../sharding.md ../plan.md; do
    awk -v mode="$mode" -v path="$page" -f "$scratch/plans.awk" "$page" >"$scratch/page" || wrong=1
    if [ "$mode" = write ]; then cat "$scratch/page" >"$page"; fi
done
exit $wrong
