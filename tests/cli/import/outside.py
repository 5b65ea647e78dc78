# SPDX-License-Identifier: Apache-2.0
"""What a source names outside the folder that the user named is not read (mlflow#8003, CVE-2023-1177; huntr's
CVE-2023-6909): a run's artifact address, links, files of JSON lines and event files; `sync` the same. Each is named in
one line, the rest is imported, and --files-from allows a folder. So are links in what backup, restore and migrate copy. No byte of the secret is in the folder of runs."""
import sys
sys.dont_write_bytecode = True
import glob
import json
import os
import shutil
import subprocess
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "api"))
import lib

HERE = os.path.dirname(os.path.abspath(__file__))
SECRET = "the-key-of-somebody"
RUN = "ab" * 16
PNG = bytes.fromhex("89504e470d0a1a0a") + SECRET.encode()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w" if isinstance(text, str) else "wb") as f:
        f.write(text)


def imported(source, into, *more):
    environment = {k: v for k, v in os.environ.items() if k not in ("DPTRACK_TOKEN", "DPTRACK_URL")}
    done = subprocess.run([lib.PROGRAM, "import", source, "--logdir", into, *more], capture_output=True, text=True, timeout=120, env=environment)
    lib.equal((done.returncode, done.stderr), (0, ""), f"import {source} {more}")
    return done.stdout


def has_secret(folder):
    for parent, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(parent, name), "rb") as f:
                if SECRET.encode() in f.read():
                    return True
    return False


