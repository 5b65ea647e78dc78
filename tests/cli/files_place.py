# SPDX-License-Identifier: Apache-2.0
"""A store knows where its files are: migrate finds a folder that --artifacts named, and refuses to leave files behind."""
import os
import shutil
import subprocess
import sys
import tempfile
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib


def tool(*args):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DPTRACK_")}
    return subprocess.run([lib.PROGRAM, *args], capture_output=True, text=True, timeout=120, env=environment)


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(d, n), folder) for d, _, names in os.walk(folder) for n in names if ".uploads" not in d)


def served(logdir, path, *args):
    server = lib.Server(logdir, *args, alone=True)
    status, _, data = server.request("GET", path)
    lib.equal(server.stop(), 0, "exit code")
    return status, data


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        x, y, z = (os.path.join(folder, n) for n in "xyz")
        server = lib.Server(x, "--artifacts", y, alone=True)
        run = lib.make_run(server)
        path = f"/api/v1/runs/{run}/artifacts/weights.bin"
        lib.equal(server.request("PUT", path, b"some weights")[0] in (200, 201), True, "PUT")
        lib.equal(server.stop(), 0, "exit code")
        lib.equal(len(files_below(y)), 1, "files in the named folder")
        lib.equal(served(x, path), (200, b"some weights"), "without --artifacts the store uses its folder")
        r = tool("migrate", x, z)
        lib.equal(r.returncode, 0, f"migrate: {r.stderr}")
        lib.check(" 1 files" in r.stdout or " 1 file" in r.stdout, r.stdout)
        lib.equal(served(z, path), (200, b"some weights"), "the copy has the file")
        shutil.move(y, y + "2")
        r = tool("migrate", x, z + "2")
        lib.check(r.returncode != 0 and "--from-artifacts" in r.stderr and "weights.bin" in r.stderr, f"{r.returncode} {r.stderr}")
        shutil.rmtree(z + "2", ignore_errors=True)
        r = tool("migrate", x, z + "3", "--from-artifacts", y + "2")
        lib.equal(r.returncode, 0, f"--from-artifacts: {r.stderr}")
        lib.equal(served(z + "3", path), (200, b"some weights"), "the second copy")
        shutil.copytree(x, x + "2")
        shutil.move(y + "2", y)
        lib.equal(served(x + "2", path)[0], 404, "a copied store has a folder of its own")
        os.remove(os.path.join(y, files_below(y)[0]))
        r = tool("migrate", x, z + "4")
        lib.check(r.returncode != 0 and "1 files of the store are missing" in r.stderr, f"a missing file: {r.returncode} {r.stderr}")
    lib.finish("files_place")


main()
