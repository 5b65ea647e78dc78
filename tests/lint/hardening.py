# SPDX-License-Identifier: Apache-2.0
"""What was built has the defences that configure found: the programs, the library and the modules, by readelf and the code. The cuda module holds
objects of nvcc, so it is checked for the linker's defences alone."""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
BUILD = os.environ.get("builddir") or "."


def flags():
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as f:
        text = f.read()
    return [word for name in ("HARDENING_FLAGS", "HARDENING_LDFLAGS") for word in re.search(rf"^{name} *= *(.*)$", text, re.M)[1].split()]


def built():
    for name in ("dptrack", "dptrain"):
        paths = [path for path in (os.path.join(BUILD, ".libs", name), os.path.join(BUILD, name)) if os.path.exists(path)]
        yield from paths[:1]
    yield from sorted(glob.glob(os.path.join(BUILD, ".libs", "dptrain_*.so")) + glob.glob(os.path.join(BUILD, ".libs", "libdptrack.so")))


def lacks(path, wanted):
    """The defences that a file lacks."""
    text = subprocess.run(["readelf", "-hldnsW", path], capture_output=True, text=True, check=True).stdout
    with open(path, "rb") as f:
        code = f.read()
    found = {"-fstack-protector-strong": "__stack_chk_fail" in text, "-D_FORTIFY_SOURCE=3": bool(re.search(r"__\w+_chk\b", text)),
             "-Wl,-z,now,-z,relro": "GNU_RELRO" in text and bool(re.search(r"Flags: .*\bNOW\b|BIND_NOW", text)),
             "-fcf-protection": code.count(b"\xf3\x0f\x1e\xfa") > 20,  # endbr64; Debian's crti.o keeps the mark from the whole
             "position independent": "Type:" in text and re.search(r"Type: +DYN", text) is not None,
             "no executable stack": re.search(r"GNU_STACK.* RWE ", text) is None}
    cuda = os.path.basename(path) == "dptrain_cuda.so"
    return [name for name, good in found.items() if not good and (name in wanted or not name.startswith("-")) and not (cuda and name.startswith(("-f", "-D")))]


def main():
    wanted = flags()
    paths = list(built())
    if not wanted or not paths or not shutil.which("readelf"):
        print("hardening: a build for debugging or sanitizers, nothing is built, or readelf is not installed (Debian: binutils)")
        sys.exit(77)
    bad = {path: missing for path in paths if (missing := lacks(path, wanted))}
    for path, missing in bad.items():
        print(f"{path}: lacks {', '.join(missing)}")
    print(f"hardening: {len(paths)} files" + ("" if bad else " have " + " ".join(wanted)))
    sys.exit(bool(bad))


main()
