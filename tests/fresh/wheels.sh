#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wheels.sh FOLDER: installs the wheels in FOLDER into a new virtual environment of a bare Debian and tests them.
set -e
here=$(dirname "$(realpath "$0")")
folder=$(realpath "$1")
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends python3-venv dataset-fashion-mnist >/dev/null
python3 -m venv venv
STARTED=$(date +%s%N)
export STARTED
venv/bin/pip install -q --no-index --find-links "$folder" dptrack dptrack-trainer
PATH=$(pwd)/venv/bin:$PATH
sh "$here/installed.sh" python3
