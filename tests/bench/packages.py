"""Other people's programs that figures are compared with: each set in a virtual environment of its own under the build folder,
installed from PyPI once."""
import os
import shutil
import subprocess
import sys


class Unavailable(Exception):
    """Says in one line why it cannot be installed."""


def python(build, name, packages):
    """The Python of build/venv/NAME with these packages (versions and all); made anew when others are asked for."""
    folder = os.path.abspath(os.path.join(build, "venv", name))
    program, mark, wanted = os.path.join(folder, "bin", "python"), os.path.join(folder, "complete"), " ".join(packages) + "\n"
    if os.path.exists(mark):
        with open(mark, encoding="ascii") as f:
            if f.read() == wanted:
                return program
    shutil.rmtree(folder, ignore_errors=True)
    for command in ([sys.executable, "-m", "venv", folder],
                    [program, "-m", "pip", "install", "-q", "--timeout", "20", "--retries", "1", *packages]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            said = (done.stdout.strip().splitlines() or ["no reason given"])[-1]
            raise Unavailable("%s cannot be installed: %s" % (packages[0], said))
    with open(mark, "w", encoding="ascii") as f:
        f.write(wanted)
    return program
