#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./quickstart on a small data set, with a build folder whose make compiles nothing: progress on a terminal and in a
log, a page that is served before the trainings start, a second call, a port in use, ctrl-C and other signals, a
resumed training. From tests/setup.sh: packages with and without sudo, and when configure runs again."""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request

from serve import BUILD, SRC, until
sys.path.insert(0, os.path.join(SRC, "tests", "train"))
import helper  # noqa: E402

STEPS = 40
CONFIGURE = """#!/bin/sh
echo "configure $*" >>../calls
cat >config.status <<'E'
#!/bin/sh
[ "${1-}" != --recheck ] || echo recheck >>../calls
E
chmod +x config.status
: >config.h
cat >Makefile <<'E'
quickstart-server: $(addprefix server-,STEPS)
quickstart-trainer: $(addprefix trainer-,STEPS)
server-% trainer-%:
	@echo "  CC      " $@;touch $@
E
""".replace("STEPS", " ".join(map(str, range(STEPS))))


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def make_tree(top, samples, epochs):
    """Makes a source folder with everything quickstart needs; build/ holds the programs of this build."""
    for folder in ("build", "data", "m4", "schema", "tests", "tracker", "trainer", "web"):
        os.mkdir(os.path.join(top, folder))
    for name in ("configure.ac", "Makefile.am"):
        write(os.path.join(top, name), "")
    shutil.copy(os.path.join(SRC, "tests", "setup.sh"), os.path.join(top, "tests"))
    write(os.path.join(top, "configure"), CONFIGURE)
    for name in ("dptrack", "dptrain"):
        os.symlink(os.path.join(BUILD, name), os.path.join(top, "build", name))
    helper.make_set(os.path.join(top, "data"), samples, 64)
    script = read(os.path.join(SRC, "quickstart"))
    for old, new in ((r"^data=.*$", "data=data"), (r"^goal=.*? ", "goal=0 "), (r"^install_missing$", ":"),
                     (r"--epochs 2\b", f"--epochs {epochs}"), (r"--global-batch-size 128\b", "--global-batch-size 16")):
        script, n = re.subn(old, new, script, flags=re.M)
        assert n == 1, f"quickstart: {old!r} occurs {n} times"
    write(os.path.join(top, "quickstart"), script)


class Terminal:
    """quickstart on a terminal of its own, with a real ctrl-C; with log=True its output is a pipe."""

    def __init__(self, top, *args, log=False):
        self.text, self.started = "", time.monotonic()
        self.master, slave = pty.openpty()
        self.pipe = os.pipe() if log else (self.master, slave)

        def own_terminal():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(["sh", "./quickstart", *args], cwd=top, stdin=slave, stdout=self.pipe[1],
                                        stderr=self.pipe[1], preexec_fn=own_terminal, env=helper.environment())
        for fd in {slave, self.pipe[1]}:
            os.close(fd)

    def read_some(self):
        ready, _, _ = select.select([self.pipe[0]], [], [], 0.05)
        try:
            self.text += os.read(self.pipe[0], 65536).decode(errors="replace") if ready else ""
        except OSError:  # the other end of a terminal is closed
            pass

    def wait_for(self, pattern, seconds=60):
        def seen():
            self.read_some()
            return re.search(pattern, self.text)
        try:
            return until(seen, seconds, pattern)
        except AssertionError as failure:
            raise AssertionError(f"{failure}; it printed:\n{self.text}") from None

    def end(self, seconds=60):
        """Returns the exit code; fails if a process of the session remains."""
        until(lambda: (self.read_some(), self.process.poll() is not None)[1], seconds, "quickstart ends")
        until(lambda: not session(self.process.pid), 10, f"all processes end: {session(self.process.pid)}")
        self.read_some()
        return self.process.returncode

    def ctrl_c(self):
        os.write(self.master, b"\x03")


def session(leader):
    """Processes of a session that are running, as pid and command."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = read(f"/proc/{entry}/stat").rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] not in "ZX":
                found.append((int(entry), read(f"/proc/{entry}/cmdline").replace("\0", " ")))
        except OSError:
            pass
    return found


