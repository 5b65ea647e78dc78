# SPDX-License-Identifier: Apache-2.0
"""Collects the code state: git's commit, branch, remote and diff of the working tree, and the installed packages. Calls git
with a timeout; imports no package."""
from __future__ import annotations

import os
import subprocess
import sys

DIFF_BYTES = 1 << 20
GIT_S = 5.0


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


def collect() -> dict[str, str]:
    """Returns {name: text} without empty values."""
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
