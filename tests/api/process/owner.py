# SPDX-License-Identifier: Apache-2.0
"""What the owner of a server alone may do, whose token only this user can read in the lock file: a backup into any folder
(Aim's CVE-2024-6396 and aim#3327), and the first token of an open server. Others make backups below --backup-dir, where no
folder may be a link, and no reply tells which paths exist elsewhere."""
import sys
sys.dont_write_bytecode = True
import json
import os
import subprocess
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib

if lib.IN_DATABASE:
    sys.exit(77)  # a database has no lock file


def backup(server, path, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    status, reply = server.json("POST", "/api/v1/backup", {"path": path}, headers=headers)
    return status, reply


def command(*words, code=0):
    done = subprocess.run([lib.PROGRAM, *words], capture_output=True, text=True, timeout=60, env=lib.environment_of(words))
    lib.equal(done.returncode, code, f"{words}: {done.stderr}")
    return done.stdout.strip()


def next_to_the_store(folder):
    """Without --backup-dir."""
    server = lib.Server(f"{folder}/runs")
    lib.make_run(server)
    outside = f"{folder}/home/x"
    os.makedirs(f"{folder}/home/there")
    refusals = set()
    for path in (outside, f"{folder}/home/there", f"{folder}/none/x", "/etc/cron.d/x", "/etc/passwd", f"{folder}/runs/x", f"{folder}/home/x.db", "//x"):
        status, reply = backup(server, path)
        refusals.add((status, json.dumps(reply)))
        lib.check(status == 403 and "--backup-dir" in reply["error"]["message"], f"{path}: {status} {reply}")
    lib.equal(len(refusals), 1, "one answer for all paths")
    lib.equal(backup(server, "dptrack.db.monday")[0], 200, "a name next to the store")
    for path in ("../x", "x", "dptrack.db.a/b", "dptrack.db.a/../../x", ""):
        lib.equal(backup(server, path)[0], 400, path)
    lib.equal(os.listdir(f"{folder}/home"), ["there"], "nothing was written")
    lib.equal(backup(server, outside, server.owner_token())[0], 200, "the owner's token")
    command("backup", f"{folder}/home/command", "--logdir", f"{folder}/runs")
    lib.equal(sorted(os.listdir(f"{folder}/home")), ["command", "there", "x"], "the owner's backups")
    first_token(server)
    lib.equal(server.stop(), 0, "exit code")


def first_token(server):
    for scope in ("read", "admin"):
        status, reply = server.json("POST", "/api/v1/tokens", {"name": "theirs", "scope": scope})
        lib.check(status == 403 and "dptrack token add" in reply["error"]["message"], f"{status} {reply}")
    lib.equal(server.request("POST", "/api/v1/tokens", {"name": "theirs", "scope": "admin"}, {"Authorization": "Bearer " + "0" * 64})[0], 403, "a guess")
    lib.equal(server.request("GET", "/api/v1/runs")[0], 200, "the server is still open")
    token = command("token", "add", "boss", "--scope", "admin", "--logdir", server.logdir)
    lib.equal(server.request("GET", "/api/v1/runs")[0], 401, "now tokens are needed")
    lib.equal(backup(server, "/etc/cron.d/x", token)[0], 403, "an administrator is not the owner")
    lib.equal(backup(server, "dptrack.db.tuesday", token)[0], 200, "an administrator's backup")
    boss = {"Authorization": f"Bearer {token}"}
    lib.equal(server.request("POST", "/api/v1/tokens", {"name": "second", "scope": "admin"}, boss)[0], 201, "an administrator's token")


def below_a_folder(folder):
    """With --backup-dir."""
    os.makedirs(f"{folder}/copies/own")
    os.makedirs(f"{folder}/away")
    os.symlink(f"{folder}/away", f"{folder}/copies/link")
    os.symlink(f"{folder}/copies", f"{folder}/alias")
    server = lib.Server(f"{folder}/served", "--backup-dir", f"{folder}/alias")
    lib.make_run(server)
    for path in ("monday", "own/tuesday", "own/x.db", f"{os.path.realpath(folder)}/copies/wednesday"):
        status, reply = backup(server, path)
        lib.equal(status, 200, f"{path}: {reply}")
        lib.check(os.path.realpath(reply["path"]).startswith(os.path.realpath(f"{folder}/copies/")), reply["path"])
    for path in ("link/x", "../x", "own/../../x", "own/../x", "none/x", "", ".", "..", "own/", f"{os.path.realpath(folder)}/copies/../x"):
        lib.equal(backup(server, path)[0], 400, path)
    lib.equal((backup(server, "monday")[0], backup(server, f"{folder}/x")[0]), (409, 403), "an existing one; elsewhere")
    lib.equal((os.listdir(f"{folder}/away"), sorted(os.listdir(f"{folder}/copies"))), ([], ["link", "monday", "own", "wednesday"]), "what was written")
    lib.equal(server.stop(), 0, "exit code")
    command("serve", "--logdir", f"{folder}/served", "--port", "0", "--backup-dir", f"{folder}/none", code=2)


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        next_to_the_store(folder)
        below_a_folder(folder)
    lib.finish("owner")


main()