def lines(folder, keys, home):
    rows = [{"dptrack_runs": 1}, {"run": {"id": RUN, "experiment": "e", "name": "n", "start": 1700000000}},
            {"file": ["id_rsa", f"{home}/id_rsa"]}, {"file": ["up", f"{keys}/../home/id_rsa"]}, {"file": ["ssh", home]},
            {"image": ["x", 1, 1700000001, {"file": f"{home}/id_rsa", "width": 1, "height": 1}]}, {"file": ["own", f"{keys}/own"]},
            {"points": [["loss", 1, 1700000001, 1]]}, {"end": ["finished", 1700000002]}]
    write(f"{keys}/own", "mine")
    write(f"{keys}/runs.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return f"{keys}/runs.jsonl", 4


def mlruns(folder, keys, home):
    root = f"{keys}/mlruns"
    meta = f"end_time: 1\nexperiment_id: '0'\nlifecycle_stage: active\nrun_id: {RUN}\nrun_name: n\nstart_time: 1\nstatus: 3\n"
    write(f"{root}/0/meta.yaml", f"artifact_location: file://{root}/0\nexperiment_id: '0'\nlifecycle_stage: active\nname: Default\n")
    write(f"{root}/0/{RUN}/meta.yaml", f"artifact_uri: file://{home}\n" + meta)
    os.makedirs(f"{root}/0/{RUN}/tags")
    os.symlink(f"{home}/id_rsa", f"{root}/0/{RUN}/tags/key")
    return root, 2


def wandb(folder, keys, home):
    shutil.copytree(f"{HERE}/wandb", f"{keys}/wandb")
    files = f"{keys}/wandb/offline-run-20261121_205826-abcd1234/files"
    os.symlink(f"{home}/id_rsa", f"{files}/link.txt")
    os.symlink(home, f"{files}/ssh")
    return f"{keys}/wandb", 2


def events(folder, keys, home):
    imported(lines(folder, f"{folder}/first", home)[0], f"{folder}/runs")
    subprocess.run([lib.PROGRAM, "export", "--logdir", f"{folder}/runs", "--events", f"{folder}/exported"], check=True, stdout=subprocess.DEVNULL, timeout=120)
    whole = next(os.path.join(p, f) for p, _, files in os.walk(f"{folder}/exported") for f in files if "tfevents" in f)
    write(f"{home}/events.out.tfevents.2.h", open(whole, "rb").read())
    os.makedirs(f"{keys}/tb/e/a")
    shutil.copy(whole, f"{keys}/tb/e/a/events.out.tfevents.1.h")
    os.makedirs(f"{keys}/tb/e/b")
    os.symlink(f"{home}/events.out.tfevents.2.h", f"{keys}/tb/e/b/events.out.tfevents.2.h")
    os.symlink(home, f"{keys}/tb/e/c")
    return f"{keys}/tb", 2


def source_names_others(make, folder):
    keys, home = f"{folder}/given", f"{folder}/home"
    write(f"{home}/id_rsa", PNG)
    source, count = make(folder, keys, home)
    said = imported(source, f"{folder}/into")
    left = [line for line in said.splitlines() if line.startswith(("skipped:", "kept in the file")) and
            ("outside the imported folder" in line or "symbolic link" in line)]
    lib.check(sum(int(line.split(" times ")[0].split()[-1]) for line in left) == count and all("--files-from DIR" in line for line in left), f"{count} named: {said}")
    lib.check(not has_secret(f"{folder}/into"), f"{make.__name__}: the secret was copied")
    lib.check("1 run" in said or "3 runs" in said, f"the rest is imported: {said}")
    os.makedirs(f"{folder}/elsewhere")
    again = imported(source, f"{folder}/allowed", "--files-from", f"{folder}/elsewhere", "--files-from", home)
    lib.check("outside the imported folder" not in again, again)
    lib.check(make is events or has_secret(f"{folder}/allowed"), f"{make.__name__}: --files-from allows it: {again}")


def sync_stays_below(folder):
    """A journal that a link leads to is not sent, nor a kept file that is a link."""
    write(f"{folder}/home/id_rsa", PNG)
    imported(lines(folder, f"{folder}/given", f"{folder}/home")[0], f"{folder}/other/e")
    imported(f"{folder}/given/runs.jsonl", f"{folder}/runs")
    os.symlink(f"{folder}/other/e", f"{folder}/runs/far")
    recorder = lib.Recorder(f"{folder}/runs", url="")
    recorder.say(f"file own {folder}/given/own")
    recorder.close()
    kept = glob.glob(f"{folder}/runs/way/*/files/own")[0]
    os.unlink(kept)
    os.symlink(f"{folder}/home/id_rsa", kept)
    server = lib.Server(f"{folder}/served")
    done = subprocess.run([lib.PROGRAM, "sync", "--logdir", f"{folder}/runs", "--url", f"http://{server.host}:{server.port}"], capture_output=True, text=True, timeout=120)
    lib.equal((done.returncode, done.stderr), (0, ""), "sync")
    lib.check("3 journals" in done.stdout and "skipped: 2 journals outside the folder" in done.stdout and "far/" in done.stdout, done.stdout)
    lib.check("skipped: 1 kept file, replaced or removed since" in done.stdout and not has_secret(f"{folder}/served"), done.stdout)
    lib.equal(server.stop(), 0, "exit code")


def copies_stay_below(folder):
    """Links among the artifacts of a store and of a backup are named and not followed by backup, restore and migrate."""
    write(f"{folder}/home/id_rsa", PNG)
    imported(lines(folder, f"{folder}/given", f"{folder}/home")[0], f"{folder}/runs")
    for source, target, command in (("runs", "backup", ["backup", "{to}", "--logdir", "{from}"]), ("runs", "moved", ["migrate", "{from}", "{to}"]),
                                    ("backup", "back", ["backup", "--restore", "{from}", "--logdir", "{to}"])):
        for name, goal in (("key", "home/id_rsa"), ("ssh", "home"), ("far", "nowhere")):
            os.symlink(f"{folder}/{goal}", f"{folder}/{source}/dptrack.artifacts/{name}")
        words = [w.replace("{from}", f"{folder}/{source}").replace("{to}", f"{folder}/{target}") for w in command]
        done = subprocess.run([lib.PROGRAM, *words], capture_output=True, text=True, timeout=120)
        lib.equal(done.returncode, 0, f"{command[0]}: {done.stderr}")
        for name in ("key", "ssh", "far"):
            lib.check(f"{folder}/{source}/dptrack.artifacts/{name}: not copied: it is a link" in done.stderr, f"{words}: {done.stderr}")
            os.unlink(f"{folder}/{source}/dptrack.artifacts/{name}")
        lib.check(not has_secret(f"{folder}/{target}") and os.path.exists(f"{folder}/{target}/dptrack.db"), f"{words}: the rest is copied")


def linked_folder_is_copied(folder):
    """A folder of artifacts that its owner moved to another disk and linked is in a backup."""
    imported(lines(folder, f"{folder}/given", f"{folder}/home")[0], f"{folder}/runs")
    os.rename(f"{folder}/runs/dptrack.artifacts", f"{folder}/disk")
    os.symlink(f"{folder}/disk", f"{folder}/runs/dptrack.artifacts")
    done = subprocess.run([lib.PROGRAM, "backup", f"{folder}/backup", "--logdir", f"{folder}/runs"], capture_output=True, text=True, timeout=120)
    lib.check((done.returncode, done.stderr) == (0, "") and "and 1 artifacts" in done.stdout, f"a linked folder: {done.stdout} {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        for make in (lines, mlruns, wandb, events):
            source_names_others(make, f"{folder}/{make.__name__}")
        sync_stays_below(f"{folder}/sync")
        copies_stay_below(f"{folder}/copies")
        linked_folder_is_copied(f"{folder}/linked")
    lib.finish("outside")


if __name__ == "__main__":
    main()
