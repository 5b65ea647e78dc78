#!/bin/sh
# Who may use what in web/ui/src: charts know nothing of views, state or requests; state/api.ts alone talks to the server;
# no markup is ever made from text.
cd "${srcdir:-.}/web/ui/src" || exit 1
bad=0
complain() { # what, lines
	[ -z "$2" ] && return
	echo "$1:"
	echo "$2"
	bad=1
}
complain 'charts may import their own folder only' \
	"$(grep -nE "from '" -r charts | grep -vE "from '\.\.?/([a-z]+/)?[a-z]+\.ts'")"
complain 'charts/base serves every chart and knows none' \
	"$(grep -nE "from '" charts/base/*.ts | grep -vE "from '\./[a-z]+\.ts'")"
complain 'base may import its own folder only (markdown.ts also marked)' \
	"$(grep -nE "from '" base/*.ts | grep -vE "from '\./[a-z]+\.ts'|base/markdown.ts:.*'marked'")"
complain 'state may import its own folder and base only' \
	"$(grep -nE "from '" state/*.ts | grep -vE "from '(\./[a-z]+\.ts|\.\./base/[a-z]+\.ts|@preact/signals)'")"
complain 'only state/api.ts may talk to the server' \
	"$(grep -nE '\bfetch\(|new (EventSource|XMLHttpRequest|WebSocket)|sendBeacon' -r . | grep -v '^\./state/api\.ts:')"
complain 'text must not become markup' "$(grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(' -r .)"
for f in views/*.ts* views/*/*.ts* charts/*.ts charts/*/*.ts; do
	name=$(basename "$f")
	grep -rqE "/$name'" --include='*.ts' --include='*.tsx' . || [ "$name" = index.ts ] ||
		complain 'imported by nobody' "$f"
done
exit $bad
