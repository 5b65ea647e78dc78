#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb.sh FOLDER: installs the Debian packages in FOLDER on a bare Debian and tests them: programs, an upgrade over an
# older version with a full store, a downgraded program, remove and purge.
set -e
here=$(dirname "$(realpath "$0")")
folder=$(realpath "$1")
store=/var/lib/dptrack/runs
export DEBIAN_FRONTEND=noninteractive

fail() {
	echo "FAILED: $*"
	exit 1
}

get() { # apt-get's words
	apt-get -qq -y --no-install-recommends "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "apt-get $*"; }
}

older() { # DEB: writes the same package as version 0.0.9 into old/
	dpkg-deb -R "$1" unpacked
	sed -i 's/^Version: .*/Version: 0.0.9/; s/(\(>*=\) [0-9][^)]*)\(,*\)\( *\)$/(\1 0.0.9)\2\3/' unpacked/DEBIAN/control
	sed -i 's/^\(Depends: .*libdptrack0 (>*= \)[^)]*/\10.0.9/' unpacked/DEBIAN/control
	dpkg-deb -b unpacked old >/dev/null
	rm -r unpacked
}

as_service() { # shell command, with the unit's user, folder and settings
	runuser -u dptrack -- sh -c ". /etc/default/dptrack; cd /var/lib/dptrack; $1"
}

list() {
	as_service 'dptrack ls --logdir $DPTRACK_LOGDIR --experiment full --csv --limit 1000' 
}

apt-get update -qq
mkdir old
for deb in "$folder"/*.deb; do
	older "$deb"
done
get install ./old/dptrack_*.deb ./old/libdptrack0_*.deb ./old/python3-dptrack_*.deb libcurl4 dataset-fashion-mnist
[ "$(stat -c %U:%a /var/lib/dptrack)" = dptrack:750 ] || fail "$(stat -c %U:%a /var/lib/dptrack)"
as_service 'mkdir -p $DPTRACK_LOGDIR; python3 -c "
import dptrack, os
for number in range(200):
    run = dptrack.init(experiment=\"full\", run_name=\"run%d\" % number, runs_dir=os.environ.get(\"DPTRACK_LOGDIR\", \"runs\"), console=False, system=0)
    for step in range(50):
        run.log({\"loss\": 1 / (step + 1 + number)}, step=step)
    run.finish()
"'
list >before
[ "$(wc -l <before)" = 201 ] || fail "the store has $(wc -l <before) lines, not 201"
echo '# kept' >>/etc/default/dptrack

get install "$folder"/*.deb
dpkg -s dptrack | grep -q '^Version: 0.0.9' && fail "dptrack was not upgraded"
list >after
cmp before after || fail "the upgrade changed the table"
grep -q '# kept' /etc/default/dptrack || fail "the upgrade changed /etc/default/dptrack"
echo "upgrade: 200 runs kept"

get install systemd procps
systemd-analyze verify --man=no /lib/systemd/system/dptrack.service
systemd-analyze security --offline=true /lib/systemd/system/dptrack.service | tail -n 1
python3 "$here/unit.py" /lib/systemd/system/dptrack.service http://127.0.0.1:6007

sh "$here/installed.sh" python3
for completion in bash-completion/completions fish/vendor_completions.d zsh/vendor-completions; do
	[ "$(ls /usr/share/$completion | grep -Ec '^_?dptra(ck|in)(\.fish)?$')" = 2 ] || fail "/usr/share/$completion"
done
test -f /usr/include/dptrack.h -a -e /usr/lib/x86_64-linux-gnu/libdptrack.so
python3 -m dptrack --version
! grep -aq 'libhdf5[a-z_]*\.so' /usr/bin/dptrain || dpkg -s dptrain | grep -q '^Recommends: .*libhdf5' || fail "dptrain does not recommend libhdf5"

db=$(find $store -name dptrack.db)
version=$(python3 -c "import sqlite3; print(sqlite3.connect('$db').execute('PRAGMA user_version').fetchone()[0])")
python3 -c "import sqlite3; c = sqlite3.connect('$db'); c.execute('PRAGMA user_version = $((version + 1))'); c.commit()"
said=$(as_service 'timeout 20 dptrack serve --port 0 --logdir $DPTRACK_LOGDIR 2>&1') && fail "a newer store was opened: $said"
echo "$said"
[ "$(echo "$said" | wc -l)" = 1 ] || fail "the refusal has more than one line"
python3 -c "import sqlite3; c = sqlite3.connect('$db'); c.execute('PRAGMA user_version = $version'); c.commit()"
list >after
cmp before after || fail "the refusal changed the store"

get remove dptrack
! command -v dptrack || fail "dptrack is still there"
[ -d $store ] && [ -f /etc/default/dptrack ] || fail "remove deleted the store or its settings"
get install "$folder"/dptrack_*.deb
list >after
cmp before after || fail "the store changed after remove and install"
get purge dptrack dptrain python3-dptrack libdptrack-dev libdptrack0
[ ! -e /var/lib/dptrack ] && [ ! -e /etc/default/dptrack ] || fail "purge left files"
! getent passwd dptrack || fail "purge left the user"
left=$(find / -xdev \( -name '*dptrack*' -o -name '*dptrain*' \) -not -path '/root/*' -not -path '/tmp/*' -not -path '/proc/*' -not -path '/var/log/*' -not -path '/var/cache/*')
[ -z "$left" ] || fail "purge left $left"
echo "deb: ok"
