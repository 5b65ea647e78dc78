#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command of the guides runs on small sets, and prints what the page shows. Blocks that need hardware, another
machine or other packages are counted, with what they need.

    guides.py               the pages of QUICK, as part of make check
    guides.py --all         every page (a long command)
    guides.py PAGE...       these, by file name without .md"""
import os
import re
import sys

import page

GUIDES = os.path.join(page.SRC, "docs", "guides")
QUICK = ["accumulation", "backup", "c", "lmdb", "planning", "python", "tensorboard", "tls", "wandb"]
# What makes a page quick here, without changing what its commands do.
CHANGES = [(r"/usr/share/datasets/fashion-mnist", "data"),
           (r"^ln -sfn data data$", ":"),
           (r"--image-size 28 --in-channels 1 --classes 10", "--image-size 12 --in-channels 1 --classes 10"),
           (r"--global-batch-size 128", "--global-batch-size 32"),
           (r"-b 128", "-b 32"),
           (r"--steps (\d+)", "--steps 3"),
           (r"--max-steps (20|50)", "--max-steps 3"),
           (r"--save-steps 50", "--save-steps 2"),
           (r"--trace-steps 10:13", "--trace-steps 2:3"),
           (r"--seconds 5", "--seconds 2"),
           (r"^timeout -s KILL 20 dptrain ", "DPTRAIN_TEST_DIE=launcher:1 " + os.path.join(page.BUILD, "tests", "dptrain") + " "),
           (r"https://data\.example", "$WEB"),
           (r"-Itracker ", "-I$SRC/tracker ")]


def main(words):
    every = sorted(name[:-3] for name in os.listdir(GUIDES) if name.endswith(".md"))
    names = every if words == ["--all"] else words or QUICK
    failed, ran, left_out = [], 0, []
    prepare = re.search(r"^export PATH=.*$", page.read("docs/guides/README.md"), flags=re.M)[0]
    for name in names:
        guide = page.Page(f"docs/guides/{name}.md", CHANGES, before=prepare)
        wrong = guide.run()
        ran += guide.count
        left_out += [f"{name}: {line}" for line in guide.left_out]
        print(f"{name}: {'FAILED' if wrong else 'ok'}, {guide.count} commands", flush=True)
        if wrong:
            failed.append(name)
            print(f"docs/guides/{name}.md: {wrong}", flush=True)
    for line in left_out:
        print("not run: " + line)
    print(f"{len(names)} pages, {ran} commands ran, {len(left_out)} blocks did not")
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


main(sys.argv[1:])
