# SPDX-License-Identifier: Apache-2.0
"""OpenStack Swift with its S3 interface (Debian's swift-proxy, -account, -container, -object, and memcached): one
server of each kind, all in one folder, for tests and benchmarks that need an object store of another project. `python3
swift.py` runs one until it is interrupted, and prints its variables."""
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ports import free_port

PYTHON = "/usr/bin/python3"  # has Debian's packages
PACKAGES = ("swift-proxy", "swift-account", "swift-container", "swift-object", "memcached")
ID, SECRET = "test:tester", "testing"

# Does what Debian's scripts do, with swift.conf in a folder of ours.
SERVER = """
import sys
from swift.common import utils
utils.set_swift_dir(sys.argv[1])
from swift.common.wsgi import run_wsgi
sys.exit(run_wsgi(sys.argv[2], sys.argv[3]))
"""

STORAGE = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
log_level = WARNING
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
replication_server = false
"""

PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = {workers}
user = {user}
swift_dir = {folder}
log_level = WARNING
[pipeline:main]
pipeline = catch_errors cache s3api tempauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
object_chunk_size = 1048576
client_chunk_size = 1048576
node_timeout = 60
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {secret} .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
"""


def reason():
    """The reason why Swift is unavailable; None if it is available."""
    missing = [name for name in ("swift-proxy-server", "swift-object-server", "swift-ring-builder", "memcached") if not shutil.which(name)]
    return f"Swift is not installed ({', '.join(PACKAGES)})" if missing else None


def install():
    """For commands that are long anyway: installs missing packages, as root or by sudo."""
    if not reason():
        return
    ask = ["apt-get", "install", "-y", "--no-install-recommends", *PACKAGES]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(ask if os.geteuid() == 0 else ["sudo", *ask], check=True, env=environment, stdout=subprocess.DEVNULL)


class Swift:
    def __init__(self, folder=None, workers=0):
        self.own = tempfile.mkdtemp(prefix="dptrack-swift.") if folder is None else None
        self.folder = folder or self.own
        self.ports = {kind: free_port() for kind in ("account", "container", "object", "proxy", "memcached")}
        self.url = f"http://127.0.0.1:{self.ports['proxy']}"
        self.processes = []
        os.makedirs(os.path.join(self.folder, "devices", "d1"), exist_ok=True)
        self.configure(workers)
        self.start()

    def path(self, name):
        return os.path.join(self.folder, name)

    def configure(self, workers):
        values = {"user": pwd.getpwuid(os.geteuid()).pw_name, "folder": self.folder, "secret": SECRET, "workers": workers,
                  "memcached": self.ports["memcached"]}
        with open(self.path("swift.conf"), "w", encoding="utf-8") as f:
            f.write("[swift-hash]\nswift_hash_path_suffix = ours\nswift_hash_path_prefix = ours\n[storage-policy:0]\nname = one\ndefault = yes\n")
        for kind in ("account", "container", "object"):
            with open(self.path(f"{kind}.conf"), "w", encoding="utf-8") as f:
                f.write(STORAGE.format(kind=kind, port=self.ports[kind], **values))
            ring = self.path(f"{kind}.builder")
            for words in (("create", "4", "1", "0"), ("add", f"r1z1-127.0.0.1:{self.ports[kind]}/d1", "1"), ("rebalance",)):
                subprocess.run(["swift-ring-builder", ring, *words], check=False, capture_output=True)
            if not os.path.exists(self.path(f"{kind}.ring.gz")):
                raise AssertionError(f"no ring of {kind}")
        with open(self.path("proxy.conf"), "w", encoding="utf-8") as f:
            f.write(PROXY.format(port=self.ports["proxy"], **values))

    def start(self):
        self.log = open(self.path("log"), "ab")
        as_user = ["-u", pwd.getpwuid(os.geteuid()).pw_name]
        self.run("memcached", "-l", "127.0.0.1", "-p", str(self.ports["memcached"]), *as_user)
        for kind in ("account", "container", "object", "proxy"):
            self.run(PYTHON, "-c", SERVER, self.folder, self.path(f"{kind}.conf"), f"{kind}-server")
        end = time.monotonic() + 60
        while not self.answers():
            if time.monotonic() > end or any(p.poll() is not None for p in self.processes):
                self.stop()
                with open(self.path("log"), encoding="utf-8", errors="replace") as f:
                    raise AssertionError(f"Swift did not start: {f.read()[-2000:]}")
            time.sleep(0.1)

    def run(self, *command):
        self.processes.append(subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True))

    def answers(self):
        """Whether all servers answer: the proxy ignores a server that did not answer for a minute."""
        try:
            for port in self.ports.values():
                socket.create_connection(("127.0.0.1", port), timeout=2).close()
            return True
        except OSError:
            return False

    def environment(self, **more):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        return {**clean, "AWS_ENDPOINT_URL_S3": self.url, "AWS_ACCESS_KEY_ID": ID, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nonexistent", "no_proxy": "*", **more}

    def token(self):
        """A token of Swift's own interface."""
        ask = urllib.request.Request(self.url + "/auth/v1.0", headers={"X-Auth-User": ID, "X-Auth-Key": SECRET})
        with urllib.request.urlopen(ask, timeout=30) as reply:
            return reply.headers["X-Auth-Token"]

    def curl(self, *args):
        """Returns the curl command for a request; its last argument is BUCKET/KEY."""
        return ["curl", "-sS", "--fail", "--noproxy", "*", "-H", f"X-Auth-Token: {self.token()}", *args[:-1],
                f"{self.url}/v1/AUTH_test/{args[-1]}"]

    def make_bucket(self, name):
        subprocess.run(self.curl("-X", "PUT", name), check=True, stdout=subprocess.DEVNULL)

    def stop(self):
        for p in reversed(self.processes):
            try:
                os.killpg(p.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        for p in self.processes:
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
        self.processes = []
        self.log.close()
        if self.own:
            shutil.rmtree(self.own, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def main():
    install()
    with Swift() as swift:
        swift.make_bucket("shop")
        for name, value in swift.environment().items():
            if name.startswith("AWS_"):
                print(f"export {name}='{value}'", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
