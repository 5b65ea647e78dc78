# SPDX-License-Identifier: Apache-2.0
"""unit.py UNIT ADDRESS: starts a service as its systemd unit says, on a machine where no systemd runs: user, variables, working folder,
state folder, umask, read-only root, no capabilities. It must answer at ADDRESS, write nowhere else, and end with 0 at SIGTERM. The
filter of system calls is installed by libseccomp; that of address families is systemd's own and is not applied."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

MOUNTS = """mount --make-rprivate /
mount --bind {state} {state}
mount -o remount,ro,bind /
mount -t tmpfs -o mode=1777 tmpfs /tmp
exec "$@"
"""


FILTER = """import ctypes, os, sys
count = int(sys.argv[1])
lib = ctypes.CDLL("libseccomp.so.2")
lib.seccomp_init.restype, lib.seccomp_init.argtypes = ctypes.c_void_p, [ctypes.c_uint32]
lib.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
lib.seccomp_load.argtypes = [ctypes.c_void_p]
found = lib.seccomp_init(0x00050000 | 1)  # SCMP_ACT_ERRNO(EPERM)
for name in sys.argv[2:2 + count]:
    number = lib.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        assert not lib.seccomp_rule_add(found, 0x7fff0000, number, 0)  # SCMP_ACT_ALLOW
assert not lib.seccomp_load(found)
os.execv(sys.argv[2 + count], sys.argv[2 + count:])
"""


def members(word):
    """The system calls of a word of SystemCallFilter: @ and the name of a set, or one call."""
    if not word.startswith("@"):
        return {word}
    text = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", word], capture_output=True, text=True, check=True).stdout
    lines = {line.strip() for line in text.splitlines()[1:]}
    return set().union(*(members(line) for line in lines if line and not line.startswith("#")))


def allowed(settings):
    """The system calls that the unit allows: the first filter lists them, a later one with ~ takes some away."""
    assert settings["SystemCallErrorNumber"] == ["EPERM"]
    found = set()
    for value in settings["SystemCallFilter"]:
        calls = set().union(*map(members, value.removeprefix("~").split()))
        found = found - calls if value.startswith("~") else found | calls
    return sorted(found)


def filtered(settings, words):
    if not shutil.which("systemd-analyze"):
        print("unit: systemd-analyze, which knows the sets of system calls, is not installed: no filter")
        return words
    calls = allowed(settings)
    return [sys.executable, "-c", FILTER, str(len(calls)), *calls, *words]


def read_unit(path):
    """{setting: [values]} of the section Service."""
    settings = {}
    with open(path, encoding="utf-8") as f:
        section = f.read().partition("[Service]")[2].partition("\n[")[0]
    for name, value in re.findall(r"^(\w+)=(.*)$", section, re.MULTILINE):
        settings.setdefault(name, []).append(value)
    return settings


def variables(settings):
    found = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    for line in settings.get("Environment", []):
        found.update(word.split("=", 1) for word in shlex.split(line))
    for path in settings.get("EnvironmentFile", []):
        with open(path.removeprefix("-"), encoding="utf-8") as f:
            found.update(word.split("=", 1) for word in shlex.split(f.read(), comments=True))
    return found


def words_of(command, values):
    """${NAME} is a part of a word, $NAME as a word of its own is split."""
    words = []
    for word in shlex.split(command):
        whole = re.fullmatch(r"\$(\w+)", word)
        words += shlex.split(values.get(whole[1], "")) if whole else [re.sub(r"\$\{(\w+)\}", lambda m: values.get(m[1], ""), word)]
    return words


def confined(settings, words):
    """The command in a mount namespace of its own, as the unit's user."""
    user, group = settings["User"][0], settings["Group"][0]
    state = "/var/lib/" + settings["StateDirectory"][0]
    assert settings["ProtectSystem"] == ["strict"] and settings["NoNewPrivileges"] == ["yes"] and settings["CapabilityBoundingSet"] == [""]
    drop = ["setpriv", "--reuid", user, "--regid", group, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    return ["unshare", "--mount", "sh", "-ec", MOUNTS.format(state=state), "sh", *drop, *filtered(settings, words)]


def answer(address, process):
    for _ in range(200):
        try:
            with urllib.request.urlopen(address + "/health", timeout=10) as reply:
                return reply.status
        except urllib.error.URLError:
            assert process.poll() is None, f"the service ended with {process.returncode}"
            time.sleep(0.1)
    raise AssertionError(f"no answer at {address}")


def main(path, address):
    settings = read_unit(path)
    values = variables(settings)
    values["DPTRACK_LOGDIR"] = runs = "/var/lib/%s/unit" % settings["StateDirectory"][0]  # of its own
    options = {"env": values, "cwd": settings["WorkingDirectory"][0], "umask": int(settings["UMask"][0], 8)}
    for command in settings.get("ExecStartPre", []):
        subprocess.run(confined(settings, words_of(command, values)), check=True, **options)
    outside = subprocess.run(confined(settings, ["/usr/bin/touch", "/etc/default/written"]), capture_output=True, check=False, **options)
    assert outside.returncode, "the service could write outside its state folder"
    with subprocess.Popen(confined(settings, words_of(settings["ExecStart"][0], values)), **options) as process:
        try:
            assert answer(address, process) == 200
            process.terminate()
            code = process.wait(timeout=float(settings["TimeoutStopSec"][0]))
        finally:
            process.kill()
    assert code == 0, f"exit code {code} at SIGTERM"
    modes = {os.stat(os.path.join(runs, name)).st_mode & 0o007 for name in os.listdir(runs)}
    assert modes == {0}, f"the world can read files in {runs}: {modes}"
    assert not os.stat(runs).st_mode & 0o007, "the world can read " + runs
    shutil.rmtree(runs)
    print("unit: started as its user, answered, stopped")


main(*sys.argv[1:])
