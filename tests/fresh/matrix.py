# SPDX-License-Identifier: Apache-2.0
"""Builds in roots that lack a library: apt removes it, or its headers are deleted if another package needs it."""
import os
import time

import debian
import packages
import settings

SHORT = "-O0", "dptrain", "dptrack", "modules"
NAMES = ["none", *packages.OPTIONAL, "all"]


def fill(release, folder, wanted):
    """A root for builds: dpkg does not sync to the disk."""
    debian.copied(debian.base(release), folder)
    settings.apply(folder, debian.CODENAMES[release])
    settings.write(folder, "/etc/dpkg/dpkg.cfg.d/unsafe", "force-unsafe-io\n")
    debian.Root(folder).install(wanted)


def tools(release):
    """A root with all packages."""
    wanted = [*packages.REQUIRED, *sum(packages.OPTIONAL.values(), []), "ca-certificates", "ccache"]
    return debian.kept("tools-" + release, " ".join(wanted), lambda folder: fill(release, folder, wanted))


def builder(release, name, source=None):
    """A root with ccache, and a clone."""
    root = debian.machine(release, name, source=source or tools(release))
    cache = os.path.join(debian.CACHE, "ccache-" + release)
    os.makedirs(cache, exist_ok=True)
    root.binds.append(cache + ":/var/cache/ccache:rw")
    root.variables.update(CCACHE_DIR="/var/cache/ccache", CC="/usr/lib/ccache/gcc")
    root.clone()
    return root


def take_away(root, names, log):
    gone = [package for name in names for package in packages.OPTIONAL[name]]
    root.variables["LACKS"] = " ".join(gone)
    return root.run(["sh", "dptrack/tests/fresh/absent.sh", " ".join(packages.REQUIRED), *gone], log) if gone else 0


def build(root, log, *words):
    return root.run(["sh", "dptrack/tests/fresh/build.sh", *words], log)


def case(release, name, log):
    """Returns True if a build without `name` fails or warns."""
    names = {"none": [], "all": list(packages.OPTIONAL)}.get(name, [name])
    root = builder(release, f"{release}-without-{name}")
    return bool(take_away(root, names, log) or build(root, log, "-O2 -g")), root


def without(args, log):
    rows = []
    for name in args.names or NAMES:
        print(f"fresh: Debian {args.release} without {name}", flush=True)
        started = time.monotonic()
        failed, root = case(args.release, name, log)
        rows.append((name, "FAILED" if failed else "ok", time.monotonic() - started))
        if not failed:
            debian.remove(root.folder)
    print(f"Debian {args.release}\nwithout    build, steps, server    seconds")
    for name, result, seconds in rows:
        print(f"{name:10s} {result:22s} {seconds:8.0f}")
    return any(result == "FAILED" for _, result, _ in rows)


def short(args, log):
    root = builder(args.release, args.release + "-short")
    root.variables["CONFIGURE"] = "--without-ui"
    failed = build(root, log, *SHORT)
    if not failed and args.absent:
        failed = take_away(root, packages.OPTIONAL, log) or build(root, log, *SHORT)
    if not failed:
        debian.remove(root.folder)
    return failed


def plant(root, header):
    source = root.folder + root.home + "/dptrack/tracker/base/clock.c"
    with open(source, encoding="utf-8") as f:
        text = f.read()
    with open(source, "w", encoding="utf-8") as f:
        f.write(f"#include <{header}>\n{text}")


def planted(args, log):
    """Returns True if a build passes although a file of every build includes the header of an absent library."""
    missed = []
    for name, header in (("libpq", "libpq-fe.h"), ("snappy", "snappy-c.h"), ("gnutls", "gnutls/gnutls.h")):
        root = builder(args.release, args.release + "-planted")
        plant(root, header)
        if take_away(root, [name], log):
            return True
        failed = build(root, log, *SHORT)
        with open(log.name, "rb") as f:
            if not failed or f"{header}: No such file".encode() not in f.read():
                missed.append(header)
    if not missed:
        debian.remove(root.folder)
    print(f"fresh: planted includes that no build detected: {' '.join(missed) or 'none'}")
    return bool(missed)
