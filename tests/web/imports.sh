#!/bin/sh
# Who may use what in web/ui/src: charts know nothing of views, state or requests; api.ts alone talks to the server;
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
	"$(grep -nE "from '" charts/*.ts | grep -vE "from '\./[a-z]+\.ts'")"
complain 'chart.ts and ink.ts serve every chart and know none' \
	"$(grep -nE "from '" charts/chart.ts charts/ink.ts | grep -v "chart.ts:.*'\./ink\.ts'")"
complain 'base may import its own folder only (its index also charts/geometry.ts, scale.ts and ticks.ts, markdown.ts marked)' \
	"$(grep -nE "from '" base/*.ts | grep -vE "from '\./[a-z]+\.ts'|base/(index.ts:.*'\.\./charts/(geometry|scale|ticks)\.ts'|markdown.ts:.*'marked')")"
complain 'state may import its own folder, api.ts and base only' \
	"$(grep -nE "from '" state/*.ts | grep -vE "from '(\./[a-z]+\.ts|\.\./api\.ts|\.\./base/[a-z]+\.ts|@preact/signals)'")"
complain 'only api.ts may talk to the server' \
	"$(grep -nE '\bfetch\(|new (EventSource|XMLHttpRequest|WebSocket)|sendBeacon' -r . | grep -v '^\./api\.ts:')"
complain 'text must not become markup' "$(grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(' -r .)"
for f in views/*.ts* charts/*.ts; do
	name=$(basename "$f")
	grep -rqE "/$name'" --include='*.ts' --include='*.tsx' . || [ "$name" = index.ts ] ||
		complain 'imported by nobody' "$f"
done
exit $bad
