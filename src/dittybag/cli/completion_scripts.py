"""The completion scripts of the shells. Each calls `dittybag` with what was typed before the cursor."""

from __future__ import annotations

from typing import Final

_BASH: Final = r"""
_dittybag_completion() {
    local kind reply
    COMPREPLY=()
    {
        IFS= read -r kind || return 0
        if [[ $kind != names ]]; then
            compopt -o default 2>/dev/null
            return 0
        fi
        while IFS= read -r reply; do
            COMPREPLY+=("$reply")
        done
    } < <(_DITTYBAG_COMPLETE=bash dittybag -- "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" "$COMP_TYPE" \
        2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}

# The bash of macOS, 3.2, has neither `nosort` nor `compopt`.
complete -o nosort -F _dittybag_completion dittybag 2>/dev/null ||
    complete -o default -F _dittybag_completion dittybag
"""

_ZSH: Final = r"""
#compdef dittybag

_dittybag() {
    local kind value about text
    local -a before names texts open_names open_texts
    local -i width=0
    (( CURRENT > 2 )) && before=("${(@Q)words[2,CURRENT-1]}")
    local -a lines
    lines=("${(@f)$(_DITTYBAG_COMPLETE=zsh dittybag -- "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
    kind=$lines[1]
    shift lines
    if [[ $kind != names ]]; then
        [[ $PREFIX == -*=* ]] && compset -P '*='
        if [[ $kind == folders ]]; then _files -/; elif [[ $kind == files ]]; then _files; fi
        return
    fi
    for value about in "${lines[@]}"; do
        (( ${#value} > width && ${#about} )) && width=${#value}
    done
    for value about in "${lines[@]}"; do
        text=$value
        [[ -n $about ]] && text="${(r:width:)value}  $about"
        if [[ $value == *[=:] ]]; then
            open_names+=("$value") open_texts+=("$text")
        else
            names+=("$value") texts+=("$text")
        fi
    done
    local -a layout
    (( width )) && layout=(-l)
    (( $#names )) && compadd "${layout[@]}" -V names -d texts -a names
    (( $#open_names )) && compadd "${layout[@]}" -V open-names -S '' -d open_texts -a open_names
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _dittybag "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _dittybag dittybag
fi
"""

_FISH: Final = r"""
function __dittybag_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines (_DITTYBAG_COMPLETE=fish dittybag -- $words "$current" 2>/dev/null)
    switch "$lines[1]"
        case names
            printf '%s\n' $lines[2..]
        case folders
            __fish_complete_directories "$current" ''
        case files
            __fish_complete_path "$current"
    end
end

complete --command dittybag --no-files --keep-order --arguments '(__dittybag_complete)'
"""

SCRIPTS: Final = {"bash": _BASH.lstrip(), "zsh": _ZSH.lstrip(), "fish": _FISH.lstrip()}
