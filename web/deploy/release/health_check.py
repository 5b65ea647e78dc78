# SPDX-License-Identifier: Apache-2.0
"""Adds a health check to the configuration of an OCI layout's only image: health_check.py LAYOUT COMMAND. Docker and
BuildKit keep it in that place; umoci has no flag for it."""
import hashlib
import json
import os
import sys


def load(layout, digest):
    with open(os.path.join(layout, "blobs", *digest.split(":")), encoding="utf-8") as f:
        return json.load(f)


def replace(layout, descriptor, content):
    """Stores the new content of a blob and removes the old one."""
    data = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    os.remove(os.path.join(layout, "blobs", *descriptor["digest"].split(":")))
    descriptor.update(digest="sha256:" + hashlib.sha256(data).hexdigest(), size=len(data))
    with open(os.path.join(layout, "blobs", *descriptor["digest"].split(":")), "wb") as f:
        f.write(data)


def main():
    layout, command = sys.argv[1:]
    with open(layout + "/index.json", encoding="utf-8") as f:
        index = json.load(f)
    (top,) = index["manifests"]
    manifest = load(layout, top["digest"])
    config = load(layout, manifest["config"]["digest"])
    second = 10 ** 9
    config["config"]["Healthcheck"] = {"Test": ["CMD", command], "Interval": 10 * second, "Timeout": 5 * second, "StartPeriod": 5 * second}
    replace(layout, manifest["config"], config)
    replace(layout, top, manifest)
    with open(layout + "/index.json", "w", encoding="utf-8") as f:
        json.dump(index, f, sort_keys=True)


main()
