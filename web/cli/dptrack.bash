# Completion of dptrack for bash. Commands and flags come from the program's own --help, so that they never differ.

_dptrack_values() { # what a flag's value is called in --help, the word so far
	case $1 in
	DIR) compgen -d -- "$2" ;;
	FILE) compgen -f -- "$2" ;;
	SCOPE) compgen -W "read write admin" -- "$2" ;;
	HOST) compgen -A hostname -- "$2" ;;
	esac
}

_dptrack() {
	local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} help value
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		help=$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z-]*\) .*/\1/p')
		mapfile -t COMPREPLY < <(compgen -W "$help" -- "$word")
		return
	fi
	help=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null)
	case $before in
	--*)
		value=$(sed -n "s/^  $before \([A-Z][A-Z]*\) .*/\1/p" <<<"$help")
		if [ -n "$value" ]; then
			mapfile -t COMPREPLY < <(_dptrack_values "$value" "$word")
			return
		fi
		;;
	esac
	case $word in
	-*) mapfile -t COMPREPLY < <(compgen -W "$(sed -n 's/^  \(--[a-z-]*\) .*/\1/p' <<<"$help")" -- "$word") ;;
	*)
		[ "$COMP_CWORD" -eq 2 ] && [ "${COMP_WORDS[1]}" = token ] && mapfile -t COMPREPLY < <(compgen -W "add list revoke" -- "$word")
		;;
	esac
}

complete -o filenames -o bashdefault -F _dptrack dptrack
