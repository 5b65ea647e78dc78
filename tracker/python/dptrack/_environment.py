# SPDX-License-Identifier: Apache-2.0
"""Collects facts about the process and the machine of a run. Reads only listed environment variables, hides secrets with the
caller's scrubber and imports no framework."""
from __future__ import annotations

import os
import platform
import shlex
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dptrack._secrets import Scrubber

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
