"""limit.py COMMAND…: runs a test and ends it after DPT_TEST_LIMIT seconds (600): a test that hangs fails like another one,
and says which of its processes stood where. Exits as the test did; with 1 when it had to be ended."""
import os
import shutil
import signal
import subprocess
import sys


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read().decode(errors="replace").strip("\0\n").replace("\0", " ")
    except OSError:
        return ""


def family(pid):
    """The process and all that descend from it, parents first, as numbers."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        stat = read(f"/proc/{entry}/stat")
        if stat:
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def describe(pid):
    """What a process is and what each of its threads waits in; with gdb, their stacks."""
    print(f"-- {pid}: {read(f'/proc/{pid}/cmdline')[:200]}")
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        at = f"/proc/{pid}/task/{thread}"
        state = read(f"{at}/stat").rpartition(")")[2][:2].strip()
        print(f"   thread {thread} {state} in {read(f'{at}/wchan')}, system call {read(f'{at}/syscall')}")
    if shutil.which("gdb"):
        sys.stdout.flush()
        subprocess.run(["timeout", "60", "gdb", "-nx", "-p", str(pid), "-batch", "-ex", "thread apply all backtrace 16"],
                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def end(test):
    """A Python test prints where it is when it is aborted; the others cannot be asked."""
    processes = family(test.pid)
    for pid in processes:
        describe(pid)
    sys.stdout.flush()
    test.send_signal(signal.SIGABRT)
    try:
        test.wait(10)
    except subprocess.TimeoutExpired:
        pass
    for pid in processes:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    test.wait()


def main():
    seconds = int(os.environ.get("DPT_TEST_LIMIT", "600"))
    test = subprocess.Popen(sys.argv[1:], env=dict(os.environ, PYTHONFAULTHANDLER="1"))
    try:
        code = test.wait(seconds)
    except subprocess.TimeoutExpired:
        print(f"limit.py: not done after {seconds} s; its processes:")
        end(test)
        return 1
    except KeyboardInterrupt:  # which the test received as well
        test.wait()
        return 130
    return code if code >= 0 else 128 - code


sys.exit(main())
