#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the static site of the documents: make_site.py VENV OUT. VENV is an environment with the packages of requirements.txt, made if it
does not exist or has others. OUT is replaced when the site is complete."""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = os.path.join(HERE, "requirements.txt")


def run(command, failure, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"make docs: {failure}\n{done.stdout[-3000:].rstrip()}")


def prepare_packages(venv):
    """Installs the packages, unless a complete installation of the same list is there."""
    with open(REQUIREMENTS, encoding="utf-8") as f:
        wanted = f.read()
    mark = os.path.join(venv, "requirements.txt")
    if os.path.exists(mark):
        with open(mark, encoding="utf-8") as f:
            if f.read() == wanted:
                return
    shutil.rmtree(venv, ignore_errors=True)
    run([sys.executable, "-m", "venv", venv], "cannot make a virtual environment: install python3-venv")
    run([f"{venv}/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", REQUIREMENTS],
        "cannot install the packages of web/site/requirements.txt: a network, or pip's own variables for a mirror, are needed once")
    shutil.copy(REQUIREMENTS, mark)


def main(venv, out):
    prepare_packages(venv)
    new = out + ".new"
    run([f"{venv}/bin/python", "-m", "mkdocs", "build", "-q", "--strict", "-f", os.path.join(HERE, "mkdocs.yml"), "-d", os.path.abspath(new)],
        "the site cannot be built: correct the pages", env={**os.environ, "SOURCE_DATE_EPOCH": "0", "PYTHONDONTWRITEBYTECODE": "1"})
    shutil.rmtree(out, ignore_errors=True)
    os.rename(new, out)


main(*sys.argv[1:])
