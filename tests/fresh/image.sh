#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# image.sh PORT USER ARGUMENT…: runs in the unpacked image as a container does: its user, a read-only root, its volume
# and /tmp in memory. The server must answer, store a token and stop at SIGTERM; nothing else may be writable.
set -e
port=$1 user=$2
shift 2

fail() {
	echo "FAILED: $*"
	exit 1
}

limits="--reuid $user --regid $user --clear-groups --bounding-set=-all --no-new-privs"
as_user() {
	setpriv $limits "$@"
}

mount -o remount,ro,bind /
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o "uid=$user,gid=$user,mode=750" tmpfs /var/lib/dptrack
cd /var/lib/dptrack
export HOME=/var/lib/dptrack
! as_user touch /usr/local/written 2>/dev/null || fail "the root can be written"
as_user dptrack --version
said=$(as_user "$@" --port "$port" 2>&1) && fail "a server without a token"
echo "$said" | grep -q 'create a token first' || fail "$said"
DPTRACK_TOKEN=0123456789abcdef0123456789abcdef setpriv $limits "$@" --port "$port" &
server=$!
for i in $(seq 100); do
	! as_user dptrack-health "$port" 2>/dev/null || break
	sleep 0.1
done
as_user dptrack-health "$port" || fail "dptrack-health"
! as_user dptrack-health 1 2>/dev/null || fail "dptrack-health succeeds without a server"
as_user dptrack token add admin --scope admin --logdir /var/lib/dptrack/runs | grep -q dpt- || fail "no token"
[ "$(stat -c %u /var/lib/dptrack/runs)" = "$user" ] || fail "the store belongs to another user"
kill -TERM $server
wait $server || fail "exit code $? after SIGTERM"
said=$(as_user dptrack ls --url http://127.0.0.1:1 2>&1) && fail "ls without a server"
echo "$said" | grep -q 127.0.0.1 || fail "libcurl: $said"
said=$(as_user dptrack db status --db postgresql://dptrack@127.0.0.1:1/dptrack 2>&1) && fail "status without a database"
echo "$said" | grep -q 'refused' || fail "libpq: $said"
echo "image: ok"
