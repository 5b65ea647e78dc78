#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The complete team server: PostgreSQL with a synchronous standby, files in OpenStack Swift, two processes behind
HAProxy with the shipped configuration, set up by the commands of docs/guides/team.md. In order: the tutorial's
commands through the proxy, with the same answers from both processes; a restart of each process; an upgrade of the
database; a promotion of the standby. From the restarts on, clients write, read and upload, and everything acknowledged
is present at the end. No request may fail; during the promotion the answer may be 503, and the request is repeated.
--install installs what Swift needs.

Upgrades: there is only one version of the program, and no notion of an additive change. Covered: `dptrack db upgrade`
when there is nothing to do; an additive change of the tables (a table, an index, columns) under running processes, and
a restart of each on the result; the next version's number: running processes continue to serve, also on new
connections; an older process is refused at its start with one line; and in each restart this program plays the newer
one while the number is reset for it. Not covered: what a real newer program requires of the tables, and stores of
older versions (tests/team/together.py, migrate.py)."""
import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "build"))
for room in ("team", "train"):
    sys.path.insert(0, os.path.join(SRC, "tests", room))
import lib
from lib import check

import cluster
import faults
import helper
import load
import readme
import swift

PAUSE_S = 0.02  # between a client's requests, to spare the machine
ADDITIVE = """CREATE TABLE later (run_id bigint PRIMARY KEY, text text NOT NULL);
    CREATE INDEX artifact_later ON artifact (object); ALTER TABLE run ADD COLUMN later bigint;
    ALTER TABLE artifact ADD COLUMN later text NOT NULL DEFAULT ''"""


def bash(script, folder, env, timeout=60):
    """Runs a script of bash; returns its output. Every line must succeed."""
    done = subprocess.run(["bash", "-e"], input=script, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout)
    check(done.returncode == 0, f"exit {done.returncode}\n{script}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Site(faults.Databases):
    """The team server as docs/guides/team.md sets it up, with the addresses of the test."""

    def __init__(self, folder):
        super().__init__(lambda primary: primary.sql("postgres", "CREATE DATABASE t1"))
        self.folder, self.ending = folder, contextlib.ExitStack()
        self.ending.callback(super().close)
        with self.ending:  # unless all went well
            args, self.token = self.make()
            self.team = [self.process(args) for _ in range(2)]
            self.proxy = lib.Proxy(self.team)
            self.ending.callback(self.proxy.close)
            self.url = f"http://127.0.0.1:{self.proxy.port}"
            self.ending = self.ending.pop_all()

    def make(self):
        """Runs all lines of the guide except the last, which starts a process and supplies its flags."""
        script = readme.replaced(readme.commands("docs/guides/team.md", "\n## Several processes\n", "`web/deploy`"), (r"postgresql://\S+", f"'{self.address}'"), (r"0\.0\.0\.0", "127.0.0.1"),
                          (r"--drain 3", "--drain 2"))
        first, last = script.split("dptrack serve ")
        said = bash(first, self.folder, {**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]})
        token = re.search(r"dpt-\w+", said)
        assert token, f"the guide's commands printed {said!r}"
        return shlex.split(last, comments=True), token[0]

    def process(self, args):
        i = args.index("--artifacts")
        p = lib.Process(self.address, args[i + 1], *args[:i], *args[i + 2:])
        self.ending.callback(p.stop)
        return p

    def ports(self):
        return [self.proxy.port] + [p.port for p in self.team]

    def load(self, count=4):
        return load.Load(self.proxy.port, self.token, PAUSE_S, count)

    def tool(self, *args, code=0):
        """Runs a command on the database; returns its output."""
        env = {**os.environ, "DPTRACK_DB": self.address}
        done = subprocess.run([os.path.join(BUILD, "dptrack"), *args], env=env, capture_output=True, text=True, timeout=60)
        check(done.returncode == code, f"{' '.join(args)}: exit {done.returncode} {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def close(self):
        self.ending.close()


def environment(site, folder):
    """Variables of a user of the server: programs and curl know address and token."""
    with open(os.path.join(folder, ".curlrc"), "w", encoding="utf-8") as f:
        f.write(f'header = "Authorization: Bearer {site.token}"\nfail\nnoproxy = "*"\n')
    return helper.environment({"DPTRACK_TOKEN": site.token, "DPTRACK_URL": site.url, "ADDRESS": site.url, "CURL_HOME": folder,
                               "PATH": BUILD + ":" + os.environ["PATH"]})


def train(folder, env):
    """Two runs, and one that is killed and resumed, all uploaded through the proxy."""
    data = os.path.join(folder, "data")
    os.mkdir(data)
    helper.make_set(data, 512, 64)
    fashion = readme.commands("docs/tutorial.md", "\n## First runs\n", "Before you train").replace("/usr/share/datasets/fashion-mnist", data)
    day = readme.replaced(readme.commands("docs/tutorial.md", "\n## A training day\n", "Take the weights away"), (r"^DATA=.*$", "DATA=" + data),
                   (r"^(timeout.*) dptrain ", r"DPTRAIN_TEST_DIE=launcher:5 \1 %s " % helper.HOOKED), (r"--save-steps \d+", "--save-steps 2"))
    check("killed" in bash(fashion + day, folder, env), "the run is killed")


def asked(folder, env):
    """Output of the tutorial's export and of the commands; it must be equal at each address."""
    script = readme.replaced(readme.commands("docs/tutorial.md", "The same over REST", "\n## "), (r"^ADDRESS=.*$", ":"), (r"^RUN=.*$", ":")) + """
        curl -s "$ADDRESS/api/v1/export/runs.json?experiment=fashion"
        curl -s "$ADDRESS/api/v1/export/series.json?run=$RUN&key=train/loss"
        dptrack ls --url $ADDRESS
        dptrack compare --url $ADDRESS --experiment fashion
        dptrack compare --url $ADDRESS --why base ddp2
        dptrack show --url $ADDRESS day
        dptrack export --url $ADDRESS --experiment fashion --json
        dptrack export --url $ADDRESS --series --experiment tour --csv"""
    return bash(script, folder, env)


