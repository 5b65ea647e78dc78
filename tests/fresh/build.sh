#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh CFLAGS [TARGET…]: builds its own checkout as the documents describe, trains a few steps and queries the
# server. A warning of autogen, configure or make is a failure. The word modules stands for dptrain's modules whose
# libraries configure found. LACKS: packages whose absence configure must report with its cost; CONFIGURE: more
# arguments for it.
set -e
cd "$(dirname "$0")/../.."
cflags=$1
shift
log=$(mktemp)

fail() {
	echo "FAILED: $*"
	exit 1
}

silent() { # command…: without a warning
	started=$(date +%s)
	"$@" >"$log" 2>&1 || { tail -n 40 "$log"; fail "$*"; }
	! grep -niE 'warning:|\[warning\]|npm warn' "$log" || fail "$* warns"
	echo "$* ($(($(date +%s) - started)) s)"
}

train() {
	flags="--synthetic --model resnet20 --classes 10 --in-channels 3 --image-size 32 -b 4 --max-steps 3"
	./dptrain backends | grep -q '^cpu .*oneDNN' || flags="$flags --backend ref --precision fp64"
	./dptrain $flags --runs-dir runs >"$log" 2>&1 || { cat "$log"; fail "dptrain $flags"; }
	grep 'step 3/3' "$log" || { cat "$log"; fail "dptrain $flags trained no 3 steps"; }
}

ask() { # path, word that the reply must have
	bash -c "exec 3<>/dev/tcp/127.0.0.1/$port && printf 'GET $1 HTTP/1.0\r\n\r\n' >&3 && cat <&3" >"$log" ||
		fail "no answer to $1"
	grep -qa "$2" "$log" || { cat "$log"; fail "the answer to $1 lacks $2"; }
}

serve() {
	./dptrack --version
	: >served # sed reads it perhaps before the server has opened it
	./dptrack serve --logdir runs --port 0 >>served 2>&1 &
	server=$!
	for i in $(seq 100); do
		port=$(sed -n 's|^dptrack: serving http://[^ ]*:\([0-9]*\).*|\1|p' served)
		[ -z "$port" ] || break
		sleep 0.1
	done
	[ -n "$port" ] || { cat served; fail "dptrack serve"; }
	ask /health '200 OK'
	ask / '<html'
	ask '/api/v1/runs?experiment=default' finished
	kill $server
	wait $server || true
}

rm -rf build
silent ./autogen.sh
mkdir build
cd build
silent env CONFIG_SHELL=/bin/sh sh ../configure CFLAGS="$cflags" $CONFIGURE
sed -n '/^dptrack .*, prefix/,$p' "$log" | tee summary
for package in $LACKS; do
	grep -q "no: .*Debian: .*${package%-minimal}" summary || fail "configure does not report the cost of a missing $package"
done
[ "$*" = "${*%modules}" ] || set -- ${*%modules} $(make -s print-tests NAMES=pkglib_LTLIBRARIES)
silent make -j"$(nproc)" "$@"
train
serve
rm -f "$log"
