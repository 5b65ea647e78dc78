# SPDX-License-Identifier: Apache-2.0
"""Bare Debian roots in a cache folder, and commands in them that see nothing else of this machine."""
import atexit
import contextlib
import fcntl
import os
import resource
import shutil
import subprocess
import sys
import time

import settings

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dptrack-fresh")
CODENAMES = {"11": "bullseye", "12": "bookworm", "13": "trixie", "sid": "sid"}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # Debian's names
MACHINES = {"x86_64": 62, "aarch64": 183}  # in the head of ELF files
BINFMT = "/proc/sys/fs/binfmt_misc"
WEEK_S = 7 * 24 * 3600
USER = "newcomer"
USER_PATH = "/usr/local/bin:/usr/bin:/bin"
ROOT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOOLS = {"debootstrap": "debootstrap", "unshare": "util-linux", "pivot_root": "util-linux", "git": "git", "openssl": "openssl"}


class Unavailable(Exception):
    """The reason why no root can be created on this machine."""


def output(words):
    """Returns a command's exit code and output."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    return done.returncode, done.stdout.strip()


def namespaces(*words):
    return ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", *words]


def require():
    if os.geteuid() != 0:
        raise Unavailable("roots of another Debian need root")
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            raise Unavailable(f"{tool} is not installed (Debian: {package})")
    code, said = output(namespaces("mount", "-t", "tmpfs", "none", "/mnt"))
    if code:
        raise Unavailable("namespaces and mounts are not allowed here: " + said)
    if output(["git", "-C", TOP, "rev-parse", "-q", "--verify", "HEAD"])[0]:
        raise Unavailable(TOP + " is not a git checkout")


def processor_s():
    """Processor time of all processes that have ended: on a busy machine it is more meaningful than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def step(what):
    started, used = time.monotonic(), processor_s()
    yield
    print(f"fresh: {what}: {time.monotonic() - started:.0f} s, processor {processor_s() - used:.0f} s", flush=True)


def remove(folder):
    """Removes a folder; its mounts exist only in other namespaces."""
    subprocess.run(["rm", "-rf", "--one-file-system", folder], check=True)


def copied(source, target):
    remove(target)
    subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)


def usable(folder, recipe):
    try:
        with open(folder + ".recipe", encoding="utf-8") as f:
            return f.read() == recipe and time.time() - os.stat(folder).st_mtime < WEEK_S
    except OSError:
        return False


