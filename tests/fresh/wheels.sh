#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wheels.sh FOLDER [bare]: installs the wheels in FOLDER, bare: without documents, into a new virtual environment of a bare Debian and
# tests them; then the client without compiled code, from another environment.
set -e
here=$(dirname "$(realpath "$0")")
folder=$(realpath "$1")
BARE=$2
export BARE
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends python3-venv dataset-fashion-mnist >/dev/null
python3 -m venv venv
python3 -m venv pure
STARTED=$(date +%s%N)
export STARTED
venv/bin/pip install -q --no-index --find-links "$folder" dptrack dptrack-trainer
PATH=$(pwd)/venv/bin:$PATH
sh "$here/installed.sh" python3
pure/bin/pip install -q --no-index --no-deps "$folder"/dptrack-*-py3-none-any.whl
pure/bin/python -c 'import dptrack; assert dptrack._run.library().__module__ == "dptrack.pure"'
ONLY=dptrack STARTED='' sh "$here/installed.sh" "$(pwd)/pure/bin/python"
