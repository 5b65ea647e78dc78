# SPDX-License-Identifier: Apache-2.0
"""Finds the processes of one job and lets them agree on one run: through torch.distributed's store if initialised, else through
files in a hidden folder next to the runs, named after the launcher's job id (torchrun, Slurm, mpirun)."""
from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FOLDER = '.dptrack-jobs'
WAIT_S = 60.0
KEEP_S = 14 * 86400
CLOCKS_S = 120.0  # largest difference between the clocks of two machines


class RankContext:
    """What a process knows of its job. job: equal in all processes and restarts of the job, None for a single process; address:
    the same across machines; attempt counts restarts."""

    def __init__(self, rank: int = 0, world_size: int = 1, job: tuple[str, ...] | None = None, address: tuple[str, ...] | None = None,
                 attempt: int = 0) -> None:
        self.rank, self.world_size, self.job, self.address, self.attempt = rank, world_size, job, address, attempt


def number(env: Mapping[str, str], name: str) -> int | None:
    try:
        return int(env[name])
    except (KeyError, ValueError):
        return None


def number_or(env: Mapping[str, str], name: str, otherwise: int) -> int:
    found = number(env, name)
    return otherwise if found is None else found


def started(pid: int) -> str:
    """Start time of a process in kernel ticks since boot; '' if unknown."""
    try:
        with open('/proc/%d/stat' % pid) as f:
            return f.read().rsplit(')', 1)[1].split()[19]
    except (OSError, IndexError):
        return ''


