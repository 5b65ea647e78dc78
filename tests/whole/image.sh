#!/bin/sh
# image.sh: web/deploy/Containerfile built by buildah upon a Debian that debootstrap makes, without a daemon or a registry; then its
# program is asked, as its user, for what it loads when it is needed: libpq, libcurl. As root; about 10 minutes, a mirror of Debian and
# npm's registry must be reachable, so no check runs it. --install installs both tools. Exit 77 with the reason where it cannot run.
cd "$(dirname "$0")/../.." || exit 1
. tests/setup.sh
[ "$(id -u)" = 0 ] || { echo "image: this wants root"; exit 77; }
if [ "${1-}" = --install ]; then
	need_command buildah buildah
	need_command debootstrap debootstrap
	install_missing
fi
for tool in buildah debootstrap; do
	command -v $tool >/dev/null || { echo "image: $tool is not installed (--install)"; exit 77; }
done

BASE=docker.io/library/debian:bookworm # what the file begins with: it is there, and so not pulled
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
	*) echo "image: FAILED: $* says $said"; failed=1 ;;
	esac
}
says 10001 id -u
says "dptrack 0.1.0" dptrack --version
says "Connection refused" dptrack db status --db postgresql://dptrack@127.0.0.1:1/dptrack
says "127.0.0.1" dptrack ls --url http://127.0.0.1:1
[ $failed = 0 ] && echo "image: ok, $(inside sh -c 'du -sm / 2>/dev/null | cut -f1') MiB"
exit $failed
