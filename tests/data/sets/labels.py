#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Labels as people store them: names, dictionaries, truth values, texts that are numbers, JSON; in every container. Names become
classes in sorted order. A field that is missing is answered with those that are there. Gaps and labels far outside are said once."""
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.environ.get("builddir", ".")
FORMATS = os.path.join(SRC, "tests", "data", "formats")
sys.path[:0] = [FORMATS, os.path.join(SRC, "tests", "tracker")]
import make_formats  # noqa: E402
from wire import field, record, varint  # noqa: E402

BOM = b"\xef\xbb\xbf"
N = 12


def deliver(spec, code=0, **options):
    """Labels in the set's order, the names of the classes, and what was said."""
    options = {"max_unreadable": 1, **options}
    done = subprocess.run([os.path.join(BUILD, "tests", "data", "deliver"), spec, "list=1", "plain=1", "shuffle=0", "names=1",
                           *[f"{k}={v}" for k, v in options.items()]], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache"})
    assert done.returncode == code, (spec, options, done)
    if code:
        return done.stderr
    lines = done.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("samples "))
    names = [line.split(" ", 2)[2] for line in lines if line.startswith("class ")]
    return [int(line.split()[0]) for line in lines[:at]], names, lines[at + 3 + len(names):]


def by_name(values):
    names = sorted({str(v) for v in values}, key=lambda s: s.encode())
    return [names.index(str(v)) for v in values], names


