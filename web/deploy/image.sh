#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# image.sh BUILD: makes BUILD/release/image/dptrack-VERSION.oci.tar from the Debian packages in BUILD/release/deb: an OCI
# archive with a Debian by debootstrap as its only layer. Needs a Debian mirror ($MIRROR) and what needs.sh names.
# The process runs as user 10001; /var/lib/dptrack is the volume.
set -e
here=$(dirname "$(realpath "$0")")
build=$(realpath "$1")
out=$build/release/image

fail() {
	echo "image: $*" >&2
	exit 1
}

deb=$(ls "$build"/release/deb/dptrack_*_amd64.deb 2>/dev/null) || fail "no package in $build/release/deb: run make deb"
version=$(dpkg-deb -f "$deb" Version)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(PYTHONPATH=$here/release PYTHONDONTWRITEBYTECODE=1 python3 -c 'import project; print(project.epoch())')}
export SOURCE_DATE_EPOCH LC_ALL=C
when=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
sources=$(apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' 'Identifier: Packages')
mirror=${MIRROR:-$(echo "$sources" | sed -n '1s/^deb \([^ ]*\) .*/\1/p')}
root=$out/root log=$out/log

run() { # command…
	"$@" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "$* failed (log: $log)"; }
}

inside() { # shell command
	run chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
		SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" sh -ec "$1"
}

# The base with the security updates of this machine's mirrors, then the package with its libraries.
fill() {
	run debootstrap --variant=minbase "$codename" "$root" "$mirror"
	echo "$sources" >"$root/etc/apt/sources.list"
	apt-config dump | grep -E '^Acquire::(https?::|Retries)' >"$root/etc/apt/apt.conf.d/80build" || true
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	cp /etc/hosts "$root/etc/hosts"
	cp "$deb" "$root/tmp/dptrack.deb"
	inside 'useradd --system --uid 10001 --home-dir /var/lib/dptrack --shell /usr/sbin/nologin dptrack
		apt-get update -q && apt-get upgrade -q -y
		apt-get install -q -y --no-install-recommends /tmp/dptrack.deb ca-certificates libcjose0 libpq5
		mkdir -p /files /var/lib/dptrack/runs && chown dptrack:dptrack /files /var/lib/dptrack /var/lib/dptrack/runs'
	install -m 755 "$here/health.sh" "$root/usr/local/bin/dptrack-health"
}

# What differs from one build to the next: caches, logs, this machine's settings, times, the day on which users were made.
clean() {
	sed -i "s/^\([^:]*:[^:]*\):[0-9]*:/\1:$((SOURCE_DATE_EPOCH / 86400)):/" "$root/etc/shadow"
	rm -rf "$root"/var/cache/apt/* "$root"/var/cache/debconf/* "$root"/var/cache/ldconfig/* "$root"/var/lib/apt/lists/* \
		"$root"/var/log/* "$root"/tmp/* "$root"/run/* "$root/etc/apt/apt.conf.d/80build" "$root"/etc/*- \
		"$root/etc/machine-id" "$root/var/lib/dbus/machine-id" "$root"/var/lib/dpkg/*-old
	: >"$root/etc/resolv.conf"
	: >"$root/etc/hosts"
	: >"$root/etc/machine-id"
	echo dptrack >"$root/etc/hostname"
	echo "deb http://deb.debian.org/debian $codename main" >"$root/etc/apt/sources.list"
	find "$root" -xdev -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch -h -d "@$SOURCE_DATE_EPOCH"
}

pack() {
	image=$out/dptrack:$version
	run umoci init --layout "$out/dptrack"
	run umoci new --image "$image"
	run umoci insert --history.created "$when" --history.created_by image.sh --image "$image" "$root" /
	run umoci config --no-history --image "$image" --created "$when" --author dptrack --os linux --architecture amd64 \
		--config.user 10001:10001 --config.workingdir /var/lib/dptrack --config.volume /var/lib/dptrack \
		--config.exposedports 6007/tcp --config.env HOME=/var/lib/dptrack \
		--config.env PATH=/usr/local/bin:/usr/bin:/bin --config.entrypoint dptrack \
		--config.cmd serve --config.cmd --logdir --config.cmd /var/lib/dptrack/runs --config.cmd --host --config.cmd 0.0.0.0 \
		--config.label org.opencontainers.image.version="$version" --config.label org.opencontainers.image.licenses=Apache-2.0
	run umoci gc --layout "$out/dptrack"
	run python3 "$here/release/health_check.py" "$out/dptrack" /usr/local/bin/dptrack-health
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		--mode=u+rwX,go+rX,go-w -C "$out/dptrack" \
		-cf "$out/dptrack-$version.oci.tar.part" oci-layout index.json blobs
	mv "$out/dptrack-$version.oci.tar.part" "$out/dptrack-$version.oci.tar"
}

rm -rf "$out"
mkdir -p "$out"
fill
inside 'dpkg-query -W -f "\${Package} \${Version}\n" >/tmp/packages'
cp "$root/tmp/packages" "$out/packages"
clean
pack
rm -rf "$root" "$out/dptrack"
echo "image: $out/dptrack-$version.oci.tar ($(du -m "$out/dptrack-$version.oci.tar" | cut -f 1) MB)"