def parent_of(pid: int) -> int:
    try:
        with open('/proc/%d/stat' % pid) as f:
            return int(f.read().rsplit(')', 1)[1].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def launcher(variable: str) -> str:
    """Identifies the nearest ancestor that was started without the variable: the process that set it."""
    pid = os.getppid()
    while pid > 1:
        try:
            with open('/proc/%d/environ' % pid, 'rb') as f:
                if not any(entry.startswith(variable.encode() + b'=') for entry in f.read().split(b'\0')):
                    break
        except OSError:
            break
        pid = parent_of(pid)
    return identify(pid)


def identify(pid: int) -> str:
    """A process, unlike all others of all machines."""
    return '%s/%d/%s/%s' % (socket.gethostname(), pid, started(pid), boot())


def boot() -> str:
    try:
        with open('/proc/sys/kernel/random/boot_id') as f:
            return f.read().strip()
    except OSError:
        return ''


def torchrun(env: Mapping[str, str]) -> RankContext | None:
    rank, world_size = number(env, 'RANK'), number(env, 'WORLD_SIZE')
    if rank is None or world_size is None:
        return None
    address = '%s:%s' % (env.get('MASTER_ADDR', ''), env.get('MASTER_PORT', ''))
    run = env.get('TORCHELASTIC_RUN_ID', '')
    agent = launcher('TORCHELASTIC_RUN_ID' if run else 'RANK')
    return RankContext(rank, world_size, ('torchrun', run, agent), ('torchrun', run, address), number_or(env, 'TORCHELASTIC_RESTART_COUNT', 0))


def slurm(env: Mapping[str, str]) -> RankContext | None:
    if number(env, 'SLURM_JOB_ID') is None:
        return None
    step = number(env, 'SLURM_STEP_ID')
    context = RankContext(job=('slurm', env.get('SLURM_CLUSTER_NAME', ''), env['SLURM_JOB_ID'], str(step)),
                attempt=number_or(env, 'SLURM_RESTART_COUNT', 0))
    tasks = number_or(env, 'SLURM_STEP_NUM_TASKS', 1)
    if step is not None and tasks > 1:
        context.rank, context.world_size = number_or(env, 'SLURM_PROCID', 0), tasks
    return context


def mpi(env: Mapping[str, str]) -> RankContext | None:
    for rank_name, size_name, names in (('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', ('PMIX_NAMESPACE', 'OMPI_MCA_ess_base_jobid')),
                                        ('PMI_RANK', 'PMI_SIZE', ('PMI_ID', 'PMI_JOBID', 'HYDI_CONTROL_FD'))):
        rank, size = number(env, rank_name), number(env, size_name)
        if rank is not None and size is not None:
            job = next((env[name] for name in names[:2] if env.get(name)), None) if rank_name.startswith('OMPI') else None
            return RankContext(rank, size, ('mpi', job or launcher(rank_name)))
    return None


def distributed() -> Any:
    """torch.distributed if the program has initialised it; never imports torch."""
    module = sys.modules.get('torch.distributed')
    try:
        return module if module and module.is_available() and module.is_initialized() else None
    except Exception:
        return None


def find_rank(env: Mapping[str, str] = os.environ) -> RankContext:
    context = torchrun(env) or mpi(env) or slurm(env) or RankContext()
    dist = distributed()
    if dist:
        context.rank, context.world_size = dist.get_rank(), dist.get_world_size()
    return context


def given_rank(found: RankContext, rank: int, world_size: int, run_id: str | None) -> RankContext:
    """The context of a process that init is given the rank of. Without a launcher, the processes with one run_id that one process
    started are one job: else each would resume the run that another one has just started."""
    if world_size > 1 and not found.job and run_id is not None:
        return RankContext(rank, world_size, ('run', run_id, identify(os.getppid())), ('run', run_id))
    return RankContext(rank, world_size, found.job if world_size > 1 else None, found.address, found.attempt)


# ---- agreement on one run ----

class Files:
    """Claims and records of the job's runs as files. The n-th run of one rank is the n-th of every rank. An existing claim
    belongs to another program of the same job."""

    def __init__(self, runs_dir: str, context: RankContext) -> None:
        self.folder, self.context = os.path.join(runs_dir, FOLDER), context
        self.name = self._hash(context.job or ())
        self.n = self._claim()

    @staticmethod
    def _hash(words: tuple[str, ...]) -> str:
        return hashlib.sha256('\0'.join(words).encode()).hexdigest()[:24]

    def _path(self, name: str, attempt: int, ending: str) -> str:
        return os.path.join(self.folder, '%s.%d.%d.%s' % (name, attempt, self.n, ending))

    def _claim(self) -> int:
        os.makedirs(self.folder, exist_ok=True)
        self.n = 0
        while True:
            try:
                os.close(os.open(self._path(self.name, self.context.attempt, 'rank%d' % self.context.rank),
                                 os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
                return self.n
            except FileExistsError:
                self.n += 1

    def _read(self, name: str, attempt: int) -> dict[str, Any] | None:
        try:
            with open(self._path(name, attempt, 'json'), encoding='utf-8') as f:
                record: dict[str, Any] = json.load(f)
                return record
        except (OSError, ValueError):
            return None

    def before(self) -> dict[str, Any] | None:
        """The record of the newest earlier attempt."""
        for attempt in range(self.context.attempt - 1, -1, -1):
            record = self._read(self.name, attempt)
            if record:
                return record
        return None

    def publish(self, record: dict[str, Any]) -> None:
        record = dict(record, host=socket.gethostname(), time=time.time())
        names = [self.name] + ([self._hash(self.context.address)] if self.context.address else [])
        for name in names:
            path = self._path(name, self.context.attempt, 'json')
            with open(path + '.new', 'w', encoding='utf-8') as f:
                json.dump(record, f)
            os.replace(path + '.new', path)
        self._tidy()

    def _tidy(self) -> None:
        oldest = time.time() - KEEP_S
        for entry in os.scandir(self.folder):
            try:
                if entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)
            except OSError:
                pass

    def _theirs(self, since: float) -> dict[str, Any] | None:
        """The record of a rank 0 on another machine, found by address because its launcher is unknown here."""
        record = self._read(self._hash(self.context.address), self.context.attempt) if self.context.address else None
        if record and record['host'] != socket.gethostname() and record['time'] > since - CLOCKS_S:
            return record
        return None

    def wait(self, wait_s: float = WAIT_S) -> dict[str, Any] | None:
        """Waits for rank 0's record; None after WAIT_S."""
        since = time.time()
        while time.time() < since + wait_s:
            record = self._read(self.name, self.context.attempt) or self._theirs(since)
            if record:
                return record
            time.sleep(0.02)
        return None


class Store:
    """The same through torch.distributed's store, which needs no shared disk."""
    opened = 0

    def __init__(self, dist: Any) -> None:
        self.store = dist.distributed_c10d._get_default_store()
        Store.opened += 1
        self.key = 'dptrack/%d' % Store.opened

    def publish(self, record: dict[str, Any]) -> None:
        self.store.set(self.key, json.dumps(record))

    def wait(self, wait_s: float = WAIT_S) -> dict[str, Any] | None:
        import datetime
        try:
            self.store.wait([self.key], datetime.timedelta(seconds=wait_s))
            record: dict[str, Any] = json.loads(self.store.get(self.key))
            return record
        except Exception:  # the type differs between versions
            return None


def meet(runs_dir: str, context: RankContext) -> tuple[Files | None, Store | None]:
    """(files, store) for this job's records; either may be None."""
    dist = distributed() if context.world_size > 1 else None
    store = Store(dist) if dist else None
    files = Files(runs_dir, context) if context.job and (context.rank == 0 or not store) else None
    return files, store
