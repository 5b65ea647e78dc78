# SPDX-License-Identifier: Apache-2.0
"""A private PostgreSQL for tests, in a temporary folder: a context, or `cluster.py TEST...`, which runs tests with
DPTRACK_TEST_STORE=postgresql and DPTRACK_TEST_SERVER=FOLDER:PORT (of the socket); with --beside also on the default
store, and compares their numbers of checks. Databases from the template `dptrack` contain an empty store. Exits with
77 and the reason if PostgreSQL is not installed or dptrack was built without it."""
import glob
import hashlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from ports import free_port
import wire

SOURCE = os.environ.get("srcdir") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("builddir") or os.path.join(SOURCE, "build")
PROGRAM = os.path.join(BUILD, "dptrack")
COUNTS_DIFFER = {"tests/cli/upkeep.py": "doctor and --restore work on a file",
                 "tests/store/store_test": "four tests need a file, and print that",
                 "tests/api/alerts.py": "polls while it waits",
                 "tests/api/auth/shares.py": "the owner's token is a row", "tests/api/auth/authors.py": "the owner's token is a row", "tests/api/auth/grants.py": "two processes answer, and the owner's token is a row",
                 "tests/fault/audit.py": "damages a file's rows, and counts what it compares",
                 "tests/fault/server_kill.py": "a file's integrity is checked",
                 "tests/api/downloads.py": "checks as long as a link is swapped",
                 "tests/api/objects.py": "kills uploads at random moments"}


