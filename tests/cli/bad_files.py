# SPDX-License-Identifier: Apache-2.0
"""Files that look like event files and are none: named in the log while they are followed, and by doctor."""
import gzip
import os
import subprocess
import sys
import tempfile
import time
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

FILES = {"a/events.out.tfevents.1.host": gzip.compress(b"x" * 5000), "b/events.out.tfevents.2.host": b"no record at all" * 20,
         "c/events.out.tfevents.3.host": b"\x00" * 100, "d/events.out.tfevents.4.host": b""}
BAD = [n for n in FILES if not n.startswith("d/")]


def doctor(runs):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DPTRACK_")}
    r = subprocess.run([lib.PROGRAM, "doctor", "--logdir", runs], capture_output=True, text=True, timeout=120, env=environment)
    return r.stdout + r.stderr


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        for name, data in FILES.items():
            os.makedirs(os.path.dirname(os.path.join(runs, name)))
            with open(os.path.join(runs, name), "wb") as f:
                f.write(data)
        server = lib.Server(runs, alone=True)
        end = time.monotonic() + 60
        while not all(n in server.stderr() for n in BAD) and time.monotonic() < end:
            time.sleep(0.1)
        log = server.stderr()
        for name in FILES:
            lib.equal(log.count(name) > 0, name in BAD, f"{name} in the log")
        for text in (doctor(runs), (lib.equal(server.stop(), 0, "exit code"), doctor(runs))[1]):
            lib.check("left out 3 files below" in text and "left out" in text and "gzip" in text, text)
            lib.check(all(n in text for n in BAD) and "events.out.tfevents.4" not in text, f"doctor names them: {text}")
    lib.finish("bad_files")


main()
