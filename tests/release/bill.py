#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a release: cyclonedx-python-lib (from PyPI, in build/venv) accepts it, it has the checksum of
every file and the packages whose code is in the page, and the same content has the same bytes."""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "build"))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(SRC, "web", "deploy", "release"), os.path.join(SRC, "tests", "bench")]
import packages
import sbom

CHECK = ("import sys; from cyclonedx.schema import SchemaVersion; from cyclonedx.validation.json import JsonStrictValidator; "
         "print(JsonStrictValidator(SchemaVersion.V1_5).validate_str(sys.stdin.read()))")


def main():
    try:
        python = packages.python(BUILD, "cyclonedx", ["cyclonedx-python-lib[json-validation]==11.5.0"])
    except packages.Unavailable as why:
        print(f"bill: {why}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/dptrack-0.1.0-py3-none-any.whl", f"{folder}/dptrack-0.1.0.oci.tar"]
        for path in files:
            with open(path, "wb") as f:
                f.write(path.encode())
        made = [json.dumps(sbom.bill(order, {os.path.basename(files[0]): [["zlib1g", "1:1.2.13.dfsg-1", "amd64"], ["zlib", "1:1.2.13.dfsg-1", "source"], ["onednn-cpu-gomp", "2023.2.0", "pypi"]]}, {"base-files": "12.4+deb12u5", "libc6": "2:2.36-9"}))
                for order in (files, files[::-1])]
        assert made[0] == made[1], "the order of the files changes the bill"
        bill = json.loads(made[0])
        hashes = {c["name"]: c["hashes"][0]["content"] for c in bill["components"] if c["type"] == "file"}
        for path in files:
            with open(path, "rb") as f:
                assert hashes[os.path.basename(path)] == hashlib.sha256(f.read()).hexdigest(), path
    with open(os.path.join(SRC, "web", "ui", "package.json"), encoding="utf-8") as f:
        wanted = set(json.load(f).get("dependencies", {}))
    names = {c["name"] for c in bill["components"]}
    wanted |= {"mkdocs-material", "onednn-cpu-gomp"}  # the code of the first is in the documents
    assert "pkg:pypi/onednn-cpu-gomp@2023.2.0" in {c.get("purl") for c in bill["components"]}
    assert len(wanted) > 1 and wanted <= names, wanted - names
    parts = {c["bom-ref"] for c in bill["components"]}
    assert all(part in parts for link in bill["dependencies"] for part in link["dependsOn"])
    said = subprocess.run([python, "-c", CHECK], input=made[0], capture_output=True, text=True, check=False)
    assert said.stdout.strip() == "None", said.stdout + said.stderr
    wrong = subprocess.run([python, "-c", CHECK], input=made[0].replace('"library"', '"book"'), capture_output=True, text=True, check=False)
    assert wrong.stdout.strip() != "None", "the validator accepts anything"
    print(f"bill: {len(parts)} components")


main()
