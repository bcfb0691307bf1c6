# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# bash completion for octavo. It asks the command itself: what `octavo COMMAND --help` lists is what is
# offered, values included where help names them all.

# Prints the names in the help text on standard input: of commands, or of options.
_octavo_names() {
    awk -v what="$1" '
        what == "options" && /^  -/ { print $1 }
        /^[A-Za-z]/ { in_commands = tolower($0) ~ /^commands/ }
        what == "commands" && in_commands && /^  [a-z]+(  |$)/ { print $1 }'
}

# Prints what an option takes, as help calls it: "N", "fast|exact"; nothing for a flag.
_octavo_value() {
    awk -v option="$1" 'index($0, "  " option " ") == 1 {
        rest = substr($0, length(option) + 4)
        if (rest !~ /^ /) { sub(/ .*/, "", rest); print rest }
        exit
    }'
}

_octavo() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} help value
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$("$1" --help 2>/dev/null | _octavo_names commands)
            --help --version" -- "$word")
        return
    fi
    # --name=value reaches us as three words
    if [[ $word == "=" ]]; then
        word=
    elif [[ $previous == "=" ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi

    # a command of two words
    if [[ $command == bench && $COMP_CWORD -gt 2 && ${COMP_WORDS[2]} =~ ^(attention|machine)$ ]]; then
        help=$("$1" bench "${COMP_WORDS[2]}" --help 2>/dev/null) || return
    else
        help=$("$1" "$command" --help 2>/dev/null) || return
    fi
    value=
    [[ $previous == -* ]] && value=$(_octavo_value "$previous" <<<"$help")
    case $value in
    *FILE* | *DIR* | *MODEL* | *.npy)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        ;;
    *\|*) mapfile -t COMPREPLY < <(compgen -W "${value//|/ }" -- "$word") ;;
    ?*) ;;
    *)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_octavo_names options <<<"$help") --help" -- "$word")
            return
        fi
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        if [[ $command == bench && $COMP_CWORD == 2 ]]; then
            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "attention machine" -- "$word")
        fi
        ;;
    esac
}

complete -F _octavo octavo
