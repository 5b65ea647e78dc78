# SPDX-License-Identifier: Apache-2.0
"""The launcher: ranks that die, ctrl-C, other launchers, and bad input: messages, the exit code, the recorded status,
and that nothing remains."""
import fcntl
import os
import pty
import resource
import signal
import subprocess
import sys
import termios
import time

from helper import (DPTRAIN, FAILED, FINISHED, KILLED, LAUNCHER, PREEMPTED, Folder, alive, check, children, dptrain, environment, fast,
                    finish, make_set, read_run, shared_objects, start)

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder) for folder in ("", "nodes")]
from ports import free_port
from spaces import has_transport

FAST = fast()


def endless(runs, ranks, *flags, **more):
    return start("--synthetic", "--max-steps", 1000000, "--model", "resnet20", "--classes", 10, "-b", 4, "--nproc-per-node", ranks, "--runs-dir", runs,
                 "--print-freq", 1, *FAST, *flags, **more)


def wait_for_steps(p, n):
    """Reads progress lines until the n-th step; the rest stays in the pipe."""
    for line in p.stdout:
        if " step " in line and int(line.split(" step ")[1].split()[0].split("/")[0]) >= n:
            return


def ended(p, seconds, name):
    begin = time.monotonic()
    try:
        out, err = p.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        check(False, "%s: still running after %g s" % (name, seconds))
        p.kill()
        out, err = p.communicate()
    return time.monotonic() - begin, out, err


