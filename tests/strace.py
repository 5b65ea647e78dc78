# SPDX-License-Identifier: Apache-2.0
"""Runs a program under strace: the addresses it and its children connect to, and the arguments of executed programs."""
import os
import re
import shutil
import subprocess

ADDRESS = re.compile(r"sin6?_port=htons\((\d+)\).*?(?:inet_addr\(\"|inet_pton\(AF_INET6, \")([^\"]+)\"")


def reason(folder):
    """Why tracing is impossible here, or None."""
    if not shutil.which("strace"):
        return "strace is not installed"
    probe = subprocess.run(["strace", "-o", os.path.join(folder, "probe"), "true"], capture_output=True, text=True)
    return f"strace may not trace here: {probe.stderr.strip()[:80]}" if probe.returncode else None


class Traced:
    """`program` starts the given program, as the same process, and records its connections and the programs it
    executes. Leak checking is disabled, because it does not work under strace."""

    def __init__(self, program, folder):
        self.trace, self.program = os.path.join(folder, "trace"), os.path.join(folder, "traced")
        with open(self.program, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nexport ASAN_OPTIONS=detect_leaks=0\n"
                    f"exec strace -D -f -s 4096 -o {self.trace} -e trace=connect,execve {program} \"$@\"\n")
        os.chmod(self.program, 0o755)

    def lines(self):
        with open(self.trace, encoding="utf-8", errors="replace") as f:
            return f.read().splitlines()

    def ended(self):
        """Whether the trace is complete and the program succeeded."""
        lines = self.lines()
        return bool(lines) and "exited with 0" in lines[-1]

    def reached(self):
        """Network addresses, as HOST:PORT."""
        found = [ADDRESS.search(line) for line in self.lines() if "connect(" in line and "AF_INET" in line]
        return {f"{m[2]}:{m[1]}" for m in found}

    def executed(self):
        return [line for line in self.lines() if "execve(" in line]
