# SPDX-License-Identifier: Apache-2.0
"""Time and memory of a step, measured from outside: of whole processes that end with JSON on their standard output."""
import json
import os
import subprocess
import tempfile
import time


class Failed(Exception):
    pass


def timed(command, env=None):
    """Output, seconds of wall clock and of processors, and peak resident bytes of a process."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=log, env=env)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - start
        child.returncode = status
        out.seek(0)
        log.seek(0)
        if status:
            raise Failed("%s failed: %s" % (" ".join(command[3:6]), (log.read().strip().splitlines() or ["status %d" % status])[-1]))
        text = out.read()
        return json.loads(text[text.index("{"):]), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def step(run, short, long):
    """run(n): timed() of a process of n steps. Returns the output of the longer one, seconds of a step by wall clock and
    by processors, and peak bytes: start-up and compilation, which both have, do not count."""
    _, wall_short, cpu_short, _ = run(short)
    last, wall_long, cpu_long, peak = run(long)
    if wall_long <= wall_short:
        raise Failed("%d steps took no longer than %d: the machine is too busy to measure on" % (long, short))
    return last, (wall_long - wall_short) / (long - short), (cpu_long - cpu_short) / (long - short), peak
