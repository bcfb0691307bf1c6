#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_pages.sh COMMAND
# Manual pages and --help agree: every command has a page, every option of its help is in the page (or,
# if it is common to commands that run a model, in octavo.1), and no page names an option that is not.
# Commands of two words share the page of their first.
. "$(dirname "$0")/lib.sh"
octavo=$1
man=$SOURCE/docs/man

# The options that a help text on standard input lists, and those that a page describes.
options_of_help() { sed -n 's/^  \(-[-A-Za-z0-9]*\).*/\1/p' | LC_ALL=C sort -u; }
options_of_page() {
    sed -n 's/^\.It \(Fl .*\)/\1/p' "$1" | tr ',' '\n' |
        sed -n -e 's/^ *Fl \(-[a-z][-a-z0-9]*\).*/-\1/p' -e 's/^ *Fl \([a-z]\)\( .*\)*$/-\1/p' | LC_ALL=C sort -u
}

"$octavo" --help | awk '/^[A-Za-z]/ { here = tolower($0) ~ /^commands/ } here && /^  [a-z]/ { print }' |
    sed 's/^  \([a-z]*\( [a-z]*\)*\)  .*/\1/' >"$scratch/names"
sed 's/ .*//' "$scratch/names" | LC_ALL=C sort -u >"$scratch/commands"
[ -s "$scratch/commands" ] || die "octavo --help lists no commands"

options_of_page "$man/octavo.1" | grep -v -x -e --help -e -h -e --version >"$scratch/common"
wrong=0
while read -r command; do
    page=$man/octavo-$command.1
    [ -f "$page" ] || {
        echo "no manual page for octavo $command"
        wrong=1
        continue
    }
    grep -e "^$command\$" -e "^$command " "$scratch/names" | while read -r name; do
        # shellcheck disable=SC2086 # a name of two words is two arguments
        "$octavo" $name --help
    done | options_of_help | grep -v -x -e --help -e -h >"$scratch/help" || :
    [ -s "$scratch/help" ] || die "octavo $command --help lists no options"
    options_of_page "$page" >"$scratch/page"
    LC_ALL=C sort -u "$scratch/page" "$scratch/common" >"$scratch/described"
    comm -23 "$scratch/help" "$scratch/described" | sed "s/^/octavo-$command.1 lacks /" >"$scratch/differ"
    comm -13 "$scratch/help" "$scratch/page" | sed "s/^/octavo-$command.1 invents /" >>"$scratch/differ"
    if [ "$command" = run ]; then
        comm -13 "$scratch/help" "$scratch/common" | sed "s/^/octavo.1 invents /" >>"$scratch/differ"
    fi
    if [ -s "$scratch/differ" ]; then
        cat "$scratch/differ"
        wrong=1
    fi
done <"$scratch/commands"

for page in "$man"/octavo-*.1; do
    command=$(basename "$page" .1)
    grep -q -x "${command#octavo-}" "$scratch/commands" || {
        echo "$command.1 describes no command"
        wrong=1
    }
done
[ "$wrong" = 0 ] || die "manual pages and --help differ"
echo "$(wc -l <"$scratch/commands") commands"