def kept(name, recipe, make):
    """A folder in the cache; make(folder) creates it if there is none of this recipe and week. Other calls wait
    meanwhile."""
    os.makedirs(CACHE, exist_ok=True)
    folder = os.path.join(CACHE, name)
    with open(folder + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not usable(folder, recipe):
            remove(folder)
            remove(folder + ".part")
            with step("made " + name):
                make(folder + ".part")
            os.utime(folder + ".part")
            os.rename(folder + ".part", folder)
            settings.write(folder, ".recipe", recipe)
    return folder


def emulate(processor):
    """Lets the kernel start programs of another processor until this process ends; it opens the emulator now, so roots need no copy."""
    emulator = shutil.which(f"qemu-{processor}-static")
    if not emulator:
        raise Unavailable(f"programs for {processor} cannot run here: no qemu-{processor}-static (Debian: qemu-user-static)")
    if os.path.exists(f"{BINFMT}/qemu-{processor}"):
        return
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + bytes([2, 0, MACHINES[processor], 0])
    mask = b"\xff" * 7 + b"\x00" + b"\xff" * 8 + b"\xfe\xff\xff\xff"
    words = ["", f"qemu-{processor}", "M", "", *("".join(f"\\x{byte:02x}" for byte in one) for one in (head, mask)), emulator, "F"]
    try:
        with open(BINFMT + "/register", "w", encoding="ascii") as f:
            f.write(":".join(words))
        atexit.register(lambda: settings.write(BINFMT, f"/qemu-{processor}", "-1"))
    except OSError as why:
        raise Unavailable(f"programs for {processor} cannot run here: {why}") from None


def bootstrapped(codename, processor, folder):
    mirror = settings.apt_sources(codename)[0].split()[1]
    code, said = output(["debootstrap", "--variant=minbase", "--arch", ARCHITECTURES[processor], "--keyring", settings.KEYRING, codename, folder,
                         mirror])
    if code:
        raise Unavailable(f"debootstrap {codename} ({processor}) from {mirror}: " + said.rpartition("\n")[2])


class Root:
    """An isolated machine: a copy of a bare Debian, or of a root with added packages."""

    def __init__(self, folder, user="root"):
        self.folder, self.user = folder, user
        self.home = "/root" if user == "root" else "/home/" + user
        self.variables = settings.environment()
        self.binds = [f"{path}:{path}" for path in settings.folders()]

    def command(self, words, user=None):
        """Returns the arguments of a process that runs `words` on this machine, in the home of its user or of
        `user`."""
        user = user or self.user
        home = self.home if user == self.user else "/root"
        values = {**self.variables, "HOME": home, "USER": user, "LOGNAME": user, "LANG": "C.UTF-8", "TERM": "dumb",
                  "PATH": ROOT_PATH if user == "root" else USER_PATH}
        run = ["env", "-i", *(f"{name}={value}" for name, value in values.items()),
               "sh", "-c", f'cd {home} && exec "$@"', "sh", *words]
        if user != "root":
            run = ["runuser", "-u", user, "--", *run]
        return namespaces("sh", os.path.join(HERE, "enter.sh"), self.folder, *self.binds, "--", *run)

    def run(self, words, log):
        """Returns the exit code; output goes to the terminal and the log."""
        with subprocess.Popen(self.command(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            try:
                for block in iter(lambda: os.read(process.stdout.fileno(), 65536), b""):
                    log.write(block)
                    sys.stdout.buffer.write(block)
                    sys.stdout.flush()
                return process.wait()
            except BaseException:
                process.kill()  # and everything that runs in the root
                raise

    def quietly(self, script):
        """Runs a shell script as root, silent unless it fails."""
        code, said = output(self.command(["sh", "-ec", script], "root"))
        if code:
            raise Unavailable(f"in {self.folder}: {script}: " + "\n".join(said.splitlines()[-5:]))

    def install(self, packages):
        self.quietly("export DEBIAN_FRONTEND=noninteractive; apt-get update -qq; "
                     "apt-get install -qq -y --no-install-recommends " + " ".join(packages))

    def add_user(self):
        self.install(["sudo"])
        self.quietly(f"useradd -m -s /bin/bash {self.user}; "
                     f"echo '{self.user} ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/{self.user}")

    def clone(self):
        """Clones the checked-out commit, without uncommitted changes."""
        place = self.folder + self.home + "/dptrack"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", "--no-checkout", TOP, place], check=True)
        head = output(["git", "-C", TOP, "rev-parse", "HEAD"])[1]
        subprocess.run(["git", "-C", place, "checkout", "--quiet", "-B", "main", head], check=True)
        self.quietly(f"chown -R {self.user}: {self.home}")
        changed = output(["git", "-C", TOP, "status", "--porcelain"])[1]
        print(f"fresh: cloned commit {head[:10]}" + (", without uncommitted changes" if changed else ""), flush=True)


def base(release, processor=os.uname().machine):
    if processor == os.uname().machine:
        return kept("debian-" + release, "", lambda folder: bootstrapped(CODENAMES[release], processor, folder))
    emulate(processor)
    return kept(f"debian-{release}-{ARCHITECTURES[processor]}", "", lambda folder: bootstrapped(CODENAMES[release], processor, folder))


def machine(release, name, user="root", source=None, processor=os.uname().machine):
    """Creates a root for the case `name`."""
    folder = os.path.join(CACHE, "roots", name)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    copied(source or base(release, processor), folder)
    settings.apply(folder, CODENAMES[release])
    root = Root(folder, user)
    if user != "root":
        root.add_user()
    return root