def get(url):
    with urllib.request.urlopen(url, timeout=30) as reply:
        return reply.read().decode()


def runs(top):
    out = subprocess.run([os.path.join(BUILD, "dptrack"), "ls", "--logdir", "runs", "--csv"], cwd=top, text=True, capture_output=True)
    assert out.returncode == 0, out.stderr
    return sorted(line.split(",")[1:3] for line in out.stdout.splitlines()[1:])


def percents(text, title):
    return [int(n) for n in re.findall(re.escape(title) + r": (\d+) %", text)]


def check_progress(text, title):
    shown = percents(text, title)
    assert shown and shown == sorted(set(shown)) and shown[-1] == 100, (title, shown, text)
    return shown


def first_and_second_call(top):
    """The page is served before anything is trained; the second call builds nothing and serves it at once."""
    t = Terminal(top)
    url = t.wait_for(r"in a browser: +(http\S+)").group(1)
    assert "training resnet20" not in t.text, t.text
    assert get(url + "/health") and get(url + "/")
    t.wait_for("training resnet20-bf16-ddp2")
    assert "quickstart" in get(url + "/api/v1/runs?experiment=quickstart"), "the first run is served while the second is trained"
    t.wait_for("ctrl-C stops the server")
    for title in ("building the server", "building the trainer"):
        assert len(check_progress(t.text, title)) > 20, t.text
    assert re.search(r"\r\x1b\[Kepoch \d/2 \[[=> ]+\] +\d+ %  .*loss .*images/s .*ETA", t.text), t.text
    t.ctrl_c()
    assert t.end() == 0, t.text
    assert runs(top) == [["resnet20-bf16-ddp2", "finished"], ["resnet20-f32", "finished"]], runs(top)

    t = Terminal(top)
    url = t.wait_for(r"in a browser: +(http\S+)").group(1)
    assert get(url + "/health")
    print(f"second call: the page answers after {time.monotonic() - t.started:.1f} s")
    assert time.monotonic() - t.started < 20, "the second call serves the page soon, even on a busy machine"
    other = Terminal(top)
    other.wait_for("another process serves the page: " + url)
    assert other.end() == 0, other.text
    t.wait_for("ctrl-C stops the server")
    assert "building" not in t.text and "configuring" not in t.text and t.text.count("is there already") == 2, t.text
    t.process.send_signal(signal.SIGTERM)
    assert t.end() == 143, t.text


def taken_port_and_log(top):
    """If another program uses port 6007, the page gets another port. On a pipe, progress is printed as lines."""
    for name in os.listdir(os.path.join(top, "build")):
        if name.startswith(("server-", "trainer-")):
            os.remove(os.path.join(top, "build", name))
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 6007))
            taken.listen()
        except OSError:
            pass  # in use already
        t = Terminal(top, log=True)
        url = t.wait_for(r"in a browser: +(http\S+)").group(1)
        assert "port 6007 is taken" in t.text and not url.endswith(":6007"), t.text
        assert get(url + "/health")
        t.wait_for("ctrl-C stops the server")
        t.ctrl_c()
        assert t.end() == 0, t.text
    assert check_progress(t.text, "building the server") == list(range(10, 101, 10)), t.text
    assert "\r" not in t.text and "\x1b" not in t.text, t.text
    t = Terminal(top, "--no-serve", log=True)
    assert t.end() == 0 and "resnet20-f32" in t.text and "http" not in t.text, t.text


def interrupted(top):
    """ctrl-C in a build and in a training ends all processes, and so do SIGTERM and SIGKILL of the script alone; the
    next call continues the run."""
    t = Terminal(top)
    t.wait_for(r"building the server: [1-9]")
    t.ctrl_c()
    assert t.end() == 130, t.text
    folders = set()
    for end, code, statuses in ((lambda: t.ctrl_c(), 130, ("killed",)), (lambda: t.process.terminate(), 143, ("preempted",)),
                                (lambda: t.process.kill(), -signal.SIGKILL, ("preempted", "killed"))):
        t = Terminal(top)
        t.wait_for(r"epoch \d+/200 ")
        folders.add(re.search(r"recorded in (\S+)", t.text).group(1))
        end()
        assert t.end() == code, t.text
        (name, status), = runs(top)
        assert name == "resnet20-f32" and status in statuses, (status, t.text)
    assert len(folders) == 1, folders


