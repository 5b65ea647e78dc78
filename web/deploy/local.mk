# SPDX-License-Identifier: Apache-2.0
# Packages of a release, below release/ of the build folder. Their programs are built there once, with this folder's features
# and with flags of their own.
EXTRA_DIST += web/deploy/release/project.py web/deploy/release/programs.py web/deploy/release/wheel_file.py \
	web/deploy/release/static_libraries.py web/deploy/release/old_glibc.py web/deploy/release/wheels.py web/deploy/release/static.py web/deploy/release/deb.py \
	web/deploy/release/sbom.py web/deploy/release/release.py web/deploy/release/health_check.py web/deploy/image.sh web/deploy/health.sh \
	web/deploy/needs.sh
EXTRA_DIST += web/deploy/debian/control web/deploy/debian/copyright web/deploy/debian/rules web/deploy/debian/source/format \
	web/deploy/debian/dptrack.default web/deploy/debian/dptrack.docs web/deploy/debian/dptrack.examples \
	web/deploy/debian/dptrack.install web/deploy/debian/dptrack.manpages web/deploy/debian/dptrack.postinst \
	web/deploy/debian/dptrack.postrm web/deploy/debian/dptrack.service web/deploy/debian/dptrain.install \
	web/deploy/debian/dptrain.manpages web/deploy/debian/libdptrack0.install web/deploy/debian/libdptrack-dev.install \
	web/deploy/debian/libdptrack-dev.manpages web/deploy/debian/python3-dptrack.install

# For Grafana: imported by hand, or found by its provisioning.
grafanadir = $(pkgdatadir)/grafana
dist_grafana_DATA = web/deploy/grafana-dashboard.json

wheels static deb release:
	@sh $(srcdir)/web/deploy/needs.sh $@ $(builddir)
	python3 $(srcdir)/web/deploy/release/$@.py $(builddir)
image:
	@sh $(srcdir)/web/deploy/needs.sh $@ $(builddir)
	sh $(srcdir)/web/deploy/image.sh $(builddir)
.PHONY: wheels static deb release image
