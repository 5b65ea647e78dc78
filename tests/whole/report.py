# SPDX-License-Identifier: Apache-2.0
"""A run that is uploaded to a server which is killed twice and restarted arrives there completely and once: its
series.csv equals that of a server which follows the run's folder, also when one server receives the run both ways."""
import os
import signal
import subprocess
import sys
import tempfile
import time

from serve import Server, train, until

FLAGS = ["--model", "resnet20", "--synthetic", "--image-size", "8", "--in-channels", "1", "--classes", "10", "-b", "4",
         "--threads", "1", "--experiment", "away", "--run-name", "r", "--backend", "auto"]


def csv(server, run):
    return server.text(f"/export/series.csv?run={run}")


def run_ids(server):
    known = [e["name"] for e in server.json("/experiments")["experiments"]]
    return [r["id"] for r in server.json("/runs?experiment=away")["runs"]] if "away" in known else []


def settled(server, run, want):
    until(lambda: csv(server, run) == want, 20, "the uploaded series equal the followed ones")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        followed, empty = os.path.join(tmp, "runs"), os.path.join(tmp, "elsewhere")
        os.mkdir(followed)
        with Server(empty) as away, Server(followed) as near:
            job = train(*FLAGS, "--max-steps", "100000", "--runs-dir", followed, "--report-to", away.url, wait=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                run = until(lambda: run_ids(near), 30, "the run appears on the server that follows")[0]
                for _ in range(2):
                    until(lambda: run in run_ids(away), 30, "the run appears on the server that receives it")
                    away.stop(signal.SIGKILL)
                    time.sleep(0.7)
                    away.start()
                time.sleep(1)
                job.send_signal(signal.SIGINT)
                assert job.wait(60) == 130, "exit code of a run after ctrl-C"
                until(lambda: near.json(f"/runs/{run}")["status"] == "killed", 20, "the status arrives")
            finally:
                job.kill()
            want = csv(near, run)
            assert want.count("train/loss") > 20, "the run is too short to prove anything"
            settled(away, run, want)
            print(f"{want.count(chr(10)) - 1} points equal after two kills")
            train(*FLAGS, "--max-steps", "40", "--run-name", "both", "--runs-dir", followed, "--report-to", near.url)
            both = [i for i in run_ids(near) if i != run][0]
            until(lambda: near.json(f"/runs/{both}")["status"] == "finished", 20, "the second run ends")
            want = csv(near, both)
            assert want.count(",train/loss,") == 40, f"{want.count(',train/loss,')} losses of 40 steps"
        with Server(os.path.join(followed)) as again:
            assert csv(again, both) == want, "the export after a restart"
        print("points received both ways are stored once")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