def nothing_left(name, pids):
    deadline = time.monotonic() + 30
    while any(alive(p) for p in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    check(not any(alive(p) for p in pids), "%s: no process remains" % name)
    left = shared_objects()
    check(not left, "%s: nothing remains in /dev/shm: %s" % (name, left))


def killed_rank(ranks, victim, number):
    name = "signal %d to rank %d of %d" % (number, victim, ranks)
    with Folder() as runs:
        p = endless(runs, ranks)
        wait_for_steps(p, 3)
        pids = children(p.pid)
        check(len(pids) == ranks, "%s: the ranks are the launcher's only children" % name)
        os.kill(pids[victim], number)
        seconds, _, err = ended(p, 100, name)
        check(seconds < 60, "%s: the job ended after %.1f s" % (name, seconds))
        check(p.returncode == 1, "%s: exit code %d" % (name, p.returncode))
        check("rank %d" % victim in err and "signal %d" % number in err, "%s: message: %s" % (name, err))
        nothing_left(name, pids + [p.pid])
        run = read_run(runs)
        check(run["status"].get(LAUNCHER) == FAILED, "%s: status %s" % (name, run["status"]))
        check("rank %d" % victim in run["reason"], "%s: reason %r" % (name, run["reason"]))


def small_files():
    """A run whose files may not grow (ulimit -f) ends with a message, not by a signal, and its records stay."""
    with Folder() as runs:
        limit = (resource.RLIMIT_FSIZE, (100 << 10, 100 << 10))
        p = start("--synthetic", "--max-steps", 2, "--model", "resnet20", "-b", 4, "--runs-dir", runs, *FAST,
                  preexec_fn=lambda: resource.setrlimit(*limit))
        _, _, err = ended(p, 100, "small files")
        check(p.returncode == 1 and "model.safetensors: File too large" in err, "small files: exit code %d: %s" % (p.returncode, err))
        check(sorted(read_run(runs)["series"].get(("train/loss", -1), {})) == [1, 2], "small files: both steps are recorded")


def stopped_rank():
    """A hung rank is named after --ddp-timeout, and does not remain."""
    with Folder() as runs:
        p = endless(runs, 2, "--ddp-timeout", 5)
        wait_for_steps(p, 3)
        pids = children(p.pid)
        os.kill(pids[1], signal.SIGSTOP)
        seconds, _, err = ended(p, 100, "stopped rank")
        check(p.returncode == 1 and "rank 1 did not arrive" in err and seconds >= 5, "stopped rank: exit code %d after %.1f s: %s" % (p.returncode, seconds, err))
        nothing_left("stopped rank", pids + [p.pid])
        check(read_run(runs)["status"].get(LAUNCHER) == FAILED, "stopped rank: status %s" % read_run(runs)["status"])


def paused():
    """A job that is suspended as a whole (ctrl-Z) for longer than --ddp-timeout continues."""
    with Folder() as runs:
        p = endless(runs, 2, "--ddp-timeout", 2, preexec_fn=os.setsid)
        wait_for_steps(p, 3)
        os.killpg(p.pid, signal.SIGSTOP)
        time.sleep(4)
        os.killpg(p.pid, signal.SIGCONT)
        before = time.monotonic()
        for line in p.stdout:
            if time.monotonic() > before + 1:
                break
        check(p.poll() is None, "paused: still running")
        os.kill(p.pid, signal.SIGINT)
        _, _, err = ended(p, 100, "paused")
        check(p.returncode == 130, "paused: exit code %s: %s" % (p.returncode, err))


def shrinking_file():
    """A data file that is truncated while it is read ends the run with a message about it."""
    with Folder() as tmp:
        data = make_set(tmp, 4000, 10)
        path = os.path.join(data, "train-images-idx3-ubyte")
        p = start("--data-path", data, "--model", "resnet20", "-b", 10, "--epochs", 1000, "--print-freq", 1, "--runs-dir", os.path.join(tmp, "runs"), *FAST)
        wait_for_steps(p, 2)
        os.truncate(path, 16)
        _, _, err = ended(p, 100, "shrinking file")
        said = "was truncated while it was read" in err or "Sanitizer" in err # which handles the signal itself
        check(p.returncode == 1 and said, "shrinking file: exit code %d: %s" % (p.returncode, err))


def interrupted(number, code, twice, status=KILLED, more=()):
    name = "signal %d%s" % (number, " twice" if twice else "")
    with Folder() as runs:
        p = endless(runs, 2, *more, preexec_fn=os.setsid)
        wait_for_steps(p, 3)
        pids = children(p.pid)
        os.killpg(p.pid, number)
        if twice:
            time.sleep(0.005)
            os.killpg(p.pid, number)
        seconds, _, err = ended(p, 100, name)
        check(p.returncode == code, "%s: exit code %d: %s" % (name, p.returncode, err))
        check(seconds < 60, "%s: ended after %.1f s" % (name, seconds))
        nothing_left(name, pids + [p.pid])
        run = read_run(runs)
        check(run["status"].get(LAUNCHER) == status, "%s: status %s" % (name, run["status"]))
        if not twice:
            steps = {key: sorted(v) for key, v in run["series"].items() if key[0] == "phase/step"}
            check(len(steps) == 2 and steps[("phase/step", 0)] == steps[("phase/step", 1)], "%s: both ranks end at the same step" % name)


def nothing_begun():
    """Ctrl-C while the ranks are still starting: the message is accurate."""
    with Folder() as runs:
        p = start("--synthetic", "--model", "gpt2-124m", "-b", 1, "--max-steps", 1, "--nproc-per-node", 2, "--runs-dir", runs, *FAST)
        made = lambda pid: len(os.listdir("/proc/%d/task" % pid)) > 1
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (len(children(p.pid)) == 2 and all(made(pid) for pid in children(p.pid))):
            time.sleep(0.002)
        for pid in children(p.pid):
            os.kill(pid, signal.SIGSTOP)
        begun = bool(os.listdir(runs))
        p.send_signal(signal.SIGINT)
        for pid in children(p.pid) if begun else []:
            os.kill(pid, signal.SIGCONT)
        _, _, err = ended(p, 100, "nothing begun")
        check(p.returncode == 130, "nothing begun: exit code %s: %s" % (p.returncode, err))
        check(begun or ("no step has begun" in err and "ends after this step" not in err), "nothing begun: %s" % err)
        print("nothing begun:", "too late" if begun else "in time")


def hung_up():
    """Under nohup a closed terminal does not end a run; nor does a reader of stdout that exits."""
    with Folder() as runs:
        p = endless(runs, 2, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_for_steps(p, 2)
        os.kill(p.pid, signal.SIGHUP)
        p.stdout.close()
        time.sleep(0.5)
        check(p.poll() is None, "nohup: still running after SIGHUP and without a reader")
        os.kill(p.pid, signal.SIGINT)
        check(p.wait(timeout=60) == 130, "nohup: exit code %s" % p.returncode)
        p.stderr.close()


def in_terminal(runs):
    """A run of two ranks in the foreground of a terminal, after it has shown its progress: the process and the terminal."""
    master, slave = pty.openpty()
    p = subprocess.Popen([DPTRAIN, *map(str, ("--synthetic", "--model", "resnet20", "--classes", 10, "-b", 4, "--max-steps", 10**6, "--print-freq", 1,
                                              "--nproc-per-node", 2, "--runs-dir", runs, *FAST))], env=environment(), stdin=slave, stdout=slave,
                         stderr=slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    text = b""
    while b"images/s" not in text:
        text += os.read(master, 4096)
    return p, master


def interrupted_terminal():
    """A message takes the place of the line of progress, and of what the terminal shows for ctrl-C."""
    with Folder() as runs:
        p, master = in_terminal(runs)
        os.write(master, b"\x03")
        text, piece = b"", b"\n"
        while piece:
            text += piece
            try:
                piece = os.read(master, 4096)
            except OSError:  # its last process has closed it
                piece = b""
        os.close(master)
        p.wait(timeout=60)
        shown = [line.rstrip(b"\r").rpartition(b"\r")[2] for line in text.split(b"\n")]
        check(any(b"Interrupt" in line for line in shown), "ctrl-C is answered: %s" % shown)
        check(not any(b"dptrain:" in line and (b"ETA" in line or b"^C" in line or b"waiting" in line) for line in shown), "a message of its own line: %s" % shown)


def closed_terminal():
    """A run in the foreground of a terminal that closes ends after a checkpoint, though it cannot print."""
    with Folder() as runs:
        p, master = in_terminal(runs)
        os.close(master)
        check(p.wait(timeout=60) == 75, "a closed terminal: exit code %s" % p.returncode)
        check(read_run(runs)["status"].get(LAUNCHER) == PREEMPTED, "a closed terminal: status %s" % read_run(runs)["status"])


def hung_up_placed():
    """Ranks of another launcher, which receive the signal directly."""
    with Folder() as runs:
        place = lambda r: {"RANK": str(r), "WORLD_SIZE": "2", "LOCAL_RANK": str(r), "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "h%d" % os.getpid()}
        procs = [endless(runs, 2, env=place(r)) for r in range(2)]
        wait_for_steps(procs[0], 2)
        for _ in range(2):
            for p in procs:
                p.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        for r, p in enumerate(procs):
            _, _, err = ended(p, 60, "SIGHUP to rank %d" % r)
            check(p.returncode == 75, "SIGHUP twice to rank %d: exit code %s: %s" % (r, p.returncode, err))


def killed_launcher():
    with Folder() as runs:
        p = endless(runs, 2)
        wait_for_steps(p, 2)
        pids = children(p.pid)
        p.kill()
        p.communicate()
        nothing_left("SIGKILL to the launcher", pids)


def placed(name, variables):
    """Two processes as another launcher starts them."""
    with Folder() as tmp:
        runs = os.path.join(tmp, "runs")
        flags = ["--data-path", make_set(tmp, 40, 10), "--model", "resnet20", "-b", 10, "--epochs", 1, "--runs-dir", runs, *FAST]
        procs = [start(*flags, env=variables(r)) for r in range(2)]
        for r, p in enumerate(procs):
            _, _, err = ended(p, 60, "%s rank %d" % (name, r))
            check(p.returncode == 0, "%s: rank %d exit %d: %s" % (name, r, p.returncode, err))
        run = read_run(runs)
        check(run["status"].get(0) == FINISHED, "%s: status %s" % (name, run["status"]))
        check(len(run["series"].get(("phase/step", 1), {})) == 2, "%s: rank 1 recorded its 2 steps" % name)
        check(not shared_objects(), "%s: nothing remains in /dev/shm" % name)


def closed_output():
    """A run started without stdin, stdout and stderr is recorded completely: nothing is printed into its files."""
    with Folder() as runs:
        p = subprocess.run([DPTRAIN, *map(str, ("--synthetic", "--model", "resnet20", "-b", 4, "--max-steps", 3, "--print-freq", 1, "--runs-dir", runs, *FAST))],
                           timeout=100, preexec_fn=lambda: [os.close(fd) for fd in (0, 1, 2)])
        check(p.returncode == 0, "closed output: exit code %d" % p.returncode)
        run = read_run(runs)
        check(sorted(run["series"].get(("train/loss", -1), {})) == [1, 2, 3], "closed output: the steps are recorded: %s" % run["series"].keys())
        for folder, _, names in os.walk(runs):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    check(b"images/s" not in f.read(), "closed output: nothing is printed into %s" % name)


def without_memory():
    """If rank 0 cannot create the shared memory, every rank reports its reason at once."""
    with Folder() as tmp:
        place = lambda r: {"RANK": str(r), "WORLD_SIZE": "3", "LOCAL_RANK": str(r), "LOCAL_WORLD_SIZE": "3", "MASTER_PORT": "m%d" % os.getpid()}
        flags = ["--synthetic", "--model", "resnet20", "--max-steps", 1, "--runs-dir", tmp, *FAST]
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 10, 100 << 10))
        procs = [start(*flags, env=place(r), preexec_fn=small if r == 0 else None) for r in range(3)]
        for r, p in enumerate(procs):
            _, _, err = ended(p, 60, "without memory: rank %d" % r)
            check(p.returncode == 1 and len(err.splitlines()) == 1 and "rank 0: cannot get" in err and "File too large" in err,
                  "without memory: rank %d: exit %d: %s" % (r, p.returncode, err))


def one_without_data():
    """A rank that fails before training ends the others at once, and they name it."""
    with Folder() as tmp:
        place = lambda r: {"RANK": str(r), "WORLD_SIZE": "2", "LOCAL_RANK": str(r), "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "d%d" % os.getpid()}
        flags = ["--model", "resnet20", "--max-steps", 1, "--runs-dir", tmp, *FAST]
        procs = [start(*flags, *data, env=place(r)) for r, data in enumerate((["--synthetic"], ["--data-path", tmp + "/none"]))]
        for p, code, words in zip(procs, (1, 2), ("rank 1 has already ended", tmp + "/none")):
            _, _, err = ended(p, 60, "one without data")
            check(p.returncode == code and words in err, "one without data: exit %d, wanted %d: %s" % (p.returncode, code, err))


def one_not_starting():
    """A rank that refuses its flags is not waited for, whatever the order of starts; all ranks report rank 0's
    reason."""
    for broken, first in ((0, 0), (0, 1), (1, 0), (1, 1)):
        with Folder() as tmp:
            place = lambda r: {"RANK": str(r), "WORLD_SIZE": "3", "LOCAL_RANK": str(r), "LOCAL_WORLD_SIZE": "3",
                               "MASTER_PORT": "n%d-%d%d" % (os.getpid(), broken, first)}
            flags = lambda r: ["--synthetic", "--model", "resnet20", "--max-steps", 1, "--runs-dir", tmp, *(["--lr", "x"] if r == broken else []), *FAST]
            procs = {}
            for r in sorted(range(3), key=lambda r: (r != broken) if first else (r == broken)):
                procs[r] = start(*flags(r), env=place(r))
                time.sleep(0.3)
            for r, p in procs.items():
                seconds, _, err = ended(p, 20, "rank %d refuses, rank %d" % (broken, r))
                words = "--lr 'x'" if r == broken or not broken else "rank 1 could not start"
                check(p.returncode == (2 if "--lr" in words else 1) and len(err.splitlines()) == 1 and words in err,
                      "rank %d refuses, rank %d: exit %d after %.1f s: %s" % (broken, r, p.returncode, seconds, err))


def refused(name, flags, words, env=None, code=2):
    with Folder() as runs:
        p = dptrain(*flags, "--runs-dir", runs, env=env)
        check(p.returncode == code, "%s: exit code %d: %s" % (name, p.returncode, p.stderr))
        lines = p.stderr.strip().splitlines()
        check(len(lines) == 1, "%s: one line, not %d: %s" % (name, len(lines), p.stderr))
        for word in words:
            check(word in p.stderr, "%s: %r is not in: %s" % (name, word, p.stderr))


def bad_input():
    with Folder() as tmp:
        good = make_set(os.path.join(tmp), 40, 10)
        base = ["--model", "resnet20", "-b", 10, "--epochs", 1, *FAST]
        on_set = ["--data-path", good, *base]
        refused("unknown flag", [*on_set, "--modle", "x"], ["--modle", "--model"])
        refused("unknown model", ["--data-path", good, "--model", "resnet21"], ["resnet21", "resnet20"])
        for foreign, ours in (("--optimizer", "--opt"), ("--num-epochs", "--epochs"), ("--batch", "--batch-size"), ("--learning_rate", "--lr")):
            refused(foreign, [*on_set, foreign, "1"], [foreign + "; dptrain calls it " + ours + "\n"])
        refused("no run to resume", [*on_set, "--resume", tmp + "/none"], ["--resume " + tmp + "/none", "auto"])
        refused("no run to test", [*on_set, "--test-only", "--resume", "auto", "--run-name", "none"], ["no run none"])
        refused("no weights", [*on_set, "--init-from", tmp + "/none"], ["--init-from " + tmp + "/none"])
        refused("too large for any machine", ["--synthetic", "--max-steps", 1, "--model", "resnet20", "--image-size", 4096, "-b", 1048576], ["2^40"])
        refused("no data", base, ["--data-path"])
        refused("missing folder", ["--data-path", tmp + "/none", *base], [tmp + "/none"])
        refused("epochs 0", [*on_set, "--epochs", 0], ["--epochs"])
        refused("large batch", [*on_set, "-b", 41], ["41", "40"])
        refused("ranks on large batch", [*on_set, "--nproc-per-node", 2, "-b", 21], ["42", "40"])
        refused("single on two ranks", [*on_set, "--nproc-per-node", 2, "--strategy", "single"], ["single", "ddp"])
        refused("label beyond the classes", [*on_set, "--classes", 3], ["label"])
        refused("half of torchrun's variables", on_set, ["RANK", "WORLD_SIZE"], env={"RANK": "0"})
        refused("contradiction", on_set, ["torchrun", "Slurm"], env={"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"})
        refused("two machines", on_set, ["several machines", "--master-addr"], env={"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"})
        image, label = os.path.join(tmp, "train-images-idx3-ubyte"), os.path.join(tmp, "train-labels-idx1-ubyte")
        os.truncate(image, os.path.getsize(image) - 100)
        refused("truncated images", on_set, [image])
        refused("truncated images on two ranks", [*on_set, "--nproc-per-node", 2], [image])
        make_set(tmp, 40, 10)
        with open(image, "r+b") as f:
            f.write(b"\1\2\3\4")
        refused("damaged head", on_set, [image])
        make_set(tmp, 40, 10)
        os.truncate(label, os.path.getsize(label) - 1)
        refused("too few labels", on_set, [label])
        make_set(tmp, 40, 10)
        with open(os.path.join(tmp, "not.safetensors"), "wb") as f:
            f.write(b"PK\3\4 not a weight file at all")
        refused("damaged weights", [*on_set, "--init-from", tmp + "/not.safetensors"], ["not.safetensors"])


def two_agents():
    """Two agents of torchrun on one machine, each the only task of Slurm on its machine: one job of four ranks, whose losses are
    those of one agent's."""
    if not has_transport("ucx"):
        print("two agents left out: the ucx transport is not built (Debian: libucx-dev)")
        return
    losses = []
    for agents in (1, 2):
        with Folder() as tmp:
            data, port = make_set(tmp, 40, 10), free_port()
            procs = []
            for r in range(4):
                group, local = divmod(r, 4 // agents)
                place = {"RANK": r, "WORLD_SIZE": 4, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": 4 // agents, "GROUP_RANK": group,
                         "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "SLURM_JOB_ID": os.getpid(), "SLURM_STEP_ID": 0, "SLURM_PROCID": group,
                         "SLURM_LOCALID": 0, "SLURM_NODEID": group, "SLURM_NTASKS": agents, "SLURM_STEP_NUM_TASKS": agents}
                procs.append(start("--data-path", data, "--model", "resnet20", "--backend", "ref", "-b", 5, "--max-steps", 2,
                                   "--runs-dir", os.path.join(tmp, "runs"), *FAST, env={k: str(v) for k, v in place.items()}))
            for r, p in enumerate(procs):
                _, err = p.communicate(timeout=60)
                check(p.returncode == 0, "rank %d of %d agents: exit %d: %s" % (r, agents, p.returncode, err))
            losses.append(read_run(os.path.join(tmp, "runs"))["series"].get(("train/loss", -1), {}))
    check(sorted(losses[0]) == [1, 2] and all(abs(losses[0][s] - losses[1].get(s, 0)) < 1e-6 for s in losses[0]), "losses by agents: %s" % losses)


def alone_in_a_step():
    """Slurm's step has one task, its job four: the step's number wins. Where the job's number is all there is, the wait names
    what it believed."""
    job = {"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
    base = ["--synthetic", "--model", "resnet20", "--classes", 10, "-b", 4, "--max-steps", 1, "--report-to", "none", "--rdzv-timeout", 3, *FAST]
    with Folder() as tmp:
        p = dptrain(*base, "--runs-dir", os.path.join(tmp, "one"), env=dict(job, SLURM_STEP_NUM_TASKS="1"))
        check(p.returncode == 0, "one task of a step in a job of four: exit %d: %s" % (p.returncode, p.stderr))
        p = dptrain(*base, "--runs-dir", os.path.join(tmp, "four"), env=job)
        check(p.returncode == 1 and all(w in p.stderr for w in ("Slurm announces 4 ranks", "SLURM_PROCID=0", "SLURM_NTASKS=4", "unset")),
              "a job of four that never comes: exit %d: %s" % (p.returncode, p.stderr))
        p = dptrain(*base, "--runs-dir", os.path.join(tmp, "torch"), env={"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2",
                                                                          "MASTER_PORT": str(os.getpid())})
        check(p.returncode == 1 and "WORLD_SIZE=2" in p.stderr, "torchrun's variables left in a shell: exit %d: %s" % (p.returncode, p.stderr))


def diverging():
    """Whether the loss or the gradients become non-finite first depends on rounding and sample order: either is
    reported."""
    with Folder() as tmp:
        runs = os.path.join(tmp, "runs")
        p = dptrain("--data-path", make_set(tmp, 40, 10), "--model", "resnet20", "-b", 5, "--epochs", 20, "--lr", 1e6, "--lr-scheduler", "constant",
                    "--nproc-per-node", 2, "--runs-dir", runs, *FAST)
        check(p.returncode == 1, "a run that diverges: exit code %d" % p.returncode)
        check("not finite" in p.stderr and ("in a row" in p.stderr or "the loss is" in p.stderr) and "step" in p.stderr, "a run that diverges: message: " + p.stderr)
        check(read_run(runs)["status"].get(LAUNCHER) == FAILED, "a run that diverges: status")


def main():
    killed_rank(2, 1, signal.SIGKILL)
    killed_rank(3, 0, signal.SIGABRT)
    stopped_rank()
    paused()
    shrinking_file()
    small_files()
    interrupted(signal.SIGINT, 130, False)
    interrupted(signal.SIGINT, 130, True)
    nothing_begun()
    interrupted(signal.SIGTERM, 75, False, PREEMPTED)
    interrupted(signal.SIGUSR1, 75, False, PREEMPTED)
    interrupted(signal.SIGTERM, 1, False, KILLED, ("--save-total-limit", 0))
    interrupted(signal.SIGHUP, 75, False, PREEMPTED)
    interrupted(signal.SIGHUP, 75, True, PREEMPTED)
    hung_up()
    hung_up_placed()
    interrupted_terminal()
    closed_terminal()
    killed_launcher()
    placed("torchrun", lambda r: {"RANK": str(r), "WORLD_SIZE": "2", "LOCAL_RANK": str(r), "LOCAL_WORLD_SIZE": "2",
                                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(os.getpid())})
    placed("Open MPI", lambda r: {"OMPI_COMM_WORLD_RANK": str(r), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": str(r),
                                  "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "test-%d" % os.getpid()})
    alone_in_a_step()
    two_agents()
    placed("Slurm", lambda r: {"SLURM_PROCID": str(r), "SLURM_NTASKS": "2", "SLURM_LOCALID": str(r), "SLURM_JOB_ID": str(os.getpid()),
                               "SLURM_STEP_ID": "0"})
    closed_output()
    without_memory()
    one_without_data()
    one_not_starting()
    bad_input()
    diverging()
    finish("launcher")


main()
