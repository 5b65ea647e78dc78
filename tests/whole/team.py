#!/usr/bin/env python3
"""The team server as a whole: PostgreSQL with a synchronous standby, files in OpenStack Swift, two processes behind HAProxy with the
shipped configuration, made by the commands of docs/guides/team.md. In turn: the tutorial's commands of who uses it, through the proxy, with the same
answers from both processes; each process restarted; the database upgraded; the standby promoted. From the restarts on clients write,
read and upload, and everything that was acknowledged is there at the end. No request may fail; while the standby takes over the
answer may be 503, and is asked for again. With --install what Swift needs is installed.

Of an upgrade there is only one program here, and no notion of an additive change in it. Covered: `dptrack db upgrade` where there is
nothing to do; a change of the tables as an additive one makes (a table, an index, columns) under the processes that run, and a
restart of each on what it made; the next version's number: the processes that run serve on, also on connections that they make
later, one of the version before that is started is refused in a line, and in each restart this program plays the newer one while the
number is put back for it. Not covered: what a real newer program asks of the tables, and stores of older versions
(tests/team/together.py, migrate.py)."""
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

PAUSE_S = 0.02  # of a client: the machine is small
ADDITIVE = """CREATE TABLE later (run_id bigint PRIMARY KEY, text text NOT NULL);
    CREATE INDEX artifact_later ON artifact (object); ALTER TABLE run ADD COLUMN later bigint;
    ALTER TABLE artifact ADD COLUMN later text NOT NULL DEFAULT ''"""


def bash(script, folder, env, timeout=60):
    """What it prints, of all its lines."""
    done = subprocess.run(["bash", "-e"], input=script, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout)
    check(done.returncode == 0, f"exit {done.returncode}\n{script}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Site(faults.Databases):
    """The team server as docs/guides/team.md makes it, with the addresses of the test."""

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
        """All lines of the guide but the last, which is how a process is started: its flags."""
        script = readme.replaced(readme.commands("docs/guides/team.md", "\n## Several processes\n", "`web/deploy`"), (r"postgresql://\S+", f"'{self.address}'"), (r"0\.0\.0\.0", "127.0.0.1"),
                          (r"--drain 3", "--drain 2"))
        first, last = script.split("dptrack serve ")
        said = bash(first, self.folder, {**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]})
        token = re.search(r"dpt_\w+", said)
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
        """A command on the database; what it says."""
        env = {**os.environ, "DPTRACK_DB": self.address}
        done = subprocess.run([os.path.join(BUILD, "dptrack"), *args], env=env, capture_output=True, text=True, timeout=60)
        check(done.returncode == code, f"{' '.join(args)}: exit {done.returncode} {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def close(self):
        self.ending.close()


def environment(site, folder):
    """Of somebody who works with the server: programs and curl know address and token."""
    with open(os.path.join(folder, ".curlrc"), "w", encoding="utf-8") as f:
        f.write(f'header = "Authorization: Bearer {site.token}"\nfail\nnoproxy = "*"\n')
    return helper.environment({"DPTRACK_TOKEN": site.token, "DPTRACK_URL": site.url, "ADDRESS": site.url, "CURL_HOME": folder})


def train(folder, env):
    """Two runs, and one that is killed and goes on, all reported to the proxy."""
    data = os.path.join(folder, "data")
    os.mkdir(data)
    helper.make_set(data, 512, 64)
    fashion = readme.commands("docs/tutorial.md", "\n## First runs\n", "Before you train").replace("/usr/share/datasets/fashion-mnist", data)
    day = readme.replaced(readme.commands("docs/tutorial.md", "\n## A training day\n", "Take the weights away"), (r"^DATA=.*$", "DATA=" + data),
                   (r"^timeout ", "DPTRAIN_TEST_DIE=launcher:5 timeout "), (r"--save-steps \d+", "--save-steps 2"))
    check("killed" in bash(fashion + day, folder, env), "the run that is killed")


def asked(folder, env):
    """What the tutorial's export and the commands say; each address has to say the same."""
    script = readme.commands("docs/tutorial.md", "The same over REST", "\n## ") + """
        curl -s "$ADDRESS/api/v1/export/runs.json?experiment=fashion"
        curl -s "$ADDRESS/api/v1/export/series.json?run=$RUN&key=train/loss"
        build/dptrack ls --url $ADDRESS
        build/dptrack compare --url $ADDRESS --experiment fashion
        build/dptrack compare --url $ADDRESS --why base ddp2
        build/dptrack show --url $ADDRESS day
        build/dptrack export --url $ADDRESS --experiment fashion --json
        build/dptrack export --url $ADDRESS --series --experiment tour --csv"""
    return bash(script, folder, env)


def files(site, folder, env):
    """Up through the proxy, down through everybody."""
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
    check(answers.count(answers[0]) == len(answers), "proxy and processes answer otherwise")
    check(answers[0].count(",train/loss,") > 8, f"answers: {answers[0][-2000:]}")
    local = bash("build/dptrack export --logdir runs --series --experiment tour --csv", folder, env)
    check(answers[0].endswith(local), "the journal on disk holds other points")
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
    """The number is another one, too, while more clients than before make the processes connect again."""
    known = int(re.search(r"store version (\d+)", site.tool("db", "status"))[1])
    with site.load() as clients:
        version(site, known + 1)
        with site.load(12) as more:
            more.go_on(10)
        clients.go_on(10)
        said = site.tool("serve", "--port", "0", code=2)
        check(f"store of version {known + 1}" in said and said.count("\n") == 1, f"started behind the upgrade: {said}")
        for process in site.team:
            load.restart(process, lambda start: as_newer(site, known, start))
            clients.go_on(10)
        version(site, known)
        clients.go_on(10)
    return clients, more


def as_newer(site, known, start):
    """Starts as a program does that knows the raised number."""
    version(site, known)
    start()
    version(site, known + 1)


def promote(site):
    """503 is an answer now, and asked again with a key; each point counts once."""
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
          f"took over; {points} points and {kept} files are there")


if __name__ == "__main__":
    main()
