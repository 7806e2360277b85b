# Completion of the holdfast command for bash: commands, verbs and options, as its help lists them.
_holdfast() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' list help i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --) _command_offset $((i + 1)) 2>/dev/null; return ;; # holdfast run ... -- COMMAND
        -*) ;;
        *) [ -n "$command" ] || command=${COMP_WORDS[i]} ;;
        esac
    done
    case $previous in
    --key-file | --cacert | --file | --plan | --data | --metrics-file | --sqlite | --out | --race | --anomalies)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return ;;
    esac
    if [ -z "$command" ]; then
        list=$(holdfast help 2>/dev/null | sed -n 's/^  \([a-z-]*\) .*/\1/p')
        list+=' help --version'
    else
        help=$(holdfast "$command" --help 2>/dev/null)
        if [[ $word == -* ]]; then
            list=$(grep -o -e '--[a-z][a-z-]*' <<<"$help")
        elif [ "$previous" = "$command" ]; then
            list=$(sed -n "s/^\(usage:\|      \) holdfast $command \([a-z|-]*\).*/\2/p" <<<"$help" | tr '|' '\n')
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$word" | sort -u)
}
complete -F _holdfast holdfast