def files(site, folder, env):
    """Uploads through the proxy, downloads from the proxy and from each process."""
    with open(os.path.join(folder, "file"), "wb") as f:
        f.write(os.urandom(3000000))
    bash('curl -s -T file "$ADDRESS/api/v1/runs/$RUN/artifacts/a/file"', folder, env)
    for n, port in enumerate(site.ports()):
        address = f"http://127.0.0.1:{port}"
        bash(f'curl -s "{address}/api/v1/runs/$RUN/artifacts/a/file" -o down{n} && cmp file down{n}', folder, env)


def tour(site, folder):
    os.symlink(BUILD, os.path.join(folder, "build"))
    env = environment(site, folder)
    train(folder, env)
    table = bash('curl -s "$ADDRESS/api/v1/export/runs.csv?experiment=fashion"', folder, env).splitlines()
    check(len(table) == 3 and all(",finished," in line for line in table[1:]), f"two runs: {table}")
    env["RUN"] = table[1].split(",")[0]
    answers = [asked(folder, {**env, "ADDRESS": f"http://127.0.0.1:{port}"}) for port in site.ports()]
    check(answers.count(answers[0]) == len(answers), "proxy and processes give different answers")
    check(answers[0].count(",train/loss,") > 8, f"answers: {answers[0][-2000:]}")
    local = bash("dptrack export --logdir runs --series --experiment tour --csv", folder, env)
    check(answers[0].endswith(local), "the journal on disk has different points")
    files(site, folder, env)


def rolling(site):
    with site.load() as clients:
        for process in site.team:
            time.sleep(0.5)
            load.restart(process)
        clients.go_on(10)
    return (clients,)


def upgrade(site):
    with site.load() as clients:
        said = site.tool("db", "upgrade")
        check("is up to date" in said, f"db upgrade: {said}")
        clients.go_on(10)
        site.primary.sql("t1", f"BEGIN; {ADDITIVE}; COMMIT")
        clients.go_on(10)
        for process in site.team:
            load.restart(process)
            clients.go_on(10)
    return (clients,)


def version(site, number):
    site.primary.sql("t1", f"UPDATE meta SET value = '{number}' WHERE name = 'version'")


def newer(site):
    """The version number also changes while additional clients make the processes open new connections."""
    known = int(re.search(r"store version (\d+)", site.tool("db", "status"))[1])
    with site.load() as clients:
        version(site, known + 1)
        with site.load(12) as more:
            more.go_on(10)
        clients.go_on(10)
        said = site.tool("serve", "--port", "0", code=2)
        check(f"store of version {known + 1}" in said and said.count("\n") == 1, f"a start after the upgrade: {said}")
        for process in site.team:
            load.restart(process, lambda start: as_newer(site, known, start))
            clients.go_on(10)
        version(site, known)
        clients.go_on(10)
    return clients, more


def as_newer(site, known, start):
    """Starts a process as if it knew the raised number."""
    version(site, known)
    start()
    version(site, known + 1)


def promote(site):
    """503 is allowed now, and the request is repeated with a key; each point is stored once."""
    with site.load() as clients:
        for c in clients.clients:
            c.patient = True
        clients.go_on(10)
        time.sleep(0.5)  # the last request without a key is answered
        faults.promote_standby(site)
        clients.go_on(30)
    return (clients,)


def main():
    if "--install" in sys.argv[1:]:
        swift.install()
    why = swift.reason() or lib.proxy_reason()
    if why:
        print(f"team: {why}")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder, swift.Swift() as s3:
        os.environ.update({k: v for k, v in s3.environment().items() if k.startswith("AWS_")})
        s3.make_bucket("bucket")
        with contextlib.closing(Site(folder)) as site:
            whole(site, folder)
    lib.finish("team")


def whole(site, folder):
    began_s, loads = time.monotonic(), []
    tour(site, folder)
    print(f"team: the tutorial after {time.monotonic() - began_s:.1f} s", flush=True)
    for part in (rolling, upgrade, newer, promote):
        loads.extend(part(site))
        print(f"team: {part.__name__} after {time.monotonic() - began_s:.1f} s", flush=True)
    for clients in loads:
        for process in site.team:
            clients.judge(process.port)
    points, kept = (sum(n(c) for clients in loads for c in clients.clients) for n in (lambda c: c.points, lambda c: len(c.files)))
    print(f"team: {sum(c.asked() for c in loads)} requests, {len(lib.failures)} failed, {loads[-1].refused()} were 503 while the standby "
          f"took over; {points} points and {kept} files are present")


if __name__ == "__main__":
    main()
