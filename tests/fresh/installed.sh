#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# installed.sh PYTHON: tests installed programs, which are on PATH: the server answers, also with TLS, a script logs to its
# folder and over HTTP, the table is exported, dptrain trains on Fashion-MNIST and tokenises unless $ONLY is dptrack; unless $BARE, the
# documents are there. $STARTED: when the installation began, in nanoseconds. $RED_HAT: certificates are at Red Hat's place alone. No
# compiler is on this machine.
set -e
python=$1
here=$(dirname "$(realpath "$0")")
cd "$(mktemp -d)"

fail() {
	echo "FAILED: $*"
	exit 1
}

servers=
trap 'kill $servers' EXIT
serve() { # folder, flags of dptrack serve; leaves $address
	: >served # sed reads it perhaps before the server has opened it
	dptrack serve --logdir "$@" --port 0 >>served 2>&1 &
	servers="$servers $!"
	for i in $(seq 200); do
		address=$(sed -n 's/^dptrack: serving \([^ ]*\).*/\1/p' served)
		[ -z "$address" ] || break
		sleep 0.05
	done
	[ -n "$address" ] || { cat served; fail "dptrack serve"; }
	SSL_CERT_FILE="$here/server.pem" $python -c "import urllib.request as u; assert b'<html' in u.urlopen('$address/').read(); assert u.urlopen('$address/health').status == 200"
}

log() { # experiment
	$python -c "
import dptrack
run = dptrack.init(experiment='$1', run_name='first', config={'lr': 0.1})
for step in range(1, 101):
    run.log({'train/loss': 1 / step}, step=step)
run.finish()
assert dptrack.__version__ == '$version', dptrack.__version__
"
}

train() {
	flags="--experiment fashion --run-name base --model resnet20 --data-path /usr/share/datasets/fashion-mnist -b 128 --lr 0.4"
	dptrain $flags --max-steps 20 --threads 2 >trained 2>&1 || { cat trained; fail "dptrain"; }
	grep 'step 20/' trained || { cat trained; fail "dptrain did no 20 steps"; }
}

tokenise() { # with GPT-2's letters and one merge
	mkdir texts letters
	yes 'hello there' | head -n 5000 >texts/all.txt
	$python -c "
import json
own = [*range(33, 127), *range(161, 173), *range(174, 256)]
letters = list(map(chr, own + list(range(256, 512 - len(own))))) + ['he']
json.dump({letter: i for i, letter in enumerate(letters)}, open('letters/vocab.json', 'w'))
open('letters/merges.txt', 'w').write('#version: 0.2\nh e\n')
"
	dptrain tokenize --data-path texts --tokenizer letters --out tokens --val-split 0.1 || fail "dptrain tokenize"
	[ "$(cat tokens/*.tokens | wc -c)" -lt 110000 ] || fail "no merge: $(ls -l tokens)"
}

finished() { # experiment, folder
	for i in $(seq 100); do
		! dptrack ls --logdir "$2" --experiment "$1" --csv | grep -q finished || return 0
		sleep 0.1
	done
	cat served
	fail "the server has no finished run of $1"
}

arrived() { # experiment; REST has its points
	$python -c "
import time, urllib.request as u
for _ in range(600):
    if b',100,' in u.urlopen('$address/api/v1/export/series.csv?experiment=$1').read():
        break
    time.sleep(0.05)
else:
    raise SystemExit('REST has no step 100 of $1')
"
	[ "$STARTED" ] || return 0
	took=$((($(date +%s%N) - STARTED) / 1000000))
	echo "from the start of the installation until REST has its points: $took ms"
	[ "$ONLY" ] || [ $took -le 60000 ] || fail "more than 60 s"
}

send() { # experiment
	mkdir "$1"
	(cd "$1" && DPTRACK_URL=$address log "$1")
}

! command -v gcc cc node || fail "this machine has a compiler"
version=$(dptrack --version | cut -d ' ' -f 2)
if [ "$ONLY" != dptrack ]; then
	[ "$(dptrain --version)" = "dptrain $version" ] || fail "dptrain --version: $(dptrain --version)"
	dptrain backends
	dptrain backends | grep -q '^cpu .*oneDNN' || fail "dptrain has no cpu backend"
fi
serve runs
now=$(date +%s%N)
[ -z "$STARTED" ] || echo "from the start of the installation until the server answers: $(((now - STARTED) / 1000000)) ms"
[ -z "$STARTED" ] || [ "$ONLY" ] || [ $((now - STARTED)) -le 15000000000 ] || fail "more than 15 s"
[ "$ONLY" = dptrack ] || [ "$BARE" ] || $python "$here/documents.py" "$address" || fail "the documents at $address/docs"
log here
arrived here
finished here runs
send sent
finished sent runs
dptrack export --logdir runs --experiment sent --series | grep '^[^ ]*,100,' || fail "the export has no step 100"
if [ "$ONLY" != dptrack ]; then
	train
	tokenise
	finished fashion runs
	dptrack compare --logdir runs --experiment fashion
	dptrack show --logdir runs base | sed -n 1,20p
fi
if [ "$RED_HAT" ]; then
	unset SSL_CERT_FILE
	rm -rf /etc/ssl
	mkdir -p /etc/pki/tls/certs
	cp "$here/server.pem" /etc/pki/tls/certs/ca-bundle.crt
else
	export SSL_CERT_FILE="$here/server.pem"
fi
serve secure --tls-cert "$here/server.pem" --tls-key "$here/server.key"
send secret
finished secret secure
echo "installed: ok"
