#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The static file dptrack, made of this build folder's page, in a root that holds nothing else: it serves, a run is posted, the page is
sent, the run is listed over HTTP, the clock is UTC's, what is not in the file names the package that has it, it stops. Other processors'
files run under qemu-user-static, where the kernel lets it. Tests of TLS and of hostile requests pass with it. Its libraries are built by make static (a long
command): without them this is skipped, as without root, which chroot needs."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "build"))
OUT = BUILD + "/oldest/release"
sys.dont_write_bytecode = True
sys.path[:0] = [SRC + "/web/deploy/release", SRC + "/tests", SRC + "/tests/fresh"]
import debian
import serving
import static
import static_libraries
import wheels

TESTS = ["api/tls.py", "api/hostile.py"]  # functions of libraries that the server replaces
ABSENT = {"serve --logdir /a --db postgresql://127.0.0.1/none": "wheel dptrack", "serve --logdir /a --artifacts s3://bucket/a": "wheel dptrack",
          "mcp": "whl[mcp]", "import http://127.0.0.1:9": "whl"}
KEYS = {**os.environ, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}


def asked(address, body=None):
    """Returns the answer's bytes."""
    request = urllib.request.Request(address, body and json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return reply.read()


def check_absent(program):
    for words, package in ABSENT.items():
        done = subprocess.run([program, *words.split()], capture_output=True, text=True, timeout=60, env=KEYS, check=False)
        lines = done.stderr.splitlines()
        assert done.returncode and len(lines) == 1 and package in lines[0], (words, done)
        print(f"static: {lines[0]}")


def check_file(path):
    """Runs the file in a root of its own."""
    with tempfile.TemporaryDirectory() as folder:
        root = folder + "/root"
        os.mkdir(root)
        shutil.copy2(path, root)
        program = folder + "/dptrack"
        with open(program, "w", encoding="ascii") as f:
            f.write(f'#!/bin/sh\nexec chroot {root} /{os.path.basename(path)} "$@"\n')
        os.chmod(program, 0o755)
        server = serving.Serving(program, "--logdir", "/runs", "--port", "0")
        mlflow = server.url + "/api/2.0/mlflow/runs"
        run = json.loads(asked(mlflow + "/create", {"experiment_id": "0", "run_name": "first", "start_time": 0}))["run"]["info"]["run_id"]
        asked(mlflow + "/log-metric", {"run_id": run, "key": "loss", "value": 0.5, "timestamp": 1, "step": 1})
        assert json.loads(asked(f"{mlflow}/get?run_id={run}"))["run"]["data"]["metrics"][0]["value"] == 0.5
        assert b'id="app"' in asked(server.url + "/"), "the page"
        listed = subprocess.run([program, "ls", "--url", server.url], capture_output=True, text=True, timeout=60, check=False)
        assert "first" in listed.stdout, listed
        assert server.stop() == 0, server.stderr()
        print(f"static: {os.path.basename(path)} served in an empty root; it left {', '.join(sorted(os.listdir(root + '/runs')))}\n{server.stderr()}", end="")
        check_absent(program)


def main():
    for processor in wheels.PROCESSORS:
        system = static_libraries.System(processor, "musl")
        if system.missing():
            print(f"static: skipped: {', '.join(system.missing())} for {system.target} not built in {system.folder}; make static builds them (15 minutes)")
            sys.exit(77)
    if os.geteuid():
        print("static: skipped: only root may chroot")
        sys.exit(77)
    for processor in wheels.PROCESSORS:
        path, here = static.make_file(static_libraries.System(processor, "musl"), OUT, BUILD), processor == os.uname().machine
        try:
            if not here:
                debian.emulate(processor)
        except debian.Unavailable as why:
            print(f"static: {os.path.basename(path)} did not run: {why}")
            continue
        check_file(path)
        if here:
            with tempfile.TemporaryDirectory() as folder:
                shutil.copy2(path, folder + "/dptrack")
                for test in TESTS:
                    subprocess.run([sys.executable, f"{SRC}/tests/{test}"], check=True, env={**os.environ, "srcdir": SRC, "builddir": folder})


main()
