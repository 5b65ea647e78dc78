# SPDX-License-Identifier: Apache-2.0
"""Each lint detects the faults it is for: a copy of the tree passes, and with one planted fault the lint fails and
names the place. The build is not repeated: of the planted files, only those that need it are compiled."""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import tree

LINTS = ("includes.sh", "banned.sh", "functions.sh", "circles.py", "calls.py", "folders.py", "columns.py", "page.py",
         "documents.py", "licence.py", "language.py", "dialect.py", "tarball.py", "tables.sh", "audited.py")
HEAD = f"/* {tree.LICENCE} */\n/* planted.c: a fault. */\n"


class Copy:
    """The tree without git, objects and packages; planted files are removed or restored again."""

    def __init__(self, folder):
        self.folder, self.planted = folder, {}
        tops = [name for name in os.listdir(tree.SRC) if os.path.isfile(f"{tree.SRC}/{name}")]
        for path in [*tree.files(""), *tops]:
            if not path.startswith("tests/fuzz/corpus/"):
                os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
                shutil.copy(f"{tree.SRC}/{path}", f"{folder}/{path}")

    def write(self, path, text):
        os.makedirs(os.path.dirname(f"{self.folder}/{path}"), exist_ok=True)
        self.planted[path] = tree.read(path) if os.path.exists(f"{tree.SRC}/{path}") else None
        with open(f"{self.folder}/{path}", "w", encoding="utf-8") as f:
            f.write(text)

    def compile(self, path, text):
        """Plants a source and compiles it; SOURCE=OBJECT for calls.py."""
        self.write(path, HEAD + text)
        at = f"{self.folder}/{path}"
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-c", "-o", f"{at}.o", at], check=True)
        self.planted[f"{path}.o"] = None
        return f"{path}={at}.o"

    def lint(self, name, *args):
        """The output of a lint on the copy; None where it passes."""
        at = f"{self.folder}/tests/lint/{name}"
        env = dict(os.environ, srcdir=self.folder, builddir=os.path.abspath(tree.BUILD), PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run(["sh" if name.endswith(".sh") else sys.executable, at, *args], env=env, capture_output=True,
                              text=True, check=False)
        return None if done.returncode in (0, 77) else done.stdout + done.stderr

    def clear(self):
        for path, text in self.planted.items():
            if text is None:
                os.unlink(f"{self.folder}/{path}")
            else:
                with open(f"{self.folder}/{path}", "w", encoding="utf-8") as f:
                    f.write(text)
        self.planted = {}


def past_a_face(copy):
    copy.write("tracker/base/planted.h", "/* planted.h: no face. */\n")
    copy.write("web/api/planted.c", HEAD + '#include "tracker/base/planted.h"\n')
    return copy.lint("includes.sh"), "web/api/planted.c:3: tracker/base/planted.h is no face of tracker/base"


def sqlite_outside(copy):
    copy.write("web/api/planted.c", HEAD + "int planted(void *s) { return sqlite3_step(s); }\n")
    return copy.lint("banned.sh"), "web/api/planted.c:3:"


def namespace_without_a_name(copy):
    copy.write("trainer/ops/planted.cu", "namespace {\n} // namespace\n")
    return copy.lint("banned.sh"), "trainer/ops/planted.cu:1:"


def replaced_word(copy):
    copy.write("trainer/run/planted.c", HEAD + "int planted(const struct rank_context *seat);\n")
    return copy.lint("banned.sh"), "trainer/run/planted.c:3:"


def circle_by_calls(copy):
    a = copy.compile("trainer/graph/planted_a.c", "void planted_b(void);\nvoid planted_a(void) { planted_b(); }\n")
    b = copy.compile("trainer/graph/planted_b.c", "void planted_a(void);\nvoid planted_b(void) { planted_a(); }\n")
    return copy.lint("calls.py", a, b), "trainer/graph/planted_a.c -> trainer/graph/planted_b.c: uses planted_b"


def circle_of_rooms_by_calls(copy):
    a = copy.compile("trainer/graph/planted_a.c", "void planted_b(void);\nvoid planted_a(void) { planted_b(); }\n")
    b = copy.compile("trainer/models/planted_b.c", "void planted_c(void);\nvoid planted_b(void) { planted_c(); }\n")
    c = copy.compile("trainer/graph/planted_c.c", "void planted_c(void) { }\n")
    return copy.lint("calls.py", a, b, c), "trainer/graph/planted_a.c uses planted_b of trainer/models/planted_b.c"


def symbol_twice(copy):
    a = copy.compile("trainer/graph/planted_a.c", "void planted(void) { }\n")
    b = copy.compile("web/api/planted_b.c", "void planted(void) { }\n")
    return copy.lint("calls.py", a, b), "planted is exported by trainer/graph/planted_a.c and web/api/planted_b.c"


def circle_of_headers(copy):
    for one, other in ("ab", "ba"):
        copy.write(f"trainer/graph/planted_{one}.h", HEAD + f'#include "trainer/graph/planted_{other}.h"\n')
    return copy.lint("circles.py"), "trainer/graph/planted_a.h -> trainer/graph/planted_b.h"


def circle_of_rooms(copy):
    copy.write("trainer/graph/planted.c", HEAD + '#include "trainer/models/models.h"\n')
    return copy.lint("circles.py"), "trainer/graph/planted.c includes trainer/models/models.h"


def module_too_many(copy):
    for at in range(26):
        copy.write(f"tests/planted/m{at}.py", "")
    return copy.lint("folders.py"), "tests/planted: 26 modules"


def line_too_wide(copy):
    copy.write("trainer/graph/planted.c", HEAD + "\t/*" + "x" * 108 + "*/\n\t/*" + "x" * 109 + "*/\n")
    return copy.lint("columns.py"), "trainer/graph/planted.c:4: 121 columns"


def script_function_too_long(copy):
    copy.write("web/ui/src/base/planted.ts", "export function planted() {\n" + "  void 0;\n" * 71 + "}\n")
    return copy.lint("page.py"), "web/ui/src/base/planted.ts:1"


def fetch_outside(copy):
    copy.write("web/ui/src/base/planted.ts", 'export const planted = () => fetch("/api/v1/runs");\n')
    return copy.lint("page.py"), "web/ui/src/base/planted.ts:1"


def text_in_lower_case(copy):
    copy.write("web/ui/src/views/base/planted.tsx", "export const Planted = () => <h2>no runs yet</h2>;\n")
    return copy.lint("page.py"), 'web/ui/src/views/base/planted.tsx:1: "no runs yet" stands alone'


def readme_too_long(copy):
    copy.write("README.md", "line\n" * 121)
    return copy.lint("documents.py"), "README.md: 121 lines, at most 120"


def link_to_nothing(copy):
    copy.write("NEWS.md", "[gone](docs/gone.md)\n")
    return copy.lint("documents.py"), "NEWS.md:1: link to docs/gone.md"


def path_of_nothing(copy):
    copy.write("NEWS.md", "`trainer/gone.c`\n")
    return copy.lint("documents.py"), "NEWS.md:1: names trainer/gone.c"


def name_of_nothing(copy):
    copy.write("docs/internals/planted.md", "`planted_" + "gone` does it.\n")
    return copy.lint("documents.py"), "docs/internals/planted.md:1: names planted_" + "gone, which"


def function_of_another_file(copy):
    copy.write("docs/internals/planted.md", "`plan.c:run_planner`, `launch.c:run_" + "planner`.\n```\n plan   trainer/graph/plans.c\n```\n")
    return copy.lint("documents.py"), ["docs/internals/planted.md:1: names run_planner, which is not in launch.c",
                                       "docs/internals/planted.md:3: names trainer/graph/plans.c, which"]


def room_without_a_line(copy):
    copy.write("trainer/planted/planted.c", HEAD)
    return copy.lint("documents.py"), "ARCHITECTURE.md: names no trainer/planted"


def optimiser_without_tests(copy):
    path = "trainer/optimizers/optimizers.def"
    copy.write(path, tree.read(path) + "OPTIMIZER(planted, BETAS, 1, 0, 0.9, 0.99, 0)\n")
    return copy.lint("tables.sh"), [f"optimiser planted has no {what} in tests/" for what in ("case", "run")]


def change_without_an_entry(copy):
    copy.write("web/store/files/changes.def", tree.read("web/store/files/changes.def") + "CHANGE(planted)\n")
    copy.write("web/store/files/planted.c", HEAD + 'const struct change_ops planted = { .name = "planted" };\n')
    return copy.lint("audited.py"), "web/store/files/changes.def: planted: give it .action"


def no_licence(copy):
    copy.write("trainer/graph/planted.c", "/* planted.c: a fault. */\n")
    return copy.lint("licence.py"), "trainer/graph/planted.c: must begin with"


def left_out_of_the_tarball(copy):
    copy.write("trainer/graph/planted.c", HEAD)
    return copy.lint("tarball.py"), "trainer/graph/planted.c: not in the tarball"


LANGUAGE = HEAD + """struct planted_tag {
	int n;
};

static int planted(void)
{
	return 0;
}

static int planted_twice(int a, int b, int c, int d, int e, int f)
{
""" + "\t;\n" * 20 + """	return planted();
}
"""


def language(copy):
    """All faults at once, because the lint reads the complete tree."""
    for folder in "graph", "models":
        copy.write(f"trainer/{folder}/planted.c", LANGUAGE)
    copy.write("web/planted/planted.c", HEAD)
    copy.write("web/api/planted_long.h", HEAD * 50000)
    copy.write("tests/lint/names.txt", tree.read("tests/lint/names.txt") + "static planted_unneeded: gone\n")
    return copy.lint("language.py"), ["models/planted.c:12: planted_twice: this static name is used", "planted_tag: this struct tag is used",
                  "planted.c: planted: this file name is used", "planted: a static function is named with two words",
                  "planted_twice: more than 5 parameters", "planted_twice: 22 lines without a comment",
                  "static planted_unneeded: this entry is not needed", "web/planted: no line budget", "web/api: "]


def dialect(copy):
    copy.write("trainer/graph/planted.c", HEAD + "/* No" + "body knows. */\n")
    return copy.lint("dialect.py"), "trainer/graph/planted.c:3: No" + "body"


PLANTS = (past_a_face, sqlite_outside, namespace_without_a_name, replaced_word, circle_by_calls, circle_of_rooms_by_calls, symbol_twice, circle_of_headers,
          circle_of_rooms, module_too_many, line_too_wide, script_function_too_long, fetch_outside,
          text_in_lower_case, readme_too_long, link_to_nothing,
          path_of_nothing, name_of_nothing, function_of_another_file, room_without_a_line, optimiser_without_tests, change_without_an_entry, no_licence, left_out_of_the_tarball, language,
          dialect)


def check(copy):
    bad = [f"{name} of the clean tree: {said}" for name in LINTS if (said := copy.lint(name))]
    for plant in PLANTS:
        said, places = plant(copy)
        for place in [places] if isinstance(places, str) else places:
            if place not in (said or ""):
                bad.append(f"{plant.__name__}: no lint failed with \"{place}\", but said: {said}")
        copy.clear()
    return bad


def main():
    with tempfile.TemporaryDirectory() as folder:
        bad = check(Copy(folder))
    print("\n".join(bad) or f"planted: {len(PLANTS)} faults, each found")
    sys.exit(1 if bad else 0)


main()
