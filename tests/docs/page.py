# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of documents: runs the commands of a page in a scratch folder, with the build."""
import os
import re
import subprocess
import sys
import tempfile

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "build"))
sys.path.insert(0, os.path.join(SRC, "tests", "train"))
import helper  # noqa: E402

LIMIT_S = 500
SERVE = r"build/dptrack serve --logdir runs\b.*"
SERVED = """build/dptrack serve --logdir runs --port 0 >serve.log 2>&1 & server=$!
for _ in $(seq 300); do grep -q serving serve.log && break; sleep 0.1; done
ADDRESS=$(sed -n 's/^dptrack: serving //p' serve.log)"""


def blocks(text, language):
    """The fenced blocks of a language, each as one text."""
    return re.findall(r"^```%s\n(.*?)^```$" % language, text, flags=re.M | re.S)


def commands(text):
    """All commands of a page in order; a continued one is one text of several lines."""
    script = "".join(blocks(text, "sh"))
    return re.findall(r"(?:^.*\\\n)*^.+$", script, flags=re.M)


def replaced(command, changes, used):
    """The command with each (pattern, text) applied; adds the patterns that matched to `used`."""
    for old, new in changes:
        command, n = re.subn(old, lambda _, new=new: new, command, flags=re.M)
        used.update([old] if n else [])
    return command


def run(path, changes, skips, without_section=None):
    """Runs the commands of a page except those that match a skip ({pattern: reason}); exits with 1 if one fails."""
    with open(os.path.join(SRC, path), encoding="utf-8") as f:
        text = f.read()
    if without_section:
        text = re.sub(r"^## %s\n.*?(?=^## )" % without_section, "", text, flags=re.M | re.S)
    used, script, skipped, count = set(), ["set -e", "trap '[ -z \"$server\" ] || kill $server' EXIT"], [], 0
    for command in commands(text):
        reason = next((why for pattern, why in skips.items() if re.search(pattern, command)), None)
        if reason:
            skipped.append(f"{command.split('#')[0].strip()}: {reason}")
            continue
        count += 1
        script.append(replaced(command, [(SERVE, SERVED), *changes], used))
    unused = {old for old, _ in changes} - used
    if unused:
        sys.exit(f"{path}: no command matches {sorted(unused)}")
    with tempfile.TemporaryDirectory(prefix="dptrack-docs-") as folder:
        done = start(folder, text, "\n".join(script))
    for line in skipped:
        print("not run: " + line)
    if done.returncode:
        sys.exit(f"{path}: exit {done.returncode}\n{done.stdout}")
    print(f"{path}: {count} commands ran, {len(skipped)} did not")


def start(folder, text, script):
    """Runs the script in a folder with the build, a small data set and the page's program first.py; returns the
    process."""
    os.symlink(BUILD, os.path.join(folder, "build"))
    os.mkdir(os.path.join(folder, "data"))
    helper.make_set(os.path.join(folder, "data"), 512, 64)
    for program in blocks(text, "python")[:1]:
        with open(os.path.join(folder, "first.py"), "w", encoding="utf-8") as f:
            f.write(program)
    env = helper.environment({"PATH": BUILD + ":" + os.environ["PATH"], "PYTHONPATH": os.path.join(SRC, "tracker", "python"), "SRC": SRC,
                              "DPTRACK_LIBRARY": os.path.join(BUILD, ".libs", "libdptrack.so"), "PYTHONDONTWRITEBYTECODE": "1"})
    return subprocess.run(["bash", "-x"], input=script, cwd=folder, env=env, timeout=LIMIT_S, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
