# SPDX-License-Identifier: Apache-2.0
"""Ranks that real launchers place on two machines (network namespaces): Open MPI's mpirun, with ranks that communicate
over UCX or MPI itself, and Slurm's srun, for which a slurmctld and two slurmd are started here. The losses are those
of one machine; a killed rank ends the job; and an impossible setting gives one line per rank."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))

from helper import DPTRAIN, FINISHED, LAUNCHER, Folder, alive, check, environment, finish, read_run, skip
from jobs import GPT, alone, ended, same
from mpirun import HOSTS, Mpirun, start
from spaces import Spaces, has_transport

SLURM = """ClusterName=dptrain
SlurmctldHost=dptnode0
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation={0}/state
SlurmdSpoolDir={0}/spool-%n
SlurmctldPidFile={0}/slurmctld.pid
SlurmdPidFile={0}/slurmd-%n.pid
SlurmctldLogFile={0}/slurmctld.log
SlurmdLogFile={0}/slurmd-%n.log
TmpFS={0}/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/builtin
NodeName=dptnode0 NodeAddr=10.77.0.1 CPUs=2
NodeName=dptnode1 NodeAddr=10.77.0.2 CPUs=2
PartitionName=all Nodes=dptnode[0-1] Default=YES
"""


class Slurm:
    """Slurm's daemons, during the test."""

    def __init__(self, spaces, folder):
        self.spaces, self.folder, self.daemons = spaces, folder, []
        self.env = environment({"SLURM_CONF": os.path.join(folder, "slurm.conf")})
        for name in ("state", *("%s-%s" % (kind, host) for kind in ("spool", "tmp") for host in HOSTS)):
            os.mkdir(os.path.join(folder, name))
        for name, text in (("slurm.conf", SLURM.format(folder)), ("cgroup.conf", "CgroupPlugin=cgroup/v1\n")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)

    def __enter__(self):
        self.daemons.append(start(self.spaces.named(0, "slurmctld", "-D", "-c"), self.env))
        self.daemons += [start(self.spaces.named(i, "slurmd", "-D", "-c", "-N", host), self.env) for i, host in enumerate(HOSTS)]
        deadline = time.monotonic() + 30
        while self.states() != "idle" and time.monotonic() < deadline:
            time.sleep(0.2)
        check(self.states() == "idle", "Slurm's nodes are idle: %s: %s" % (self.states(), self.logs()))
        return self

    def states(self):
        return subprocess.run(self.spaces.named(0, "sinfo", "-h", "-o", "%T"), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True).stdout.strip()

    def logs(self):
        texts = []
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8") as f:
                    texts.append(name + ": " + "".join(f.readlines()[-8:]))
        return texts

    def __exit__(self, *unused):
        for p in reversed(self.daemons):
            p.terminate()
        for p in self.daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(10)
            p.kill()
            p.communicate()

    def start(self, mpi, *flags):
        return start(self.spaces.named(0, "srun", "--mpi", mpi, "-N", 2, "-n", 4, "--ntasks-per-node", 2, DPTRAIN, *GPT, *flags), self.env)


def check_job(name, job, runs, reference, transport):
    codes, texts = ended(name, [job])
    if check(codes == [0], "%s: exit code %s: %s" % (name, codes, texts)):
        same(name, runs, reference)
    check(texts[0].count("%s between them" % transport) == 1, "%s: the transport is named once: %s" % (name, texts))


def run_cases(name, launch, reference, cases):
    """launch(flags…) starts a job; cases: transport, further flags."""
    for transport, flags in cases:
        if not has_transport(transport):
            print("%s: transport %s is not built" % (name, transport))
            continue
        with Folder() as runs:
            check_job("%s %s %s" % (name, transport, flags), launch(*flags, "--runs-dir", runs), runs, reference, transport)


def refused(name, job, words):
    """Each of the four ranks prints one line."""
    codes, texts = ended(name, [job], 30)
    lines = [line for line in texts[0].splitlines() if line.startswith("dptrain: error:")]
    check(codes[0] not in (0, None) and len(lines) == 4 and all(w in line for w in words for line in lines), "%s: exit %s: %s" % (name, codes, texts))


def ranks_in(folder):
    """Processes of a job that records in the folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
            if folder.encode() in words and words[0].endswith(b"dptrain"):
                found.append(int(pid))
    return found


def killed(name, job, runs):
    """One rank is killed: the job ends, and no process remains."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not os.path.exists(os.path.join(runs, "default")):
        time.sleep(0.05)
    time.sleep(0.5)
    ranks = ranks_in(runs)
    if check(len(ranks) == 4, "%s: four ranks run: %s" % (name, ranks)):
        os.kill(ranks[-1], signal.SIGKILL)
    start_s = time.monotonic()
    codes, texts = ended(name, [job], 30)
    check(codes != [0] and time.monotonic() - start_s < 15, "%s: exit %s after %.1f s: %s" % (name, codes, time.monotonic() - start_s, texts))
    while any(map(alive, ranks)) and time.monotonic() < start_s + 20:
        time.sleep(0.05)
    check(not any(map(alive, ranks)), "%s: no rank remains" % name)
    check(read_run(runs)["status"].get(LAUNCHER) != FINISHED, "%s: the run is not finished" % name)


def with_mpirun(spaces, reference):
    with Folder() as folder:
        mpirun = Mpirun(spaces, folder)
        run_cases("mpirun", lambda *flags: mpirun.start(*GPT, *flags), reference, [("ucx", []), ("mpi", ["--comm", "mpi"]), ("mpi", ["--comm", "mpi", "--strategy", "fsdp"])])
        if has_transport("mpi"):
            with Folder() as runs:
                killed("a rank of mpirun's", mpirun.start(*GPT, "--comm", "mpi", "--runs-dir", runs, "--max-steps", 10 ** 9), runs)


def with_slurm(spaces, reference):
    with Folder() as folder, Slurm(spaces, folder) as slurm:
        run_cases("srun", lambda *flags: slurm.start("none", *flags), reference, [("ucx", [])])
        run_cases("srun", lambda *flags: slurm.start("pmix", *flags), reference, [("mpi", ["--comm", "mpi"])])
        if has_transport("mpi"):
            refused("srun without pmix", slurm.start("none", "--comm", "mpi"), ["--comm mpi", "srun --mpi=pmix"])


found = [run for program, run in (("mpirun", with_mpirun), ("slurmctld", with_slurm)) if shutil.which(program)]
if not found or not shutil.which("unshare"):
    skip("neither mpirun (Debian: openmpi-bin) nor slurmctld and slurmd are installed")
with Spaces() as two_machines:
    two_machines.give_names(HOSTS)
    single = alone()
    for launcher in found:
        launcher(two_machines, single)
finish("launchers")
