"""The completion scripts for shells: one for each, for `igniter` and `igniter-opt`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from igniter.tools.completion import REQUEST

if TYPE_CHECKING:
    from igniter.tools.completion.request import CompletionRequest

BASH = r"""
_igniter() {
    local -a words=("") lines
    local i word glued="" line kept value
    # Bash breaks words at '=' and ':' too; here are the words as the program gets them.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word =~ ^[=:]+$ && ${words[-1]} == *[!=:] || -n $glued ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        [[ $word =~ ^[=:]+$ ]] && glued=yes || glued=""
    done
    local last=${words[-1]} quote=""
    [[ $last == [\"\']* ]] && quote=${last:0:1} last=${last:1}
    words[-1]=$last
    COMPREPLY=()
    local program=$1
    [[ $program == \~/* ]] && program=$HOME/${program:2}
    mapfile -t lines < <(@REQUEST@=1 "$program" "${words[@]:1}" 2>/dev/null)
    case ${lines[0]:-files} in
        files) return ;;
        nothing) compopt +o default 2>/dev/null; return ;;
        open) compopt -o nospace 2>/dev/null ;;
    esac
    # What is in front of the last break stays as it is, unless a quote holds the word together.
    kept=""
    [[ -z $quote && $last == *[=:]* ]] && kept=${last%"${last##*[=:]}"}
    for line in "${lines[@]:1}"; do
        value=${line%%$'\t'*}
        COMPREPLY+=("${value#"$kept"}")
    done
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}
complete -o default -F _igniter igniter igniter-opt
"""

ZSH = r"""
#compdef igniter igniter-opt
_igniter() {
    local -a lines shown
    local line value text
    lines=("${(@f)$(@REQUEST@=1 ${~words[1]} "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    case ${lines[1]:-files} in
        files) compset -P '*='; _files; return ;;
        nothing) return 1 ;;
    esac
    for line in "${(@)lines[2,-1]}"; do
        value=${line%%$'\t'*}
        text=${line#*$'\t'}
        [[ $line == *$'\t'* ]] && shown+=("${value//:/\\:}:$text") || shown+=("${value//:/\\:}")
    done
    if [[ $lines[1] == open || ( ${#shown} -eq 1 && $value == *= ) ]]; then
        _describe -V igniter shown -S ''
    else
        _describe -V igniter shown
    fi
}
if [[ $funcstack[1] == _igniter ]]; then
    _igniter "$@"
else
    compdef _igniter igniter igniter-opt
fi
"""

FISH = r"""
function __igniter_words
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l quoted (string match -r '^["\'](.*)' -- $last)
    set -q quoted[2]; and set last $quoted[2]
    set -l lines (env @REQUEST@=1 $words[1] $words[2..-1] "$last" 2>/dev/null)
    set -l kind $lines[1]
    test -n "$kind"; or set kind files
    switch $kind
        case files
            set -l option (string match -r '^--[^=]+=' -- $last)
            __fish_complete_path (string replace -- "$option" '' $last) | string replace -r '^' -- "$option"
        case words open
            printf '%s\n' $lines[2..-1]
    end
end
complete -c igniter -f -a '(__igniter_words)'
complete -c igniter-opt -f -a '(__igniter_words)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def script(shell: str) -> str:
    """Returns the script of a shell."""
    return SCRIPTS[shell].strip().replace("@REQUEST@", REQUEST)


def show(asked: CompletionRequest) -> None:
    """Prints the script of a shell."""
    print(script(asked.shell))
