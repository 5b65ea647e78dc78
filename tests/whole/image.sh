#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# image.sh: buildah builds web/deploy/Containerfile on a Debian made by debootstrap, without a daemon or a registry;
# then its program, run as its user, must be able to load libpq and libcurl. Run as root; takes about 10 minutes and
# needs a Debian mirror and npm's registry, so no check runs it. --install installs both tools. Exits with 77 and the
# reason where it cannot run.
cd "$(dirname "$0")/../.." || exit 1
. tests/setup.sh
[ "$(id -u)" = 0 ] || { echo "image: run as root"; exit 77; }
if [ "${1-}" = --install ]; then
	need_command buildah buildah
	need_command debootstrap debootstrap
	install_missing
fi
for tool in buildah debootstrap; do
	command -v $tool >/dev/null || { echo "image: $tool is not installed (--install)"; exit 77; }
done

BASE=docker.io/library/debian:bookworm # the base image of the file: it exists, so it is not pulled
folder=$(mktemp -d)
trap 'buildah --root "$folder/images" --runroot "$folder/run" rm -a >/dev/null 2>&1; rm -rf "$folder"' EXIT
tool() {
	command=$1
	shift
	buildah --root "$folder/images" --runroot "$folder/run" --storage-driver vfs "$command" "$@"
}
inside() { tool run --isolation chroot "$container" -- "$@"; }

debootstrap --variant=minbase bookworm "$folder/debian" "${MIRROR-}" >"$folder/log" 2>&1 || { tail -5 "$folder/log"; exit 1; }
base=$(tool from scratch) && tool add "$base" "$folder/debian" / >/dev/null && tool commit "$base" $BASE >/dev/null 2>&1 || exit 1
tool bud --isolation chroot --pull-never -t dptrack -f web/deploy/Containerfile . >"$folder/log" 2>&1 || { tail -20 "$folder/log"; exit 1; }
container=$(tool from --pull-never dptrack) || exit 1

failed=0
says() { # words, command…
	words=$1
	shift
	said=$(inside "$@" 2>&1)
	case $said in
	*"$words"*) ;;
	*) echo "image: FAILED: $* printed $said"; failed=1 ;;
	esac
}
says 10001 id -u
says "dptrack 0.1.0" dptrack --version
says "Connection refused" dptrack db status --db postgresql://dptrack@127.0.0.1:1/dptrack
says "127.0.0.1" dptrack ls --url http://127.0.0.1:1
[ $failed = 0 ] && echo "image: ok, $(inside sh -c 'du -sm / 2>/dev/null | cut -f1') MiB"
exit $failed
