# SPDX-License-Identifier: Apache-2.0
"""Writes wheels whose bytes depend on their content alone: sorted names, one time, RECORD last."""
import base64
import hashlib
import os
import time
import zipfile


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def entry(name, mode, when):
    info = zipfile.ZipInfo(name, time.gmtime(max(when, 315532800))[:6])  # zip knows no time before 1980
    info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, (0o100000 | mode) << 16
    return info


def information_folder(files):
    """NAME.dist-info: at the top, unlike the one that the package's stand-in for W&B has."""
    return next(name.partition("/")[0] for name in files if name.partition("/")[0].endswith(".dist-info"))


def write(path, files, when):
    """files: {name: (data, mode)} with one folder NAME.dist-info, without RECORD."""
    info = information_folder(files)
    rows = [f"{name},{digest(data)},{len(data)}\n" for name, (data, _) in sorted(files.items())]
    record = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    temporary = path + ".part"
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, (data, mode) in [*sorted(files.items()), (f"{info}/RECORD", (record, 0o644))]:
            wheel.writestr(entry(name, mode, when), data)
    os.rename(temporary, path)


def read(path):
    """{name: (data, mode)} of a wheel, without RECORD."""
    with zipfile.ZipFile(path) as wheel:
        return {info.filename: (wheel.read(info), info.external_attr >> 16 & 0o777 or 0o644) for info in wheel.infolist()
                if not info.is_dir() and not info.filename.endswith(".dist-info/RECORD")}
