# SPDX-License-Identifier: Apache-2.0
# Bare Debian roots: long commands, of which ./check --long runs oldest.py and static.py (eight libraries are compiled).
CHECK_LONG += tests/fresh/oldest.py tests/fresh/static.py
EXTRA_DIST += tests/fresh/run tests/fresh/oldest.py tests/fresh/static.py tests/fresh/absent.sh tests/fresh/build.sh tests/fresh/debian.py \
	tests/fresh/enter.sh tests/fresh/matrix.py tests/fresh/packages.py tests/fresh/settings.py tests/fresh/times.py \
	tests/fresh/packaged.py tests/fresh/documents.py tests/fresh/typed.py tests/fresh/unit.py tests/fresh/installed.sh tests/fresh/wheels.sh tests/fresh/deb.sh tests/fresh/image.sh
