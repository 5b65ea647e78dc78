#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether two releases of one commit have the same bytes, a long command: make release in two clones in different folders, then

    same.py BUILD/release/dptrack-VERSION BUILD/release/dptrack-VERSION

prints each file that differs or is missing, and of wheels and Debian packages the members that differ. Exits with 1 if one does.
Without arguments it tests itself on small files."""
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile


def digest(data):
    return hashlib.sha256(data).hexdigest()


def members(path):
    """{member: digest} of a wheel or a Debian package; empty for other files."""
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as wheel:
            return {info.filename: (digest(wheel.read(info)), info.date_time, info.external_attr) for info in wheel.infolist()}
    if path.endswith(".deb"):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["dpkg-deb", "-R", path, folder], check=True)
            found = {}
            for place, _, names in os.walk(folder):
                for inner in (os.path.join(place, name) for name in names):
                    found[os.path.relpath(inner, folder)] = os.readlink(inner) if os.path.islink(inner) else digest(read(inner))
            return found
    return {}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def names(folder):
    """The paths of all files, below the folder."""
    return [os.path.relpath(os.path.join(place, name), folder) for place, _, inside in os.walk(folder) for name in inside]


def differences(first, second):
    """Lines about the files that are not the same in both folders."""
    lines = []
    for name in sorted({*names(first), *names(second)}):
        paths = [os.path.join(folder, name) for folder in (first, second)]
        if not all(map(os.path.exists, paths)):
            lines.append(f"{name}: only in {first if os.path.exists(paths[0]) else second}")
        elif read(paths[0]) != read(paths[1]):
            a, b = map(members, paths)
            inside = sorted(member for member in {*a, *b} if a.get(member) != b.get(member))
            lines.append(f"{name}: differs{': ' + ', '.join(inside) if inside else ''}")
    return lines


def write_wheel(path, text):
    with zipfile.ZipFile(path, "w") as wheel:
        for name in ("a.py", "b.py"):
            wheel.writestr(zipfile.ZipInfo(name), text if name == "b.py" else "same")


def check_itself():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("first", "x"), ("second", "x"), ("third", "y")):
            os.mkdir(f"{folder}/{name}")
            write_wheel(f"{folder}/{name}/a.whl", text)
            os.mkdir(f"{folder}/{name}/simple")
            with open(f"{folder}/{name}/simple/index.html", "w", encoding="ascii") as f:
                f.write("" if name == "second" else "x")
        assert differences(f"{folder}/first", f"{folder}/second") == ["simple/index.html: differs"]
        os.truncate(f"{folder}/first/simple/index.html", 0)
        assert differences(f"{folder}/first", f"{folder}/second") == []
        os.truncate(f"{folder}/third/simple/index.html", 0)
        assert differences(f"{folder}/first", f"{folder}/third") == ["a.whl: differs: b.py"]
        os.remove(f"{folder}/second/a.whl")
        assert differences(f"{folder}/first", f"{folder}/second") == [f"a.whl: only in {folder}/first"]
    print("same: ok")


def main(folders):
    if not folders:
        return check_itself()
    lines = differences(*folders)
    print("\n".join(lines) or f"{len(names(folders[0]))} files have the same bytes")
    sys.exit(1 if lines else 0)


main(sys.argv[1:])
