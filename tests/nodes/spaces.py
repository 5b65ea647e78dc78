# SPDX-License-Identifier: Apache-2.0
"""Network namespaces as the machines of a job: each has its own loopback and one address on a wire between them."""
import os
import shutil
import subprocess
import time

from helper import DPTRAIN, environment, program, skip


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)


class Spaces:
    """Two namespaces; skips the test where they are not permitted."""

    def __init__(self):
        self.names = ["dpt%d%s" % (os.getpid(), c) for c in "ab"]
        self.address = ["10.77.0.1", "10.77.0.2"]
        self.wire = ["dpta", "dptb"]

    def __enter__(self):
        if os.geteuid() or not shutil.which("ip"):
            skip("network namespaces need root and ip (Debian: iproute2)")
        for name in self.names:
            p = ip("netns", "add", name)
            p = p if p.returncode else ip("netns", "exec", name, "true")  # needs a root that is a mount point
            if p.returncode:
                self.__exit__()
                skip("network namespaces are not permitted: " + p.stderr.strip())
        p = ip("link", "add", self.wire[0], "netns", self.names[0], "type", "veth", "peer", "name", self.wire[1], "netns", self.names[1])
        if p.returncode:
            self.__exit__()
            skip("no wire between network namespaces: " + p.stderr.strip())
        for i, name in enumerate(self.names):
            ip("-n", name, "addr", "add", self.address[i] + "/24", "dev", self.wire[i])
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", self.wire[i], "up")
        self.wait_up()
        return self

    def wait_up(self):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not all("state UP" in ip("-n", n, "link", "show", w).stdout for n, w in zip(self.names, self.wire)):
            time.sleep(0.02)

    def __exit__(self, *unused):
        for name in self.names:
            ip("netns", "del", name)
            shutil.rmtree(os.path.join("/etc/netns", name), ignore_errors=True)

    def give_names(self, hosts):
        """Gives the machines these names, by which they find each other."""
        self.hosts = hosts
        for name in self.names:
            os.makedirs(os.path.join("/etc/netns", name), exist_ok=True)
            with open(os.path.join("/etc/netns", name, "hosts"), "w", encoding="utf-8") as f:
                f.writelines("%s %s\n" % pair for pair in [("127.0.0.1", "localhost"), *zip(self.address, hosts)])

    def named(self, i, *words):
        """A command on machine i, with the machine's host name."""
        return self.command(i, "unshare", "--uts", "sh", "-c", 'hostname %s; exec "$@"' % self.hosts[i], "sh", *words)

    def command(self, i, *words):
        return ["ip", "netns", "exec", self.names[i], *map(str, words)]

    def start(self, i, *flags, env=None, before=(), **more):
        return subprocess.Popen(self.command(i, *before, program(env), *flags), env=environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                universal_newlines=True, stdin=subprocess.DEVNULL, **more)

    def link(self, i, state):
        ip("-n", self.names[i], "link", "set", self.wire[i], state)

    def sent(self, i):
        """Bytes sent over the wire."""
        return int(subprocess.run(self.command(i, "cat", "/sys/class/net/%s/statistics/tx_bytes" % self.wire[i]), stdout=subprocess.PIPE,
                                  universal_newlines=True).stdout)


def has_transport(name):
    folder = os.path.dirname(DPTRAIN)
    return any(os.path.exists(os.path.join(folder, d, "dptrain_%s.so" % name)) for d in (".libs", "", "../lib/dptrack"))
