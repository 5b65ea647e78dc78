# SPDX-License-Identifier: Apache-2.0
"""What a team server discloses: over TLS, with passwords for the database and the object store, it connects only to
these two (by strace); no password is in an argument, in its log or in a reply, whatever fails; each refused start
prints one line."""
import json
import os
import secrets
import shutil
import ssl
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path += [os.path.join(HERE, ".."), os.path.join(HERE, "..", "data")]
import lib
from lib import check, until

import certificate
import cluster
import s3server
import strace

PASSWORD, READER = ("planted-" + secrets.token_hex(16) for _ in range(2))
SECRETS = (PASSWORD, READER, s3server.SECRET)
FILES = "s3://shop/team"
ROLES = (f"CREATE ROLE dptrack LOGIN PASSWORD '{PASSWORD}'", f"CREATE ROLE reader LOGIN PASSWORD '{READER}'",
         "CREATE DATABASE t1 OWNER dptrack", "CREATE DATABASE t2", "ALTER SYSTEM SET ssl = on")


def check_no_secret(text, what):
    """Checks that the text contains no secret."""
    check("planted" not in text and not any(s in text for s in SECRETS), f"a secret is in {what}: {text}")


class Site:
    """A cluster and an object store; each requires a password, and has its own certificate."""

    def __init__(self, db, folder):
        self.db = db
        self.ca, key = certificate.make(folder, "db")
        self.other, other_key = certificate.make(folder, "s3")
        for source, name in ((self.ca, "server.crt"), (key, "server.key")):
            path = shutil.copy(source, os.path.join(db.data, name))
            os.chmod(path, 0o600)
            if os.getuid() == 0:
                shutil.chown(path, "nobody", "nogroup")
        with open(os.path.join(db.data, "pg_hba.conf"), "w", encoding="utf-8") as f:
            f.write("local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
        for statement in (*ROLES, "SELECT pg_reload_conf()"):
            db.sql("postgres", statement)
        os.makedirs(os.path.join(folder, "bucket", "shop"))
        self.s3 = s3server.S3(os.path.join(folder, "bucket"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.other, other_key)
        self.s3.socket = context.wrap_socket(self.s3.socket, server_side=True)
        self.s3.url = self.s3.url.replace("http:", "https:")
        self.places = {f"127.0.0.1:{db.port}", f"127.0.0.1:{self.s3.server_address[1]}"}

    def address(self, user="dptrack", ca=None, name="t1"):
        return f"postgresql://{user}@localhost:{self.db.port}/{name}?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={ca or self.ca}"

    def environment(self, **more):
        """A valid environment. The metadata service of a machine's role is not disabled, but not needed."""
        clean = {k: v for k, v in self.s3.environment().items() if not k.startswith(("DPTRACK_", "AWS_EC2"))}
        return {**clean, "PGPASSWORD": PASSWORD, "AWS_CA_BUNDLE": self.other, **more}

    def tool(self, *args, **env):
        done = subprocess.run([cluster.PROGRAM, *args], capture_output=True, text=True, env=self.environment(**env), timeout=60)
        return done.returncode, done.stdout + done.stderr

    def serve(self, address=None, files=FILES, **env):
        return self.tool("serve", "--port", "0", "--db", address or self.address(), "--artifacts", files, **env)


def refusals(site):
    """Each refused start prints one line with the reason."""
    reader = {"PGPASSWORD": READER}
    for what, words, (code, text) in (
            ("another CA of the database", "certificate verify failed", site.serve(site.address(ca=site.other))),
            ("a wrong password", "password authentication failed", site.serve(PGPASSWORD="planted-wrong")),
            ("no password", "no password supplied", site.serve(PGPASSWORD="")),
            ("no right to read", "permission denied", site.serve(site.address("reader"), **reader)),
            ("no right to make tables", "permission denied", site.tool("db", "init", "--db", site.address("reader", name="t2"), **reader)),
            ("another CA of the object store", "certificate", site.serve(AWS_CA_BUNDLE=site.ca)),
            ("a wrong secret of the object store", "SignatureDoesNotMatch", site.serve(AWS_SECRET_ACCESS_KEY="planted-wrong")),
            ("another bucket", "not found", site.serve(files="s3://nobody"))):
        check(code != 0 and words in text and text.count("\n") == 1, f"{what}: {code} {text}")
        check_no_secret(text, what)


def readable(process, boss):
    """Yields the replies of everything that can be read without naming a run."""
    with open(os.path.join(cluster.SOURCE, "schema", "api", "openapi.json"), encoding="utf-8") as f:
        paths = json.load(f)["paths"]
    for path in (p for p, methods in paths.items() if "get" in methods and "{" not in p and p != "/api/v1/events"):
        yield path, process.request("GET", path, headers=boss)[1].decode(errors="replace")


def work(process, boss):
    """Creates a run with a point and a file; yields the server's replies about it."""
    run = process.json("POST", "/api/v1/runs", {"experiment": "e", "name": "r"}, headers=boss)[1]["id"]
    at = f"/api/v1/runs/{run}"
    for method, path, body in (("POST", "/metrics", {"points": [{"key": "k", "step": 1, "value": 1}]}), ("PUT", "/artifacts/a", os.urandom(100000)),
                               ("GET", "/artifacts/a", None), ("GET", "", None), ("GET", "/artifacts", None)):
        status, reply = process.request(method, at + path, body, headers=boss)
        check(status == 200, f"{method} {path}: {status} {reply[:200]}")
        yield method + path, reply.decode(errors="replace")
    status, reply = process.request("POST", "/api/v1/gc", {"keep_objects_days": 0}, headers=boss)
    check(status == 200, f"gc: {status} {reply}")


def failing(site, process, boss):
    """Yields replies while each of the two is down; afterwards the role's password is changed, so new connections
    fail."""
    run = process.json("POST", "/api/v1/runs", {"experiment": "e", "name": "f"}, headers=boss)[1]["id"]
    site.s3.stop()
    status, reply = process.request("PUT", f"/api/v1/runs/{run}/artifacts/b", b"x" * 100000, headers=boss)
    check(status == 503, f"a file without its store: {status} {reply}")
    yield "a file without its store", reply.decode()
    site.db.sql("postgres", "ALTER ROLE dptrack PASSWORD 'planted-later'")
    site.db.sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'dptrack'")
    check(until(20, lambda: process.request("GET", "/ready")[0] == 503), "ready without the database")
    for method, path, body in (("POST", "/api/v1/runs", {"experiment": "e"}), ("GET", "/api/v1/runs", None), ("GET", "/ready", None)):
        status, reply = process.request(method, path, body, headers=boss)
        check(status == 503, f"{method} {path} without the database: {status} {reply}")
        yield path, reply.decode()
    yield from readable(process, boss)


def outside(site, folder):
    """Runs a server under strace from start to stop."""
    trace = strace.Traced(cluster.PROGRAM, folder)
    boss = {"Authorization": "Bearer " + cluster.add_token(lambda sql: site.db.sql("t1", sql))}
    os.environ.clear()
    os.environ.update(site.environment())
    program, cluster.PROGRAM = cluster.PROGRAM, trace.program
    process = lib.Process(site.address(), FILES)
    cluster.PROGRAM = program
    for name, reply in (*work(process, boss), *readable(process, boss), *failing(site, process, boss)):
        check_no_secret(reply, f"the reply of {name}")
        check(boss["Authorization"][7:] not in reply, f"the token is in the reply of {name}")
    with open(f"/proc/{process.process.pid}/cmdline", encoding="utf-8") as f:
        check_no_secret(f.read(), "its arguments")
    process.stop()
    check_no_secret(process.serving.stderr(), "its log")
    check(until(10, trace.ended), "the end of the trace")
    check(trace.reached() == site.places, f"connected to {trace.reached()}, not to {site.places}")
    check_no_secret("".join(trace.executed()), "the programs it executes")


def reason(folder):
    return cluster.reason() or strace.reason(folder) or (None if shutil.which("openssl") else "openssl is not installed")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-team.") as folder:
        why = reason(folder)
        if why:
            print(f"outside: {why}")
            sys.exit(77)
        with cluster.Cluster() as db:
            site = Site(db, folder)
            done = site.tool("db", "init", "--db", site.address())
            check(done[0] == 0, f"db init: {done}")
            refusals(site)
            outside(site, folder)
    lib.finish("outside")


main()
