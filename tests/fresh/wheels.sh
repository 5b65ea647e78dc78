#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wheels.sh FOLDER [bare] [far] [red-hat]: installs the wheels in FOLDER into a new virtual environment of a bare Debian and tests them; then
# the client without compiled code, from another environment. bare: they have no documents. far: of an emulated processor, without a
# trainer. red-hat: certificates are at Red Hat's places alone, where a Python of Debian finds none.
set -e
here=$(dirname "$(realpath "$0")")
folder=$(realpath "$1")
shift
wanted="dptrack dptrack-trainer"
for word in "$@"; do
	case $word in
	bare) export BARE=yes ;;
	far) export ONLY=dptrack && wanted=dptrack ;;
	red-hat) export RED_HAT=yes ;;
	esac
done
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends python3-venv dataset-fashion-mnist >/dev/null
python3 -m venv venv
python3 -m venv pure
STARTED=$(date +%s%N)
export STARTED
# shellcheck disable=SC2086
venv/bin/pip install -q --no-index --find-links "$folder" $wanted
PATH=$(pwd)/venv/bin:$PATH
sh "$here/installed.sh" python3
[ -z "$RED_HAT" ] || exit 0
pure/bin/pip install -q --no-index --no-deps "$folder"/dptrack-*-py3-none-any.whl
pure/bin/python -c 'import dptrack; assert dptrack._run.library().__module__ == "dptrack.pure"'
ONLY=dptrack STARTED='' sh "$here/installed.sh" "$(pwd)/pure/bin/python"
