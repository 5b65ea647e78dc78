#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# enter.sh ROOT [FROM:TO…] -- COMMAND…: first process of new namespaces, started by debian.py. Changes its root to
# ROOT, with separate proc, sys and dev. Mounts the folders FROM read-only at TO (FROM:TO:rw: writable). Runs the
# command.
set -e
root=$1
shift
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
	IFS=: read -r from to mode <<-END
		$1
	END
	mkdir -p "$root$to"
	mount --bind "$from" "$root$to"
	[ "$mode" = rw ] || mount -o remount,bind,ro "$root$to"
	shift
done
shift
cd "$root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 dev dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
while read -r name minor; do
	mknod -m 666 "dev/$name" c $minor
done <<-END
	null 1 3
	zero 1 5
	full 1 7
	random 1 8
	urandom 1 9
	tty 5 0
END
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for i in 0 1 2; do
	ln -s /proc/self/fd/$i "dev/$(echo stdin stdout stderr | cut -d' ' -f$((i + 1)))"
done
hostname fresh
mkdir -p .outside
pivot_root . .outside
PATH=/usr/sbin:/usr/bin:/sbin:/bin
cd /
umount -l /.outside
rmdir /.outside
code=0
"$@" || code=$?
exit $code
