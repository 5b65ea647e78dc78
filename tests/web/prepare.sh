# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that need a browser: exits with 77 and the reason if something is missing, otherwise installs the
# pinned packages in $builddir/tests/web/work.
skip() {
	echo "$1"
	exit 77
}

CHROMIUM=${CHROMIUM:-$(command -v chromium)}
export CHROMIUM
[ -n "$CHROMIUM" ] || skip 'chromium is not installed (Debian: chromium)'
command -v node >/dev/null 2>&1 || skip 'node is not installed (Debian: nodejs)'
command -v npm >/dev/null 2>&1 || skip 'npm is not installed (Debian: npm)'
[ -f "$builddir/web/ui/dist/index.html" ] || [ -f "$srcdir/web/ui/dist/index.html" ] || skip 'the page is not built'

# One test at a time installs.
work=$builddir/tests/web/work
mkdir -p "$builddir/tests/web"
exec 9>"$work.lock"
flock 9
if ! cmp -s "$srcdir/tests/web/package-lock.json" "$work/installed"; then
	rm -rf "$work" && mkdir -p "$work" || exit 1
	for f in package.json package-lock.json .npmrc; do
		cat "$srcdir/tests/web/$f" >"$work/$f" || exit 1
	done
	(cd "$work" && timeout 120 npm ci --prefer-offline --loglevel=error >npm.log 2>&1) || {
		tail -n 5 "$work/npm.log"
		skip 'the npm packages of tests/web cannot be installed (no network?)'
	}
	cat "$srcdir/tests/web/package-lock.json" >"$work/installed"
fi
exec 9>&-
