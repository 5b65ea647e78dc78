# SPDX-License-Identifier: Apache-2.0
"""Something else in place of a store, or where a store would be created: one line names it with what to do, and the
same mistake has the same exit code everywhere. Files only: a store in PostgreSQL has no such place."""
import sys
sys.dont_write_bytecode = True
import os
import shutil
import subprocess
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib
from calls import bad, good, run


def codes(runs):
    """The same mistake has the same exit code in every command; a failure that a retry may cure is not a usage
    error."""
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        copy = os.path.join(folder, "copy")
        good("backup", copy, "--logdir", runs)
        bad(["already exists"], "backup", copy + "/dptrack.db", "--logdir", runs)
        bad(["already has a store"], "migrate", runs, copy)
    for args in (("db", "status"), ("db", "upgrade"), ("ls",)):
        r = run(*args, "--db", "postgresql://nobody@127.0.0.1:1/none")
        lib.check("without PostgreSQL" in r.stderr or (r.returncode == 1 and "cannot be reached" in r.stderr), f"{args}: {r}")


def no_stores():
    """A path in place of the store that is not a store is named, with what to do."""
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        db = os.path.join(folder, "dptrack.db")
        os.mkdir(db)
        bad([db, "not a regular file", "--db FILE"], "ls", "--logdir", folder)
        os.rmdir(db)
        os.mkfifo(db)
        bad([db, "not a regular file", "--db FILE"], "ls", "--logdir", folder)
        os.unlink(db)
        with open(db, "w", encoding="ascii") as f:
            f.write("this is no database\n")
        bad([db, "not a database", "backup --restore"], "ls", "--logdir", folder, code=1)
        os.unlink(db)
        good("ls", "--logdir", folder)
        bad([__file__, "folder"], "serve", "--port", "0", "--logdir", folder, "--artifacts", __file__)
        bad([f"{__file__}/x", "Not a directory"], "serve", "--port", "0", "--logdir", folder, "--artifacts", __file__ + "/x", code=1)
        bad(["s3://", "BUCKET"], "migrate", folder, folder + "/to", "--artifacts", "s3://")


def other_users(runs):
    """The folder of another user: one that cannot be read is no empty one; without a home the flag to use is named."""
    drop = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"] if os.getuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        os.chmod(folder, 0o755)
        shutil.copy(lib.PROGRAM, folder)
        shutil.copytree(runs, folder + "/runs")
        env = {k: v for k, v in os.environ.items() if not k.startswith(("DPTRACK", "XDG_"))}
        for mode, want in ((0o000, f"cannot read {folder}/runs: "), (0o555, "/none: Permission denied: choose a path with --db")):
            os.chmod(folder + "/runs", mode)
            os.chmod(folder, 0o555)
            r = subprocess.run([*drop, folder + "/dptrack", "ls", "--logdir", folder + "/runs"], env=dict(env, HOME=folder + "/none"),
                               capture_output=True, text=True, timeout=60)
            lib.check(r.returncode == 1 and want in r.stderr and r.stderr.count("\n") == 1, f"a folder of mode {mode:o}: {r}")
        os.chmod(folder, 0o755)
        os.chmod(folder + "/runs", 0o755)


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        runs = os.path.join(folder, "runs")
        server = lib.Server(runs)
        lib.make_run(server, "digits", "one", {"lr": 0.1})
        lib.equal(server.stop(), 0, "exit code")
        no_stores()
        codes(runs)
        other_users(runs)
    lib.finish("stores")


main()
