# SPDX-License-Identifier: Apache-2.0
"""Collects facts about the process and the machine of a run, and its code state. Reads only listed environment variables, hides
secrets with the caller's scrubber, calls git with a timeout and imports no framework."""
from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dptrack._secrets import Scrubber

DIFF_BYTES = 1 << 20
GIT_S = 5.0
# Variables, and prefixes of variables, that define the layout of a job or change results.
VARIABLES = ('CUDA_VISIBLE_DEVICES', 'CUBLAS_WORKSPACE_CONFIG', 'HIP_VISIBLE_DEVICES', 'HOSTNAME', 'KMP_AFFINITY', 'LOCAL_RANK',
             'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'MKL_NUM_THREADS', 'NODE_RANK', 'OMP_NUM_THREADS', 'OMP_PROC_BIND',
             'PYTHONHASHSEED', 'PYTORCH_CUDA_ALLOC_CONF', 'RANK', 'SLURM_JOB_ID', 'SLURM_JOB_NAME', 'SLURM_JOB_NODELIST',
             'SLURM_JOB_PARTITION', 'SLURM_PROCID', 'SLURM_STEP_ID', 'TORCHELASTIC_RESTART_COUNT', 'TORCHELASTIC_RUN_ID',
             'TOKENIZERS_PARALLELISM', 'WORLD_SIZE', 'XLA_FLAGS')
FAMILIES = ('NCCL_', 'GLOO_', 'TORCH_NCCL_', 'UCX_')
# Frameworks whose version is recorded if they are loaded.
FRAMEWORKS = ('torch', 'lightning', 'pytorch_lightning', 'transformers', 'keras', 'tensorflow', 'jax', 'numpy', 'accelerate')


def variables(env: Mapping[str, str]) -> dict[str, str]:
    wanted = set(VARIABLES) | set(filter(None, env.get('DPTRACK_ENV', '').split(',')))
    return {name: env[name] for name in sorted(env) if name in wanted or name.startswith(FAMILIES)}


def processor() -> str:
    try:
        with open('/proc/cpuinfo') as f:
            return next((line.split(':', 1)[1].strip() for line in f if line.startswith('model name')), '')
    except OSError:
        return ''


def memory_bytes() -> int:
    try:
        return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    except (ValueError, OSError):
        return 0


def gpus() -> str:
    """Names of the GPUs if the program uses them: a query would initialise the driver."""
    torch = sys.modules.get('torch')
    try:
        if torch and torch.cuda.is_initialized():
            return ', '.join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
    except Exception:
        pass
    return ''


def gpu_uuid() -> str:
    """UUID of the current GPU if the program uses one, else ''."""
    torch = sys.modules.get('torch')
    try:
        if torch and torch.cuda.is_initialized():
            return 'GPU-%s' % torch.cuda.get_device_properties(torch.cuda.current_device()).uuid
    except Exception:  # older versions have no uuid
        pass
    return ''


def command() -> str:
    argv = getattr(sys, 'orig_argv', None) or [sys.executable, *sys.argv]
    return ' '.join(shlex.quote(word) for word in argv)


def collect(env: Mapping[str, str], scrubber: Scrubber) -> dict[str, str]:
    """Returns {name: text} without empty values."""
    facts = {
        'command': command(),
        'cpu': processor(),
        'cpus': str(len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()),
        'memory_bytes': str(memory_bytes() or ''),
        'gpus': gpus(),
        'os': platform.platform(),
        'python': platform.python_version(),
        'working_folder': os.getcwd(),
    }
    for name in FRAMEWORKS:
        version = getattr(sys.modules.get(name), '__version__', None)
        if version:
            facts[name] = str(version)
    facts.update(('env/' + name, value) for name, value in variables(env).items())
    return {name: scrubber.text(value) for name, value in facts.items() if value}


# ---- code ----

def _git(folder: str, *words: str) -> str | None:
    """Output of a git command, or None."""
    try:
        done = subprocess.run(['git', '-C', folder, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=GIT_S,
                              env=dict(os.environ, GIT_OPTIONAL_LOCKS='0', LC_ALL='C'), stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode('utf-8', 'replace') if done.returncode == 0 else None


def folder_of_program() -> str:
    """Folder of the main program; the working folder in a notebook."""
    path = getattr(sys.modules.get('__main__'), '__file__', None)
    return os.path.dirname(os.path.abspath(path)) if path else os.getcwd()


def packages() -> str:
    """name==version, a line each, sorted."""
    from importlib.metadata import distributions
    found = set()
    for distribution in distributions():
        name = distribution.metadata['Name']
        if name:
            found.add('%s==%s' % (name, distribution.version))
    return '\n'.join(sorted(found, key=str.lower))


def collect_code() -> dict[str, str]:
    """Returns {name: text} of the code state, without empty values: git's commit, branch, remote and diff, packages, program."""
    folder = folder_of_program()
    found = {'packages': packages()}
    commit = _git(folder, 'rev-parse', 'HEAD')
    if commit:
        found['commit'] = commit.strip()
        found['branch'] = (_git(folder, 'rev-parse', '--abbrev-ref', 'HEAD') or '').strip()
        found['remote'] = (_git(folder, 'config', '--get', 'remote.origin.url') or '').strip()
        top = (_git(folder, 'rev-parse', '--show-toplevel') or '').strip()
        if top and not _is_home(top):
            found['diff'] = _git(top, 'diff', '--no-color', '--no-ext-diff', 'HEAD') or ''
    program = getattr(sys.modules.get('__main__'), '__file__', None)
    if program:
        found['program'] = os.path.relpath(os.path.abspath(program), folder)
    return {name: text for name, text in found.items() if text}


def _is_home(top: str) -> bool:
    """Returns true if the repository is a home folder, whose diff has nothing to do with the program."""
    return os.path.realpath(top) == os.path.realpath(os.path.expanduser('~'))
