"""What a run should know of the process and machine it ran in. Environment variables only by a list of names; everything
goes through the caller's scrubber. Imports nothing that the program has not imported already."""
import os
import platform
import shlex
import sys

# Names, and beginnings of names, that say how a job is laid out or change what is computed.
VARIABLES = ('CUDA_VISIBLE_DEVICES', 'CUBLAS_WORKSPACE_CONFIG', 'HIP_VISIBLE_DEVICES', 'HOSTNAME', 'KMP_AFFINITY', 'LOCAL_RANK',
             'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'MKL_NUM_THREADS', 'NODE_RANK', 'OMP_NUM_THREADS', 'OMP_PROC_BIND',
             'PYTHONHASHSEED', 'PYTORCH_CUDA_ALLOC_CONF', 'RANK', 'SLURM_JOB_ID', 'SLURM_JOB_NAME', 'SLURM_JOB_NODELIST',
             'SLURM_JOB_PARTITION', 'SLURM_PROCID', 'SLURM_STEP_ID', 'TORCHELASTIC_RESTART_COUNT', 'TORCHELASTIC_RUN_ID',
             'TOKENIZERS_PARALLELISM', 'WORLD_SIZE', 'XLA_FLAGS')
FAMILIES = ('NCCL_', 'GLOO_', 'TORCH_NCCL_', 'UCX_')
# Frameworks whose version is worth a line of its own, where they are loaded.
FRAMEWORKS = ('torch', 'lightning', 'pytorch_lightning', 'transformers', 'keras', 'tensorflow', 'jax', 'numpy', 'accelerate')


def variables(env):
    wanted = set(VARIABLES) | set(filter(None, env.get('DPTRACK_ENV', '').split(',')))
    return {name: env[name] for name in sorted(env) if name in wanted or name.startswith(FAMILIES)}


def processor():
    try:
        with open('/proc/cpuinfo') as f:
            return next((line.split(':', 1)[1].strip() for line in f if line.startswith('model name')), '')
    except OSError:
        return ''


def memory_bytes():
    try:
        return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    except (ValueError, OSError):
        return 0


def gpus():
    """Names of the devices, where the program uses them already: asking would start the driver."""
    torch = sys.modules.get('torch')
    try:
        if torch and torch.cuda.is_initialized():
            return ', '.join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
    except Exception:
        pass
    return ''


def gpu_uuid():
    """Of the device that the program works on, where it uses one already; '' otherwise."""
    torch = sys.modules.get('torch')
    try:
        if torch and torch.cuda.is_initialized():
            return 'GPU-%s' % torch.cuda.get_device_properties(torch.cuda.current_device()).uuid
    except Exception:  # an older version has no uuid
        pass
    return ''


def command():
    argv = getattr(sys, 'orig_argv', None) or [sys.executable, *sys.argv]
    return ' '.join(shlex.quote(word) for word in argv)


def collect(env, scrubber):
    """{name: text}, nothing empty."""
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