def binaries():
    """The newest installed version's folder of programs, or None."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb") + [p for p in [shutil.which("initdb")] if p]
    return os.path.dirname(max(found, key=lambda p: [int(n) for n in re.findall(r"\d+", p)])) if found else None


def reason():
    """The reason why there is no cluster, or None."""
    if not binaries():
        return "PostgreSQL is not installed (Debian: postgresql)"
    version = subprocess.run([PROGRAM, "db", "status", "--db", "postgresql://%zz@"], capture_output=True, text=True)
    return "dptrack was built without libpq (Debian: libpq-dev)" if "without PostgreSQL" in version.stderr else None


def as_nobody():
    """The prefix of a command that must not run as root: initdb refuses root."""
    return ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"] if os.getuid() == 0 else []


def stat_of(pid):
    """The fields of /proc/PID/stat after the name: state, parent, ..."""
    with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
        return f.read().rpartition(")")[2].split()


def children_of(parent):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(stat_of(pid)[1]) == parent:
                found.append(int(pid))
        except OSError:
            pass
    return found


def has_ended(pid):
    try:
        return stat_of(pid)[0] == "Z"
    except OSError:
        return True


class Cluster:
    def __init__(self, fsync=False, settings=(), follows=None):
        self.folder = tempfile.mkdtemp(prefix="dptrack-pg.", dir=None if fsync or not os.access("/dev/shm", os.W_OK) else "/dev/shm")
        os.chmod(self.folder, 0o755)
        self.data, self.bin, self.process = os.path.join(self.folder, "data"), binaries(), None
        self.port = free_port()
        if os.getuid() == 0:
            shutil.chown(self.folder, "nobody")
        self.settings = [f"fsync={'on' if fsync else 'off'}", "max_connections=100", "shared_buffers=32MB", *settings]
        if follows:
            self.follow(follows)
            return
        self.tool("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self.start()
        self.sql("postgres", "CREATE DATABASE dptrack")
        subprocess.run([PROGRAM, "db", "init", "--db", self.address("dptrack")], check=True, stdout=subprocess.DEVNULL)

    def follow(self, primary):
        """Starts over as a standby of another cluster, which it reaches through the wire `replication`."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.replication = wire.Wire(primary.folder, primary.port)
        self.tool("pg_basebackup", "-d", self.replication.address("").rstrip("/"), "-D", self.data, "-R", "-c", "fast", "--no-sync")
        self.start()

    def tool(self, name, *args, within=()):
        """within: a prefix that runs the command elsewhere."""
        done = subprocess.run([*within, *as_nobody(), os.path.join(self.bin, name), *args], capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"

    def start(self, listen="127.0.0.1", within=()):
        options = f"-k {self.folder} -p {self.port} -c listen_addresses={listen} " + " ".join(f"-c {s}" for s in self.settings)
        self.tool("pg_ctl", "-D", self.data, "-o", options, "-l", os.path.join(self.folder, "log"), "-w", "start", within=within)

    def pid(self):
        with open(os.path.join(self.data, "postmaster.pid"), encoding="utf-8") as f:
            return int(f.readline())

    def kill(self):
        """SIGKILL to all of its processes."""
        parent = self.pid()
        os.kill(parent, signal.SIGSTOP)  # starts no more processes
        family = [parent] + children_of(parent)
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        while not all(has_ended(pid) for pid in family):
            time.sleep(0.01)
        # A pid may belong to a zombie as long as its parent does not wait for it.
        for name in (os.path.join(self.data, "postmaster.pid"), os.path.join(self.folder, f".s.PGSQL.{self.port}.lock")):
            os.unlink(name)

    def stop(self, mode="immediate"):
        self.tool("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def address(self, database, tcp=False):
        if tcp:
            return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def psql(self, database):
        return ["psql", "-h", self.folder, "-p", str(self.port), "-U", "postgres", "-d", database, "-XAtq", "-v", "ON_ERROR_STOP=1"]

    def sql(self, database, text):
        """Returns the lines that psql prints, one per row."""
        done = subprocess.run([*self.psql(database), "-c", text], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def store(self, name):
        """Returns the address of a fresh store."""
        self.sql("postgres", f"CREATE DATABASE {name} TEMPLATE dptrack")
        return self.address(name)

    def close(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def of_folder(logdir):
    """The address of the database that replaces a folder's store; created if missing (DPTRACK_TEST_SERVER)."""
    folder, port = os.environ["DPTRACK_TEST_SERVER"].rsplit(":", 1)
    name = "t" + hashlib.sha256(os.path.abspath(logdir).encode()).hexdigest()[:24]
    subprocess.run(["psql", "-h", folder, "-p", port, "-U", "postgres", "-d", "postgres", "-Xq", "-c",
                    f"CREATE DATABASE {name} TEMPLATE dptrack"], capture_output=True)
    return f"postgresql://postgres@/{name}?host={folder}&port={port}"


def add_token(query):
    """Adds an administrator's token to a store that query(SQL) reaches; from then on the store requires one."""
    text = "dpt_" + secrets.token_hex(32)
    query(f"INSERT INTO token (name, hash, scope, created_ms) SELECT 'owner {text[4:12]}', '{hashlib.sha256(text.encode()).hexdigest()}',"
          " 3, 0; UPDATE token_count SET changes = changes + 1; NOTIFY dptrack")
    return text


def query_of_folder(logdir, sql):
    """Returns the lines that psql prints for a query of the database that replaces a folder's store."""
    folder, port = os.environ["DPTRACK_TEST_SERVER"].rsplit(":", 1)
    name = "t" + hashlib.sha256(os.path.abspath(logdir).encode()).hexdigest()[:24]
    return subprocess.run(["psql", "-h", folder, "-p", port, "-U", "postgres", "-d", name, "-XAtq", "-c", sql], check=True,
                          capture_output=True, text=True).stdout.splitlines()


def owner_token(logdir):
    """Returns an administrator's token of a folder's store."""
    return add_token(lambda sql: query_of_folder(logdir, sql))


def outcome(test, environment):
    """Runs tests/ROOM/NAME, a script or a program; returns whether it succeeded, and its number of checks (None: not
    printed). Prints how it ended, and its output if it failed."""
    command = ["python3", os.path.join(SOURCE, test)] if test.endswith(".py") else [os.path.join(BUILD, test)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    counts = re.findall(r"(\d+) checks|PASSED  \] (\d+) test", done.stdout)
    count = int("".join(counts[-1])) if counts else None
    store = environment.get("DPTRACK_TEST_STORE", "sqlite")
    print(f"{ {0: 'PASS', 77: 'SKIP'}.get(done.returncode, 'FAIL') }: {test} ({store}, {count} checks)", flush=True)
    if done.returncode not in (0, 77):
        print(done.stdout, flush=True)
    return done.returncode in (0, 77), count


def passes(test, environment, beside):
    """beside: the number of checks equals that on the default store, unless there is a reason."""
    good, count = outcome(test, environment)
    if beside and good and test not in COUNTS_DIFFER:
        default = {k: v for k, v in environment.items() if not k.startswith("DPTRACK_TEST_")}
        good, want = outcome(test, default)
        if count != want:
            print(f"FAIL: {test}: {count} checks on PostgreSQL, {want} on SQLite", flush=True)
        good = good and count == want
    return good


def main():
    why = reason()
    if why:
        print(f"postgresql: {why}")
        sys.exit(77)
    with Cluster() as c:
        environment = {**os.environ, "DPTRACK_TEST_STORE": "postgresql", "DPTRACK_TEST_SERVER": f"{c.folder}:{c.port}"}
        beside = "--beside" in sys.argv
        failed = [t for t in sys.argv[1:] if t != "--beside" and not passes(t, environment, beside)]
    print(f"postgresql: {'ok' if not failed else 'failed: ' + ' '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