def unpacks(path):
    done = subprocess.run([os.path.join(BUILD, "tests", "data", "deliver"), path, "label_field=real"], capture_output=True, text=True, timeout=60,
                          check=False, env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache"})
    return "lacks" not in done.stderr


def columns():
    want = make_formats.labels()
    for name in ("labels.parquet", "labels_2.parquet", "labels.arrow", "labels_lz4.arrow"):
        path = os.path.join(FORMATS, name)
        if not unpacks(path):
            continue
        for column in ("breed", "kind", "mixed"):
            got = deliver(path, label_field=column)
            assert got == (*by_name(want["breed" if column == "kind" else column]), []), (name, column, got)
        for column in ("digits", "good", "real"):
            got = deliver(path, label_field=column)
            assert got[:2] == ([int(v) for v in want[column]], []), (name, column, got)
            assert len(got[2]) == (column == "digits"), (name, column, got)
        got = deliver(path, label_field="part")
        assert got[0] == list(range(6)) and "row 1: its label is not an integer" in got[2][0], (name, got)
        got = deliver(path, label_field="hole")
        assert got[0] == [0] * 11 and got[1] == ["x"] and "row 2: has no label" in got[2][0], (name, got)
        got = deliver(path, label_field="nan")
        assert got[0] == [0, 1, 1] + [0, 1] * 4 and "row 2: has no label" in got[2][0], (name, got)
        said = deliver(path, label_field="nosuch", code=1)
        assert "no column of labels (--label-field)" in said and "breed" in said and "digits" in said, said
        said = deliver(path, code=1)
        assert "no column of labels (--label-field)" in said, said
        far, gaps = (deliver(path, label_field=c)[2] for c in ("far", "gaps"))
        assert len(far) == 1 and "label 1000 is far above the others, which end at 3" in far[0], far
        assert len(gaps) == 1 and "3 of the 7 labels from 0 to 6 do not occur (the first is 1)" in gaps[0], gaps
    got = deliver(os.path.join(FORMATS, "labels.arrow"), label_field="code")
    assert got[0] == [30, 10, 20] * 4, got


def archive(path, samples):
    with tarfile.open(path, "w") as tar:
        for i, entries in enumerate(samples):
            for name, data in {"png": make_formats.png(16, 16, i), **entries}.items():
                info = tarfile.TarInfo(f"{i:04d}.{name}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return path


def texts():
    names = [make_formats.BREEDS[i % 6] for i in range(N)]
    got = deliver(archive(f"{tmp}/cls.tar", [{"cls": (n + "\n").encode()} for n in names]))
    assert got == (*by_name(names), []), got
    got = deliver(archive(f"{tmp}/bom.tar", [{"cls": BOM + b"%d\r\n" % (i % 2)} for i in range(N)]))
    assert got == ([i % 2 for i in range(N)], [], []), got
    got = deliver(archive(f"{tmp}/named-bom.tar", [{"cls": BOM + n.encode()} for n in names]))
    assert got == (*by_name(names), []), got
    path = archive(f"{tmp}/json.tar", [{"json": (BOM if i % 2 else b"") + json.dumps(
        {"id": i, "meta": {"kind": names[i], "a.b": i % 3}, "ok": i % 2 == 1, "text": f" {i % 4} ", "real": float(i % 2), "c.d": 1 - i % 2,
         "list": [1]}).encode()} for i in range(N)])
    assert deliver(path, label_field="json:meta.kind") == (*by_name(names), []), "a member of a member"
    for member, want in (("meta.a.b", [i % 3 for i in range(N)]), ("ok", [i % 2 for i in range(N)]), ("text", [i % 4 for i in range(N)]),
                         ("real", [i % 2 for i in range(N)]), ("c.d", [1 - i % 2 for i in range(N)])):
        got = deliver(path, label_field=f"json:{member}")
        assert got == (want, [], []), (member, got)
    # Python writes numbers that JSON lacks.
    odd = archive(f"{tmp}/odd.tar", [{"json": json.dumps({"score": (float("nan"), float("inf"), -float("inf"), 'a "NaN')[i % 4], "kind": i % 3}).encode()}
                                     for i in range(N)])
    assert deliver(odd, label_field="json:kind") == ([i % 3 for i in range(N)], [], [])
    assert "has no label" in deliver(odd, label_field="json:score")[2][0]
    said = deliver(path, label_field="json:meta.nosuch", code=1)
    assert "no member meta.nosuch (--label-field): it has id, meta, ok" in said, said
    assert "neither a number" in deliver(path, label_field="json:list", code=1)
    said = deliver(path, code=1)
    assert "has no label (--label-field): it has png;json" in said, said
    assert "has no picture (--image-field): it has png;json" in deliver(path, image_field="jpg", label_field="json:ok", code=1)
    got = deliver(archive(f"{tmp}/stray.tar", [{"cls": b"oops" if i == 4 else b"%d" % i} for i in range(N)]))
    assert got[0] == [i for i in range(N) if i != 4] and not got[1] and "its label is not a number, as most are: oops" in got[2][0], got
    two = f"{tmp}/two"
    os.mkdir(two)
    archive(f"{two}/train-0.tar", [{"cls": b"b"}, {"cls": b"c"}])
    archive(f"{two}/train-1.tar", [{"cls": b"7"}, {"cls": b"a"}])
    archive(f"{two}/val-0.tar", [{"cls": b"c"}, {"cls": b"d"}])
    for _ in range(2):  # the second time from the table that the first one keeps
        assert deliver(two) == ([2, 3, 0, 1], ["7", "a", "b", "c", "d"], []), deliver(two)
        assert deliver(two, val=1)[0] == [3, 4]


def limit():
    """A hidden test set marks its labels by -1: the refusal names the reason, and `dptrain inspect` says the same."""
    path = f"{tmp}/hidden"
    os.mkdir(path)
    archive(f"{path}/train-0.tar", [{"cls": b"%d" % (i % 3)} for i in range(30)])
    archive(f"{path}/val-0.tar", [{"cls": b"%d" % (i % 3 if i % 2 else -1)} for i in range(30)])
    said = deliver(path, code=1, max_unreadable=0.01)
    assert "15 samples cannot be read, more than 10" in said and "val-0.tar: sample 0000: its label is not an integer >= 0" in said, said
    done = subprocess.run([os.path.join(BUILD, "dptrain"), "inspect", "--data-path", path], capture_output=True, text=True, timeout=60, check=True)
    assert "left out 15 samples: val-0.tar: sample 0000: its label is not an integer >= 0" in done.stdout, done
    assert done.stdout.count("a training refuses this set: ") == 1 and "15 samples cannot be read, more than 10" in done.stdout, done


def stated():
    """The columns that were chosen are said. The classes that datasets' ClassLabel names in a schema count, also one that does not occur; a label outside of them is left out
    (https://huggingface.co/docs/datasets/about_dataset_features). Files that name others are refused."""
    want = [i % 3 for i in range(N) if i != 5], make_formats.CLASSES
    os.mkdir(f"{tmp}/stated")
    for name in ("named.parquet", "named.arrow"):
        path = os.path.join(FORMATS, name)
        got = deliver(path)
        assert got[:2] == want and len(got[2]) == 1 and "row 5: its label is above those that the schema names" in got[2][0], got
        shutil.copy(path, f"{tmp}/stated/{name}")
    for _ in range(2):  # the second time from the table that the first one keeps
        assert deliver(f"{tmp}/stated")[:2] == (want[0] * 2, want[1])
        done = subprocess.run([os.path.join(BUILD, "dptrain"), "inspect", "--data-path", f"{tmp}/stated"], capture_output=True, text=True, timeout=60, check=True)
        assert ", columns image.bytes and label\n" in done.stdout and "4 classes: ant, bee, cat, dog\n" in done.stdout, done
    with open(os.path.join(FORMATS, "named.arrow"), "rb") as f, open(f"{tmp}/stated/other.arrow", "wb") as g:
        g.write(f.read().replace(b'"ant"', b'"ape"'))
    assert "other.arrow: its schema names other classes than those of the files before it" in deliver(f"{tmp}/stated", code=1)


def records():
    def example(**features):
        entries = b""
        for name, v in features.items():
            feature = field(1, field(1, v)) if isinstance(v, bytes) else field(3, field(1, varint(v)))
            entries += field(1, field(1, name.encode()) + field(2, feature))
        return record(field(1, entries))
    names = [make_formats.BREEDS[i % 6] for i in range(N)]
    os.mkdir(f"{tmp}/tfds")  # as TensorFlow Datasets names files and features
    for split, of in (("train", 2), ("test", 1)):
        for k in range(of):
            with open(f"{tmp}/tfds/dogs-{split}.tfrecord-{k:05d}-of-{of:05d}", "wb") as f:
                f.write(b"".join(example(image=make_formats.png(16, 16, i), label=i % 3, breed=names[i].encode()) for i in range(k * 6, k * 6 + 6)))
    assert deliver(f"{tmp}/tfds") == ([i % 3 for i in range(N)], [], [])
    assert deliver(f"{tmp}/tfds", val=1)[0] == [i % 3 for i in range(6)]
    assert deliver(f"{tmp}/tfds", label_field="breed") == (*by_name(names), [])
    said = deliver(f"{tmp}/tfds", label_field="nosuch", code=1)
    assert "has no label (--label-field): it has image, label, breed" in said, said


with tempfile.TemporaryDirectory(prefix="dptrain-labels-") as tmp:
    columns()
    texts()
    limit()
    stated()
    records()
print("labels: of every type, in every container")
