#!/bin/sh
# Who may use what in web/ui/src: charts know nothing of views, state or requests; api.ts alone talks to the server;
# charts/line.ts alone knows uPlot; no markup is ever made from text.
cd "${srcdir:-.}/web/ui/src" || exit 1
bad=0
complain() { # what, lines
	[ -z "$2" ] && return
	echo "$1:"
	echo "$2"
	bad=1
}
complain 'charts may import their own folder and uplot only' \
	"$(grep -nE "from '" charts/*.ts | grep -vE "from '(\./[a-z]+\.ts|uplot)'")"
complain 'base may import its own folder only (its index also charts/geometry.ts)' \
	"$(grep -nE "from '" base/*.ts | grep -vE "from '\./[a-z]+\.ts'|base/index.ts:.*'\.\./charts/geometry\.ts'")"
complain 'state.ts may import api.ts and base only' \
	"$(grep -nE "from '" state.ts | grep -vE "from '(\./api\.ts|\./base/[a-z]+\.ts|@preact/signals)'")"
complain 'only api.ts may talk to the server' \
	"$(grep -nE '\bfetch\(|new (EventSource|XMLHttpRequest|WebSocket)|sendBeacon' -r . | grep -v '^\./api\.ts:')"
complain 'only charts/line.ts may use uplot' "$(grep -nE "from 'uplot" -r . | grep -v '^\./charts/line\.ts:')"
complain 'text must not become markup' "$(grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(' -r .)"
for f in views/*.ts* charts/*.ts; do
	name=$(basename "$f")
	grep -rqE "/$name'" --include='*.ts' --include='*.tsx' . || [ "$name" = index.ts ] ||
		complain 'imported by nobody' "$f"
done
exit $bad
