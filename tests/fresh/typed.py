# SPDX-License-Identifier: Apache-2.0
"""README, tutorial and guides in a bare Debian, as a new user with sudo types them: each page in a clean shell in the folder of the
source, each block as it is. What a reader does besides is done here: a server and ./quickstart run in a shell of their own, ctrl-C
ends ./quickstart, data and files that a page names are there."""
import os
import random
import shlex
import shutil
import sys
import tempfile

import debian

sys.path.insert(0, os.path.join(debian.TOP, "tests", "docs"))
PREPARED = "docs/guides/README.md"
DRAWN = 10
GUIDES = sorted(name[:-3] for name in os.listdir(os.path.join(debian.TOP, "docs", "guides")) if name.endswith(".md") and name != "README.md")
SHELL = r"""cd ~/dptrack && mkdir -p ~/logs && set -e
trap end_server EXIT
in_another_shell() { # text of its output to wait for, command…
	end_server
	: >~/logs/other
	"${@:2}" > >(tee ~/logs/other) 2>&1 & other=$!
	until grep -q "$1" ~/logs/other; do
		kill -0 $other 2>/dev/null || return 1
		sleep 0.5
	done
}
end_server() { [ -z "$other" ] || { kill $other; wait $other || true; other=; }; }
dptrack() { if [ "$1" = serve ]; then in_another_shell '^dptrack: serving' "$(type -P dptrack)" "$@"; else command dptrack "$@"; fi; }
./quickstart() { in_another_shell 'ctrl-C stops the server' sh quickstart "$@"; end_server; }
"""


def stage_data(root):
    """What pages call by name and a reader has: sets of each format, texts, logs of other programs."""
    import stage
    with tempfile.TemporaryDirectory() as folder:
        stage.make(folder, "images", True)
        shutil.rmtree(folder + "/data")
        shutil.copytree(folder, f"{root.folder}{root.home}/dptrack", dirs_exist_ok=True)
    root.quietly(f"chown -R {root.user}: {root.home}")


def drawn(commit):
    """Ten guides that have a block to type; another ten for another commit."""
    import page
    typed = [name for name in GUIDES if any(part.language == "sh" and not part.needs for part in page.parts(page.read(f"docs/guides/{name}.md")))]
    return sorted(random.Random(commit).sample(typed, DRAWN))


def script(path):
    """The page for one shell, its files by name, and the count of blocks that need something that is not there."""
    import page
    parts = page.parts(page.read(path))
    before = page.parts(page.read(PREPARED))[0].text if path.startswith("docs/guides/") else ""
    blocks = [part for part in parts if part.language == "sh"]
    typed = "".join(f"echo {shlex.quote(f'fresh: {path}, line {part.line}')}\n{part.text}" for part in blocks if not part.needs)
    files = {part.file or "first.py": part.text for part in reversed(parts)
             if (part.file and part.language != "sh") or part.language == "python"}
    return SHELL + before + typed, files, sum(bool(part.needs) for part in blocks)


def type_page(root, log, path):
    """Returns True if a block fails."""
    text, files, left_out = script(path)
    for name, content in files.items():
        with open(f"{root.folder}{root.home}/dptrack/{name}", "w", encoding="utf-8") as f:
            f.write(content)
    with debian.step(f"{path}, {left_out} blocks need something else"):
        return root.run(["bash", "-c", text], log)


def pages(args):
    commit = debian.output(["git", "-C", debian.TOP, "rev-parse", "HEAD"])[1]
    guides = args.names or drawn(commit)
    return ["README.md", *([] if args.names else ["docs/tutorial.md"]), *(f"docs/guides/{name}.md" for name in guides)]


def typed(args, log):
    root = debian.machine(args.release, args.name, debian.USER)
    root.clone()
    stage_data(root)
    failed = [path for path in pages(args) if type_page(root, log, path)]
    print(f"fresh: typed {', '.join(pages(args))}; failed: {', '.join(failed) or 'none'}", flush=True)
    if not failed:
        debian.remove(root.folder)
    return bool(failed)
