# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel (PEP 517): the package and libdptrack.so, compiled from the C sources of this tree. Requires a C compiler and
zlib's header, and no network; without them the wheel uses an installed library, else the same in Python (dptrack/pure).

The distribution has the name of a release's wheel, which also has the program, and a lower version: the wheel replaces it.
It never replaces the wheel."""
import base64
import ctypes.util
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
ROOMS = ('base', 'curl', 'event', 'run', 'sink', 'system')
LIBRARY = 'libdptrack.so'
SYMBOLS = 'tracker/dptrack.map'
EXTRAS = [('Provides-Extra', 'mcp'), ('Requires-Dist', 'mcp>=2,<3; python_version >= "3.10" and extra == "mcp"')]


def version():
    with open(os.path.join(TOP, 'configure.ac'), encoding='utf-8') as f:
        return re.search(r'AC_INIT\(\[dptrack\], \[([^]]+)\]', f.read())[1]


def client_version():
    """Below the version of a release's wheel."""
    return version() + '.dev0+client'


def refuse_environment():
    """The program would be removed with the wheel that has it."""
    program = os.path.join(sysconfig.get_path('purelib'), 'dptrack', 'bin', 'dptrack')
    if os.path.exists(program):
        raise SystemExit('dptrack: %s: this environment has the wheel dptrack, client and program: use it as it is, or run pip uninstall '
                         'dptrack first' % sys.prefix)


def sources():
    for room in ROOMS:
        folder = os.path.join(TOP, 'tracker', room)
        yield from sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith('.c'))


def compiler():
    named = os.environ.get('CC')
    if named:
        return shlex.split(named)
    found = next((shutil.which(name) for name in ('cc', 'gcc', 'clang') if shutil.which(name)), None)
    return [found] if found else None


def compile_library(cc, to):
    """None, or in a few lines why it could not be built."""
    with tempfile.TemporaryDirectory() as made:
        with open(os.path.join(made, 'config.h'), 'w', encoding='utf-8') as f:
            f.write('#define PACKAGE_VERSION "%s"\n#define PACKAGE_STRING "dptrack %s"\n' % (version(), version()))
        flags = ['-std=gnu11', '-O2', '-fPIC', '-shared', '-pthread', '-D_GNU_SOURCE', '-I' + TOP, '-I' + made,
                 '-Wl,-z,defs', '-Wl,--version-script=' + os.path.join(TOP, SYMBOLS), '-Wl,-soname,' + LIBRARY]
        flags += shlex.split(os.environ.get('CFLAGS', '')) + shlex.split(os.environ.get('LDFLAGS', ''))
        try:
            done = subprocess.run([*cc, *flags, '-o', to, *sources(), '-lz', '-lm', '-ldl'], capture_output=True, text=True)
        except OSError as error:
            return 'the C compiler %s cannot be started: %s' % (cc[0], error.strerror)
    if not done.returncode:
        return None
    errors = [line for line in done.stderr.splitlines() if 'error' in line.lower()]
    hint = ' (Debian: zlib1g-dev)' if 'zlib.h' in done.stderr else ''
    return '%s failed%s: %s' % (' '.join(cc), hint, '; '.join(errors[:3]) or 'exit status %d' % done.returncode)


def make_library(folder):
    """The library's path in folder, or None where an installed one will do, or Python."""
    to, cc = os.path.join(folder, LIBRARY), compiler()
    why = compile_library(cc, to) if cc else 'no C compiler was found (Debian: gcc)'
    if why is None:
        return to
    print('dptrack: %s; %s is used' % (why, 'the installed libdptrack' if ctypes.util.find_library('dptrack') else 'Python'), file=sys.stderr)
    return None


def platform_tag(library):
    if library is None:
        return 'any'
    return sysconfig.get_platform().replace('-', '_').replace('.', '_')


def metadata():
    return ('Metadata-Version: 2.1\nName: dptrack\nVersion: %s\nSummary: Records training runs: a thin layer over libdptrack\n'
            'Author: the dptrack authors\nLicense: Apache-2.0\nRequires-Python: >=3.8\n%s' % (client_version(), ''.join('%s: %s\n' % field for field in EXTRAS)))


def package_files():
    package = os.path.join(HERE, 'dptrack')
    for folder, inner, names in os.walk(package):
        inner[:] = sorted(d for d in inner if d != '__pycache__')
        for name in sorted(names):
            if name.endswith('.py') or name in ('METADATA', 'py.typed'):
                path = os.path.join(folder, name)
                yield os.path.relpath(path, HERE), path


def write_wheel(path, tag, files):
    info = 'dptrack-%s.dist-info/' % client_version()
    record = []
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data):
            wheel.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
            record.append('%s,sha256=%s,%d\n' % (name, digest, len(data)))

        for name, source in files:
            with open(source, 'rb') as f:
                add(name, f.read())
        add(info + 'METADATA', metadata().encode())
        add(info + 'WHEEL', ('Wheel-Version: 1.0\nGenerator: build_dptrack\nRoot-Is-Purelib: %s\nTag: %s\n' %
                             ('true' if tag.endswith('any') else 'false', tag)).encode())
        record.append(info + 'RECORD,,\n')
        wheel.writestr(info + 'RECORD', ''.join(record))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    refuse_environment()
    with tempfile.TemporaryDirectory() as made:
        library = make_library(made)
        tag = 'py3-none-' + platform_tag(library)
        name = 'dptrack-%s-%s.whl' % (client_version(), tag)
        files = list(package_files())
        if library:
            files.append(('dptrack/' + LIBRARY, library))
        write_wheel(os.path.join(wheel_directory, name), tag, files)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit('dptrack is built from its own source tree: pip install ./tracker/python there, or pip wheel')
