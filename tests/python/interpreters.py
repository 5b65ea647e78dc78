#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package under the oldest and the newest other Python from 3.8 on that this machine has, on PATH or from pyenv, in full
(DPT_TEST_FULL=1) under each: what is recorded, and what an import brings. Debian 12 has 3.11, Debian 13 has 3.13."""
import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402

VERSIONS = range(8, 15)
SCRIPTS = ('runs.py', 'lazy.py')


def minor_of(version):
    return int(version.split('.')[1])


def interpreters():
    """{version: path} of those that start."""
    found = {}
    root = os.environ.get('PYENV_ROOT', os.path.expanduser('~/.pyenv'))
    for minor in VERSIONS:
        paths = [shutil.which('python3.%d' % minor), *sorted(glob.glob('%s/versions/3.%d.*/bin/python3' % (root, minor)))]
        for path in filter(None, paths):
            done = subprocess.run([path, '-c', 'import ctypes, ssl, sys; print("%d.%d" % sys.version_info[:2])'], capture_output=True, text=True)
            if done.stdout.strip() == '3.%d' % minor:
                found.setdefault('3.%d' % minor, path)
    found.pop('%d.%d' % sys.version_info[:2], None)
    return found


def main():
    found, failed = interpreters(), []
    if not found:
        print('skipped: no Python besides %d.%d' % sys.version_info[:2])
        sys.exit(77)
    if os.environ.get('DPT_TEST_FULL') != '1':
        found = {version: found[version] for version in (min(found, key=minor_of), max(found, key=minor_of))}
    for version, path in found.items():
        for script in SCRIPTS:
            done = subprocess.run([path, os.path.join(os.path.dirname(os.path.abspath(__file__)), script)], env=dict(os.environ, srcdir=lib.SRC, builddir=lib.BUILD),
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=lib.LIMIT_S)
            if done.returncode not in (0, 77):
                failed.append('%s under %s:\n%s' % (script, version, (done.stdout + done.stderr)[-2000:]))
    print('\n'.join(failed) or 'Python %s: %s' % (', '.join(found), ', '.join(SCRIPTS)))
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
