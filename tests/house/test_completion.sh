#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_completion.sh COMMAND
# The completion offers what --help lists: in bash, and in zsh where it is installed.
. "$(dirname "$0")/lib.sh"
octavo=$1
command -v bash >/dev/null || skip "no bash"

# offers WORD... : what bash would offer for the last word.
offers() {
    # shellcheck disable=SC2016
    bash -c '
        . "$1/completions/octavo.bash"
        shift
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _octavo "$1"
        printf "%s\n" "${COMPREPLY[@]}"' bash "$SOURCE" "$octavo" "$@"
}

# expect WHAT WORD... : the offer holds WHAT as a line.
expect() {
    what=$1
    shift
    offers "$@" >"$scratch/offer"
    grep -q -x -e "$what" "$scratch/offer" || {
        cat "$scratch/offer"
        die "no offer of '$what' after: octavo $*"
    }
}

expect run ''
expect inspect i
expect --version --v
expect --temperature run --te
expect -p run -
expect --help run --he
expect exact run --precision ''
expect exact run --precision = e
expect bf16 run m.gguf --kv-dtype b
expect --kv-scales perplexity m.gguf --kv-s
expect avx2 run --isa a
expect scalar bench machine --isa ''
expect machine bench m
expect attention bench ''
expect --batch bench attention --b
expect columns bench attention --layout ''
expect q4_0 quantize in.gguf out.gguf --type q4
expect --depth bench m.gguf --d
expect --mesh logits m.gguf --me
expect mpi run m.gguf --ranks ''
expect svg plan config.json --format ''
cd "$SOURCE"
expect README.md run READ
expect README.md run -f READ
expect README.md run m.gguf --rules READ
expect README.md plan config.json --compare READ
expect README.md plan config.json --compare a.json READ
[ -z "$(offers run m.gguf --threads '')" ] || die "a number is completed with something"
[ -z "$(offers run --no-such-option)" ] || die "an option that does not exist is offered"

command -v zsh >/dev/null || skip "no zsh; bash is right"
zsh -n "$SOURCE/completions/_octavo"
# The describing part, without a terminal: names and what help says of them.
# shellcheck disable=SC2016
zsh -f -c '
    _describe() { print -rl -- "${(P@)@[-1]}" }
    compset() { }; _files() { print files }; _message() { print -r -- "$@" }; compadd() { print -rl -- "$@[2,-1]" }
    source_it() { words=("$@"); CURRENT=$#; PREFIX=$words[-1]; source "$zfile" }
    zfile=$1; shift; source_it "$@"' zsh "$SOURCE/completions/_octavo" "$octavo" run --temp >"$scratch/offer"
grep -q -e '^--temperature:.' "$scratch/offer" || {
    cat "$scratch/offer"
    die "zsh: no description of --temperature"
}
if grep -q -v -e '^-[-a-zA-Z0-9]*:..*' "$scratch/offer"; then
    cat "$scratch/offer"
    die "zsh: an option without a description"
fi
