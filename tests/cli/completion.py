#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion of both programs, in each shell that this machine has: the scripts that make install installs, at work in a started
shell, against what the programs' own --help lists."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
import lib

TRAINER = os.path.join(os.path.dirname(lib.PROGRAM), "dptrain")
PROGRAMS = {"dptrack": lib.PROGRAM, "dptrain": TRAINER}
RUNS = ("digits/red-fox-1a2b3c4d", "digits/blue-owl-0a0b0c0d", "my words/green-elk-99aabbcc")


def scripts(folder):
    for program, path in PROGRAMS.items():
        os.symlink(path, os.path.join(folder, program))
        for shell in ("bash", "zsh", "fish"):
            with open(os.path.join(lib.SOURCE, "schema", "completion", shell + ".in"), encoding="utf-8") as f:
                text = f.read()
            with open(os.path.join(folder, f"{program}.{shell}"), "w", encoding="utf-8") as f:
                f.write(text.replace("@program@", program))


def environment(folder):
    return {**os.environ, "PATH": folder + ":" + os.environ["PATH"], "HOME": folder, "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def shell_says(args, folder):
    r = subprocess.run(args, capture_output=True, text=True, timeout=60, cwd=folder, env=environment(folder))
    lib.equal((r.returncode, r.stderr), (0, ""), " ".join(args[:2]))
    return r.stdout.splitlines()


def bash(folder, line):
    words = re.findall(r"\S+|\s$", line)
    words[-1] = words[-1].strip()
    quoted = " ".join(f'"{w}"' for w in words)
    return shell_says(["bash", "--norc", "-c", f'. ./{words[0]}.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _{words[0]}; '
                       'printf "%s\\n" "${COMPREPLY[@]}"'], folder)


def fish(folder, line):
    name = line.split()[0]
    return [found.partition("\t")[0] for found in shell_says(["fish", "--no-config", "-c", f"source {name}.fish; complete -C '{line}'"], folder)]


def zsh(folder, line):
    """Types the line and a tab on a terminal, twice for the list, and returns the words that appear."""
    pid, fd = pty.fork()
    if not pid:
        os.chdir(folder)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**environment(folder), "COLUMNS": "200"})
    name = line.split()[0]
    seen = b""

    def send(text, until, most=30):
        nonlocal seen
        seen = b""
        os.write(fd, text.encode())
        end = time.monotonic() + most
        while until not in seen and time.monotonic() < end and select.select([fd], [], [], 1)[0] is not None:
            if select.select([fd], [], [], 0.2)[0]:
                seen += os.read(fd, 65536)
    send(f"PS1=; unsetopt prompt_cr; autoload -U compinit; compinit -u -D; source ./{name}.zsh; echo rea''dy\n", b"ready")
    send(line + "\t\t", b"no-such-text", 3)
    os.write(fd, b"\x03exit\n")
    os.close(fd)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return re.findall(r"[\w./-]+", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", " ", seen.decode(errors="replace")))


CASES = (("dptrack ", {"serve", "ls", "show", "restore", "help"}),
         ("dptrack help comp", {"compare"}),
         ("dptrack ls --ord", {"--order-by"}),
         ("dptrack rm --", {"--filter", "--yes", "--url"}),
         ("dptrack token ", {"add", "list", "revoke"}),
         ("dptrack token add x --scope ", {"read", "write", "admin"}),
         ("dptrack show ", {"red-fox-1a2b3c4d", "blue-owl-0a0b0c0d"}),
         ("dptrack show 1a", {"1a2b3c4d"}),
         ("dptrack export --experiment d", {"digits"}),
         ("dptrain ", {"train", "plan", "help", "sweep"}),
         ("dptrain --lr-", {"--lr-scheduler", "--lr-gamma", "--lr-warmup-epochs"}),
         ("dptrain plan --go", {"--goal"}),
         ("dptrain --strategy ", {"single", "ddp", "fsdp", "pdp", "dp"}),
         ("dptrain --model gpt2-3", {"gpt2-350m"}),
         ("dptrain bench --profile ", {"op", "node", "block"}),
         ("dptrain --experiment dig", {"digits"}),
         ("dptrain --run-name r", {"red-fox"}),
         ("dptrain find ", {"lr", "batch"}),
         ("dptrack ls --logdir ru", {"runs"}),
         ("dptrain --config zz", {"zz.json"}))


def listed(folder):
    """Every command and flag that --help lists is a candidate."""
    for program in PROGRAMS:
        text = subprocess.run([PROGRAMS[program], "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
        commands = re.findall(r"^  (?!dptra)(\w+) +[a-z]", text, re.M)
        lib.check(len(commands) >= 12, f"{program}: commands: {commands}")
        for command in commands:
            every = subprocess.run([PROGRAMS[program], command, "--help", "all"], capture_output=True, text=True, timeout=60, check=True).stdout
            flags = {"--" + f for f in re.findall(r"^  (?:-\w, )?--(?:\[no-\])?([a-z0-9-]+)", every, re.M)}
            offered = subprocess.run([PROGRAMS[program], "complete", command, "--"], capture_output=True, text=True, timeout=60, check=True, cwd=folder)
            names = {line.partition("\t")[0] for line in offered.stdout.splitlines()}
            lib.check(flags and flags <= names, f"{program} {command}: not offered: {sorted(flags - names)}")


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        for run in RUNS:
            os.makedirs(os.path.join(folder, "runs", run))
        open(os.path.join(folder, "zz.json"), "w", encoding="utf-8").close()
        scripts(folder)
        listed(folder)
        present = [(name, ask) for name, ask in (("bash", bash), ("fish", fish), ("zsh", zsh)) if shutil.which(name)]
        for name, ask in present:
            for line, expected in CASES:
                found = {word.rstrip("/") for word in ask(folder, line)}
                lib.check(expected <= found or (name == "zsh" and any(e in " ".join(found) for e in expected) and len(expected) == 1),
                          f"{name}: {line!r}: {sorted(expected - found)} not among {sorted(found)}")
        print("shells:", " ".join(name for name, _ in present))
    lib.finish("completion")


main()
