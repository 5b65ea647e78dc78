# SPDX-License-Identifier: Apache-2.0
"""limit.py COMMAND…: runs a test and ends it after a time limit: a test that hangs fails like any other, and the
states of its processes are printed. Exits with the status of the test; with 1 when the test had to be ended. The
limits of all tests are in this file; DPT_TEST_LIMIT sets another. Signals that the caller ignores (nohup, a shell's
background) reach tests as usual, and processes that a failed test leaves running are ended. Under make, the time of
the test is added to tests/seconds of the build."""
import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

# Seconds, by the longest matching prefix of a test's name. Servers answer at once; computations may be slow under a
# sanitizer.
LIMITS = {"": 600, "tests/api/": 300, "tests/cli/": 300, "tests/fault/": 400, "tests/lint/": 300, "tests/mlflow/": 300,
          "tests/mlflow/client.py": 600, "tests/wandb/": 600, "tests/gpu/": 1800, "tests/fakes/cuda/mutants": 2400}

STACKS_S = 90  # for the stacks of all processes of a hanging test; of 64 ranks some are enough


def name_of(command):
    """A test's name as in the make fragments, whichever folder it is in."""
    paths = [os.path.abspath(word) for word in command]
    return next((path[path.rfind("/tests/") + 1:] for path in paths if "/tests/" in path), command[-1])


def limit_of(name):
    default = LIMITS[max((start for start in LIMITS if name.startswith(start)), key=len)]
    return int(os.environ.get("DPT_TEST_LIMIT") or default)


def note_seconds(name, started):
    """Adds a line "wall seconds, processor seconds, name"; each line is one write, so that concurrent tests do not
    mix."""
    build = os.environ.get("builddir")
    if build and os.path.isdir(f"{build}/tests"):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        line = f"{time.monotonic() - started:.1f} {used.ru_utime + used.ru_stime:.1f} {name}\n"
        with open(f"{build}/tests/seconds", "a", encoding="utf-8") as f:
            f.write(line)


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read().decode(errors="replace").strip("\0\n").replace("\0", " ")
    except OSError:
        return ""


def family(pid):
    """The process and all its descendants, parents first, as numbers."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        stat = read(f"/proc/{entry}/stat")
        if stat:
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def describe(pid, until):
    """Prints what a process is and where each of its threads waits; with gdb, their stacks, as long as there is
    time."""
    print(f"-- {pid}: {read(f'/proc/{pid}/cmdline')[:200]}")
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        at = f"/proc/{pid}/task/{thread}"
        state = read(f"{at}/stat").rpartition(")")[2][:2].strip()
        print(f"   thread {thread} {state} in {read(f'{at}/wchan')}, system call {read(f'{at}/syscall')}")
    left = int(until - time.monotonic())
    if shutil.which("gdb") and left > 0:
        sys.stdout.flush()
        subprocess.run(["timeout", str(left), "gdb", "-nx", "-p", str(pid), "-batch", "-ex", "thread apply all backtrace 16"],
                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def program_of(pid):
    """The path of a process's program; "" if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def end(test):
    """Aborts the processes of a test: Python processes then print their stacks; the others cannot."""
    processes = family(test.pid)
    until = time.monotonic() + STACKS_S
    for pid in processes:
        describe(pid, until)
    sys.stdout.flush()
    for pid in processes:
        if os.path.basename(program_of(pid)).startswith("python"):
            send(pid, signal.SIGABRT)
    try:
        test.wait(10)
    except subprocess.TimeoutExpired:
        pass
    for pid in processes:
        send(pid, signal.SIGKILL)
    test.wait()


def send(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass


PR_SET_CHILD_SUBREAPER = 36


def adopt():
    """Processes whose parents have ended become children of this process."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_remaining():
    for pid in family(os.getpid())[1:]:
        if read(f"/proc/{pid}/cmdline"):
            print(f"limit.py: left running: {pid}: {read(f'/proc/{pid}/cmdline')[:200]}")
            send(pid, signal.SIGKILL)


def run(command, seconds):
    adopt()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    test = subprocess.Popen(command, env=dict(os.environ, PYTHONFAULTHANDLER="1"))
    try:
        code = test.wait(seconds)
    except subprocess.TimeoutExpired:
        print(f"limit.py: not done after {seconds} s; its processes:")
        end(test)
        return 1
    except KeyboardInterrupt:  # the test received it as well
        test.wait()
        return 130
    if code not in (0, 77):
        end_remaining()
    return code if code >= 0 else 128 - code


def main():
    command = sys.argv[1:]
    name = name_of(command)
    started = time.monotonic()
    code = run(command, limit_of(name))
    note_seconds(name, started)
    return code


sys.exit(main())
