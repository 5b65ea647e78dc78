"""The launcher: ranks that die, people who press ctrl-C, launchers of others, and bad input: what is said, the exit code,
the recorded status, and that nothing remains."""
import os
import signal
import subprocess
import time

from helper import (FAILED, FINISHED, KILLED, LAUNCHER, PREEMPTED, Folder, alive, check, children, dptrain, fast, finish,
                    make_set, read_run, shared_objects, start)

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
        check(len(pids) == ranks, "%s: the launcher's only children are the ranks" % name)
        os.kill(pids[victim], number)
        seconds, _, err = ended(p, 100, name)
        check(seconds < 60, "%s: the job ended after %.1f s" % (name, seconds))
        check(p.returncode == 1, "%s: exit code %d" % (name, p.returncode))
        check("rank %d" % victim in err and "signal %d" % number in err, "%s: said: %s" % (name, err))
        nothing_left(name, pids + [p.pid])
        run = read_run(runs)
        check(run["status"].get(LAUNCHER) == FAILED, "%s: status %s" % (name, run["status"]))
        check("rank %d" % victim in run["reason"], "%s: reason %r" % (name, run["reason"]))


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


def hung_up():
    """Under nohup a closed terminal ends nothing; nor does a reader of stdout who goes away."""
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


def refused(name, flags, words, env=None, code=2):
    with Folder() as runs:
        p = dptrain(*flags, "--runs-dir", runs, env=env)
        check(p.returncode == code, "%s: exit code %d: %s" % (name, p.returncode, p.stderr))
        lines = p.stderr.strip().splitlines()
        check(len(lines) == 1, "%s: one line, not %d: %s" % (name, len(lines), p.stderr))
        for word in words:
            check(word in p.stderr, "%s: %r is said in: %s" % (name, word, p.stderr))


def bad_input():
    with Folder() as tmp:
        good = make_set(os.path.join(tmp), 40, 10)
        base = ["--model", "resnet20", "-b", 10, "--epochs", 1, *FAST]
        on_set = ["--data-path", good, *base]
        refused("unknown flag", [*on_set, "--modle", "x"], ["--modle", "--model"])
        refused("unknown model", ["--data-path", good, "--model", "resnet21"], ["resnet21", "resnet20"])
        refused("no data", base, ["--data-path"])
        refused("missing folder", ["--data-path", tmp + "/none", *base], [tmp + "/none"])
        refused("epochs 0", [*on_set, "--epochs", 0], ["--epochs"])
        refused("large batch", [*on_set, "-b", 41], ["41", "40"])
        refused("ranks on large batch", [*on_set, "--nproc-per-node", 2, "-b", 21], ["42", "40"])
        refused("single on two ranks", [*on_set, "--nproc-per-node", 2, "--strategy", "single"], ["single", "ddp"])
        refused("label beyond the classes", [*on_set, "--classes", 3], ["label"])
        refused("half of torchrun's variables", on_set, ["RANK", "WORLD_SIZE"], env={"RANK": "0"})
        refused("contradiction", on_set, ["torchrun", "Slurm"], env={"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"})
        refused("two machines", on_set, ["more than one machine"], env={"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"})
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


def diverging():
    with Folder() as tmp:
        runs = os.path.join(tmp, "runs")
        p = dptrain("--data-path", make_set(tmp, 40, 10), "--model", "resnet20", "-b", 5, "--epochs", 20, "--lr", 1e6, "--lr-scheduler", "constant",
                    "--nproc-per-node", 2, "--runs-dir", runs, *FAST)
        check(p.returncode == 1, "a run that diverges: exit code %d" % p.returncode)
        check("not finite" in p.stderr and "in a row" in p.stderr and "step" in p.stderr, "a run that diverges: said: " + p.stderr)
        check(read_run(runs)["status"].get(LAUNCHER) == FAILED, "a run that diverges: status")


def main():
    killed_rank(2, 1, signal.SIGKILL)
    killed_rank(3, 0, signal.SIGABRT)
    interrupted(signal.SIGINT, 130, False)
    interrupted(signal.SIGINT, 130, True)
    interrupted(signal.SIGTERM, 75, False, PREEMPTED)
    interrupted(signal.SIGUSR1, 75, False, PREEMPTED)
    interrupted(signal.SIGTERM, 1, False, KILLED, ("--save-total-limit", 0))
    hung_up()
    killed_launcher()
    placed("torchrun", lambda r: {"RANK": str(r), "WORLD_SIZE": "2", "LOCAL_RANK": str(r), "LOCAL_WORLD_SIZE": "2",
                                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(os.getpid())})
    placed("Open MPI", lambda r: {"OMPI_COMM_WORLD_RANK": str(r), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": str(r),
                                  "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "test-%d" % os.getpid()})
    placed("Slurm", lambda r: {"SLURM_PROCID": str(r), "SLURM_NTASKS": "2", "SLURM_LOCALID": str(r), "SLURM_JOB_ID": str(os.getpid()),
                               "SLURM_STEP_ID": "0"})
    bad_input()
    diverging()
    finish("launcher")


main()