def configured(top):
    """configure runs once, again after packages changed, and with other arguments only if they are given."""
    calls = os.path.join(top, "calls")
    pc = os.path.join(top, "pkgconfig")
    os.mkdir(pc)
    env = helper.environment({"PKG_CONFIG_LIBDIR": pc})

    def configure(*arguments, says):
        if os.path.exists(calls):
            os.remove(calls)
        subprocess.run(["sh", "-c", '. tests/setup.sh; configure_into build "$@"', "sh", *arguments], cwd=top, env=env, check=True,
                       stderr=subprocess.DEVNULL)
        said = read(calls).splitlines() if os.path.exists(calls) else []
        assert said == says, (arguments, said, says)

    shutil.rmtree(os.path.join(top, "build"))
    configure(says=["configure "])
    configure(says=[])
    write(os.path.join(pc, "libpq.pc"), "Name: libpq\n")
    configure(says=["recheck"])
    configure(says=[])
    configure("CFLAGS=-O1 -g", says=["configure CFLAGS=-O1 -g"])
    configure(says=[])
    os.remove(os.path.join(pc, "libpq.pc"))
    configure("CFLAGS=-O1 -g", says=["recheck"])


def packages(top):
    """Packages are installed by one call of apt-get, as root or by sudo; without either, the command for root is
    printed."""
    tools = os.path.join(top, "tools")
    apt = """#!/bin/sh
echo "apt-get $*" >>"%s/apt-calls"
case $1 in
install)
	echo dlstatus:1:50.5:Retrieving
	echo pmstatus:nothing:80.0:Installing
	;;
esac
""" % top
    sudo = '#!/bin/sh\n[ "$1" != -n ] || shift\nexec "$@"\n'
    script = ". tests/setup.sh; need_command sh dash; need_command no-such-command one; need_header stdio.h libc6-dev; " \
        "need_header no/such.h two-dev; install_missing"

    def install(user, **files):
        shutil.rmtree(tools, ignore_errors=True)
        write(os.path.join(tools, "id"), f"#!/bin/sh\necho {user}\n")
        for name, text in files.items():
            write(os.path.join(tools, name.replace("_", "-")), text)
        done = subprocess.run(["sh", "-c", script], cwd=top, env=dict(os.environ, PATH=tools + ":" + os.environ["PATH"]),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    for user in (0, 1000):
        code, text = install(user, apt_get=apt, sudo=sudo)
        assert code == 0 and "missing packages: one two-dev\n" in text, text
        assert "installing packages: 20 %\n" in text and "installing packages: 90 %\n" in text, text
        installs = [line for line in read(os.path.join(top, "apt-calls")).splitlines() if line.startswith("apt-get install")]
        assert len(installs) == 1 and installs[0].endswith(" one two-dev"), installs
        os.remove(os.path.join(top, "apt-calls"))
    line = "run as root: apt-get update && apt-get install --no-install-recommends one two-dev\n"
    for change in ({"sudo": "#!/bin/sh\nexit 1\n", "apt_get": apt}, {"sudo": sudo, "apt_get": "#!/bin/sh\nexit 100\n"}):
        code, text = install(1000, **change)
        assert code == 1 and text.endswith(line), text
    assert not os.path.exists(os.path.join(top, "apt-calls")), "nothing is installed"


def main():
    if not os.path.exists(os.path.join(BUILD, ".libs", "dptrain_cpu.so")):
        print("the cpu backend is not built")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="dptrack-quickstart-") as tmp:
        short, long = os.path.join(tmp, "short"), os.path.join(tmp, "long")
        for top, samples, epochs in ((short, 64, 2), (long, 640, 200)):
            os.mkdir(top)
            make_tree(top, samples, epochs)
        for part, top in ((packages, short), (first_and_second_call, short), (taken_port_and_log, short), (configured, short),
                          (interrupted, long)):
            started = time.monotonic()
            part(top)
            print(f"{part.__name__}: {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
