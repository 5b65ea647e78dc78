# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of documents: reads a page, and runs its commands in a scratch folder with the build in build/. PATH is that of
this machine: a page says itself how the programs are found.

A page is a list of parts in its order:
    a ```sh block runs, in one shell for the page. `dptrack serve` runs in the background and sets ADDRESS; a line that sets
    it to the usual port does nothing.
    a ```text block after it is its output, compared line by line: digits match any number, … matches anything, and a
    line that is only … matches any lines.
    a block after a line "`NAME`:" is a file of that name; the first Python block is also first.py.
A comment <!-- needs: WHAT --> in front of a ```sh block says that it does not run here; such blocks are counted."""
import os
import re
import shlex
import subprocess
import sys
import tempfile

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "build"))
sys.path[:0] = [os.path.join(SRC, "tests", "train"), os.path.dirname(os.path.abspath(__file__))]
import helper  # noqa: E402
import stage  # noqa: E402

LIMIT_S = 500
PART = re.compile(r"(?:^<!-- needs: (?P<needs>.*?) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", flags=re.M | re.S)
BEGIN = r"""set -e
server=
end_server() { [ -z "$server" ] || { kill $server; wait $server || true; server=; }; }
trap end_server EXIT
serve() {
	end_server
	dptrack serve "$@" --port 0 >serve.log 2>serve.err & server=$!
	for _ in $(seq 300); do grep -q serving serve.log && break; sleep 0.1; done
	ADDRESS=$(sed -n 's/^dptrack: serving //p' serve.log)
	[ -n "$ADDRESS" ] || { cat serve.err; return 1; }
}
"""
NUMBER = r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?"
MARK = "@@ block "


class Part:
    """A fenced block: its language, text, the reason why it does not run ("" if it does), and the file that it is."""

    def __init__(self, match, page):
        self.language, self.text, self.needs = match["language"], match["text"], match["needs"] or ""
        named = re.search(r"`([\w.-]+)`:\n\n$", page[:match.start()])
        self.file = named[1] if named else None
        self.line = page.count("\n", 0, match.start("text"))


def read(path):
    with open(os.path.join(SRC, path), encoding="utf-8") as f:
        return f.read()


def parts(text):
    return [Part(match, text) for match in PART.finditer(text)]


def commands(text):
    """The commands of a block; a continued one, and one that the shell ends later (a loop), is one text."""
    found, command = [], ""
    for line in text.splitlines(keepends=True):
        command += line
        open_loops = len(re.findall(r"\bdo$", command, flags=re.M)) - len(re.findall(r"^done\b", command, flags=re.M))
        if not line.endswith("\\\n") and not open_loops:
            found.append(command)
            command = ""
    return found + ([command] if command else [])


def replaced(command, changes, used):
    """The command with each (pattern, text) applied; adds the patterns that matched to `used`."""
    command = re.sub(r"^(?:export )?ADDRESS=https?://127.0.0.1:6007.*$", ":", re.sub(r"\bdptrack serve\b", "serve", command), flags=re.M)
    for old, new in changes:
        command, n = re.subn(old, new if callable(new) else lambda _, new=new: new, command, flags=re.M)
        used.update([old] if n else [])
    return command


def pattern(line):
    """Regular expression of a line of expected output."""
    pieces = re.split(rf"({NUMBER}|…| +)", line.rstrip())
    return "".join(".*" if p == "…" else r" +" if re.fullmatch(" +", p) else NUMBER if re.fullmatch(NUMBER, p) else re.escape(p)
                   for p in pieces)


def difference(expected, output):
    """The first expected line that the output lacks, None if there is none."""
    got, at, skip = [line.rstrip() for line in output.splitlines()], 0, False
    for line in expected.splitlines():
        if line.strip() == "…":
            skip = True
            continue
        wanted = re.compile(pattern(line))
        while at < len(got) and skip and not wanted.fullmatch(got[at]):
            at += 1
        if at == len(got) or not wanted.fullmatch(got[at]):
            return line
        at, skip = at + 1, False
    return None if skip or at == len(got) else f"the end, in place of: {got[at]}"


class Page:
    """A page as a script: `script`, the blocks that run by number, the output that is shown of them, what does not run."""

    def __init__(self, path, changes, skips=None, without_section=None, before=""):
        """before: commands that run before the page's."""
        self.path, self.used, self.blocks, self.shown, self.left_out, self.count = path, set(), [], {}, [], 0
        self.files, self.script, self.held = {}, [BEGIN, before], []  # held: lines of blocks that go on after `dptrack serve`
        text = read(path)
        if without_section:
            text = re.sub(r"^## %s\n.*?(?=^## )" % without_section, "", text, flags=re.M | re.S)
        ran = False
        for part in parts(text):
            if part.file and part.language != "sh":
                self.files[part.file] = part.text
            elif part.language == "sh":
                ran = self.add(part, changes, skips or {})
            elif part.language == "python":
                self.files.setdefault("first.py", part.text)
            elif part.language == "text" and ran:
                self.shown[len(self.blocks) - 1] = part.text

    def add(self, part, changes, skips):
        if re.search(r"^dptrack serve .*\n(?!```|\Z)", part.text, flags=re.M):
            self.held.append(part.line)
        if part.needs:
            self.left_out += [f"line {part.line}, {len(commands(part.text))} commands: needs {part.needs}"]
            return False
        self.script.append(f"echo {shlex.quote(MARK)}{len(self.blocks)}")
        self.blocks.append(part)
        for command in commands(part.text):
            reason = next((why for word, why in skips.items() if re.search(word, command)), None)
            if reason:
                self.left_out.append(f"{command.split('#')[0].strip()}: {reason}")
            else:
                self.count += 1
                self.script.append(replaced(command, changes, self.used))
        return True

    def run(self, changes=(), small=True):
        """Runs the page; returns a text of what is wrong, "" if nothing. Each change must match."""
        if self.held:
            return f"line {self.held}: dptrack serve keeps its shell: put what follows into another block"
        unused = {old for old, _ in changes} - self.used
        if unused:
            return f"no command matches {sorted(unused)}"
        with tempfile.TemporaryDirectory(prefix="dptrack-docs-") as folder:
            done = start(folder, self.files, "\n".join(self.script), small)
        outputs = re.split(rf"^{MARK}(\d+)\n", done.stdout, flags=re.M)[1:]
        outputs = dict(zip(map(int, outputs[::2]), outputs[1::2]))
        if done.returncode:
            last = max(outputs, default=0)
            return f"line {self.blocks[last].line}: exit {done.returncode}\n{self.blocks[last].text}{outputs.get(last, done.stdout)[-3000:]}"
        for number, expected in self.shown.items():
            lacks = difference(expected, outputs[number])
            if lacks:
                return f"line {self.blocks[number].line}: the output lacks: {lacks}\n{outputs[number][-3000:]}"
        return ""


def start(folder, files, script, small):
    """Runs a script in a folder with the build, data sets (see stage.make) and the page's files; returns the process."""
    os.symlink(BUILD, os.path.join(folder, "build"))
    stage.make(folder, script, small)
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    env = helper.environment({"PYTHONPATH": os.path.join(SRC, "tracker", "python"), "SRC": SRC,
                              "BUILD": BUILD, "DPTRACK_LIBRARY": os.path.join(BUILD, ".libs", "libdptrack.so"),
                              "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": folder + "/cache-home", **stage.servers(folder, script)})
    try:
        return subprocess.run(["bash"], input=script, cwd=folder, env=env, timeout=LIMIT_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
    finally:
        stage.end()


def run(path, changes, skips, without_section=None):
    """Runs the commands of a page except those that match a skip ({pattern: reason}); exits with 1 if one fails. Each
    change must match."""
    page = Page(path, changes, skips, without_section)
    wrong = page.run(changes, small=False)
    for line in page.left_out:
        print("not run: " + line)
    if wrong:
        sys.exit(f"{path}: {wrong}")
    print(f"{path}: {page.count} commands ran, {len(page.left_out)} did not")
