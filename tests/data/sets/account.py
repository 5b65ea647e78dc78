#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The account of a data set: for 40 folders (formats × faults) and some more, the files that `dptrain inspect` counts as used
and as left out are those of the folder; --strict refuses all with something left out; and the cases of public reports:
pictures without class folders, at any depth below their class, of kinds that cannot be read, texts at any depth."""
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.path.abspath(os.environ.get("builddir", "."))
sys.path.insert(0, os.path.join(SRC, "tests", "data"))
import noisy  # noqa: E402
import s3server  # noqa: E402

FORMATS = os.path.join(SRC, "tests", "data", "formats")
TEXT = "The quick brown fox jumps over the lazy dog.\n" * 60


def dptrain(*args, code=0, env=None):
    done = subprocess.run([os.path.join(BUILD, "dptrain"), *args], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache", **(env or {})})
    assert done.returncode == code, (args, done)
    return done


def inspect(path, *more):
    return json.loads(dptrain("inspect", "--data-path", path, "--json", *more).stdout)


def refused(path, *words, flags=("--model", "resnet20", "--image-size", "32", "-b", "2", "--max-steps", "1", "--report-to", "none")):
    done = dptrain("train", "--data-path", path, "--runs-dir", f"{tmp}/runs", *flags, code=2)
    for word in words:
        assert word in done.stderr, (word, done.stderr)
    return done.stderr


def write(path, data=b"?"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def there(path):
    """Visible files and hidden entries, counted without the product."""
    files = hidden = 0
    for _, folders, names in os.walk(path):
        hidden += sum(n.startswith(".") and n != ".dptrain" for n in [*names, *folders])
        folders[:] = [n for n in folders if not n.startswith(".")]
        files += sum(not n.startswith(".") for n in names)
    return files, hidden


# ---- formats: each makes a folder and returns the number of files that a training uses ----

def split_folder(path):
    noisy.folder(path, {"train": 6, "val": 3})
    return 9


def flat_folder(path):
    noisy.folder(path, {"": 6})
    return 6


def idx(path):
    for part, n in (("train", 20), ("t10k", 10)):
        write(f"{path}/{part}-images-idx3-ubyte", struct.pack(">HBBIII", 0, 8, 3, n, 8, 8) + bytes(range(64)) * n)
        write(f"{path}/{part}-labels-idx1-ubyte", struct.pack(">HBBI", 0, 8, 1, n) + bytes(i % 3 for i in range(n)))
    return 4


def cifar(path):
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        write(f"{path}/{name}.bin", b"".join(bytes([i]) + bytes(3072) for i in range(10)))
    return 6


def text(path):
    for name in ("a.txt", "B.TXT", "sub/c.txt"):
        write(f"{path}/{name}", TEXT.encode())
    return 3


def tokens(path):
    text(f"{path}.texts")
    dptrain("tokenize", "--data-path", f"{path}.texts", "--out", path)
    return 2


def shards(path):
    noisy.folder(f"{path}.pictures", {"train": 6, "val": 3})
    dptrain("shard", "--data-path", f"{path}.pictures", "--out", path)
    return len(os.listdir(path))


def lmdb(path):
    write(f"{path}/data.mdb")
    shutil.copy(f"{FORMATS}/datum.mdb", f"{path}/data.mdb")
    return 1


# ---- faults: each changes a folder and returns the number of files that it adds to those left out ----

def nothing(_):
    return 0


def stray(path):
    write(f"{path}/notes.md")
    return 1


def hidden(path):
    write(f"{path}/.DS_Store")
    write(f"{path}/.git/config")
    return 0


def dangling(path):
    os.symlink("nowhere", f"{path}/link")
    return 1


def several(path):
    for name in ("a.csv", "b.csv", "LICENSE", "unknown.bin"):
        write(f"{path}/{name}")
    return 4


def check_folders():
    n = 0
    for make in (split_folder, flat_folder, idx, cifar, text, tokens, shards, lmdb):
        for spoil in (nothing, stray, hidden, dangling, several):
            path = f"{tmp}/{make.__name__}-{spoil.__name__}"
            os.makedirs(path if make not in (tokens, shards) else tmp, exist_ok=True)
            used = make(path)
            left = spoil(path)
            check_account(path, used, left)
            n += 1
    assert n == 40


def check_account(path, used, left):
    files, dots = there(path)
    found = inspect(path)
    what = (path, found)
    assert sum(found["files"].values()) == used, what
    assert found["files_left_out"] == left == sum(r["count"] for r in found["left_out"] if r["unit"] == "files"), what
    assert used + left == files, what
    assert found["hidden"] == dots, what
    assert found["samples"]["train"] > 0 and len(found["first"]) > 0, what
    if left:
        done = dptrain("inspect", "--data-path", path, "--strict", code=2)
        assert f"left out {left} file" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
        assert all(r["why"] and os.path.lexists(os.path.join(path, r["example"])) for r in found["left_out"] if r["unit"] == "files"), what
    else:
        dptrain("inspect", "--data-path", path, "--strict")
    return found


# ---- folders of images ----

def check_images():
    path = f"{tmp}/kinds"
    split_folder(path)
    write(f"{path}/train/a/x.heic")
    write(f"{path}/train/loose.png")
    write(f"{path}/test/a/1.png")
    write(f"{path}/words.txt", TEXT.encode())
    os.makedirs(f"{path}/train/a/images/deep")
    shutil.copy(f"{path}/train/a/000.png", f"{path}/train/a/images/deep/copy.PNG")
    os.symlink("..", f"{path}/train/a/loop")
    found = inspect(path)
    assert sum(found["files"].values()) == 10 and found["files_left_out"] == 5, found
    why = {r["example"]: r["why"] for r in found["left_out"]}
    assert why["train/a/x.heic"].startswith(".heic is a kind of pictures that dptrain does not read"), why
    assert why["train/loose.png"] == "images outside of the class folders" and why["words.txt"] == "not part of the set (.txt)", why
    assert why["test/a/1.png"] == "test is not used, because there is a val" and why["train/a/loop"] == "a link to a folder above it", why
    first = found["first"][0]
    assert (first["split"], first["class"], first["label"], first["width"], first["height"]) == ("train", "a", 0, noisy.SIDE, noisy.SIDE), first
    assert found["class_names"] == ["a", "b", "c"], found


def check_places():
    path = f"{tmp}/unsorted"
    split_folder(path)
    shutil.rmtree(f"{path}/val")
    noisy.folder(f"{tmp}/one", {"": 3})
    for i, name in enumerate("abc"):
        shutil.copy(f"{tmp}/one/{name}/{i:03d}.png", f"{path}/{i}.png")
    os.mkdir(f"{path}/val")
    for i in range(3):
        os.rename(f"{path}/{i}.png", f"{path}/val/{i}.png")
    refused(path, "/val: its 3 images are not in class folders: move them into val/CLASS/, or remove the folder")
    os.rename(f"{path}/val", f"{path}/test")
    refused(path, "/test: its 3 images are not in class folders")
    shutil.rmtree(f"{path}/test")
    os.mkdir(f"{path}/valid")
    refused(path, "/valid: has no images in class folders: fill it or remove it")
    # The layout of tiny-imagenet: pictures below a folder of each class, and a text beside.
    path = f"{tmp}/tiny"
    noisy.folder(f"{path}.plain", {"train": 6, "val": 3})
    for part in ("train", "val"):
        for name in "abc":
            os.makedirs(f"{path}/{part}/{name}", exist_ok=True)
            shutil.move(f"{path}.plain/{part}/{name}", f"{path}/{part}/{name}/images")
            write(f"{path}/{part}/{name}/{name}_boxes.txt")
    write(f"{path}/words.txt", TEXT.encode())
    found = inspect(path)
    assert (found["kind"], found["samples"], found["files_left_out"]) == ("images", {"train": 6, "val": 3}, 7), found


def check_unknown():
    path = f"{tmp}/unknown"
    for i in range(3):
        write(f"{path}/photos/{i}.npz")
    write(f"{path}/table.dat")
    idx(f"{path}/MNIST/raw")
    said = refused(path, "no data set recognised: found 4 without extension, 3 .npz, 1 .dat", f"did you mean {path}/MNIST/raw?")
    for word in ("train.tokens", "MNIST", "CIFAR", "CLASS/*.jpg", "*.parquet", "*.txt"):
        assert word in said, (word, said)
    write(f"{tmp}/phone/a/1.HEIC")
    refused(f"{tmp}/phone", "none of the 1 images can be read: .heic is a kind of pictures that dptrain does not read")
    noisy.folder(f"{tmp}/above/data", {"train": 3})
    refused(f"{tmp}/above", f"did you mean {tmp}/above/data?")
    os.mkdir(f"{tmp}/nothing")
    refused(f"{tmp}/nothing", "no data set recognised: it has no files")


def check_foreign():
    """Data of other programs is known by its content, and the refusal says how it is read or converted: improved_wgan_training#15, Fly-LSH#4."""
    hdf5 = b"\x89HDF\r\n\x1a\n"
    for name, data, said in (
            ("cifar-10-batches-py/data_batch_1", b"\x80\x02}q\x01(U\x0bbatch_label", "is the Python version (pickle) of CIFAR: use the binary one, cifar-10-binary"),
            ("cifar-100-python/train", b"\x80\x02}q\x01(U\tfilenames", "is the Python version (pickle) of CIFAR: use the binary one, cifar-100-binary"),
            ("pickled/images.pkl", b"\x80\x04\x95\x1e\0\0\0", "is a Python pickle: write its arrays to HDF5"),
            ("keras/mnist.npz", b"PK\3\4" + bytes(60), "is a NumPy archive (.npz), as Keras has: write its arrays to HDF5 as x_train, y_train"),
            ("svhn/train_32x32.mat", b"MATLAB 5.0 MAT-file" + bytes(600), "is a MATLAB file (.mat), as SVHN has: write its arrays to HDF5"),
            ("svhn/full.mat", b"MATLAB 7.3 MAT-file".ljust(512) + hdf5 + bytes(40), "is a MATLAB 7.3 file, which is HDF5: call it *.h5"),
            ("arrays/x.npy", b"\x93NUMPY\1\0", "is a NumPy array (.npy): write its arrays to HDF5"),
            ("arrays/h5/x.data", hdf5 + bytes(40), "is an HDF5 file: call it *.h5"),
            ("texts/reviews.csv", b"text,label\nfine,1\n", "is CSV: write a JSON object per row to *.jsonl")):
        path = f"{tmp}/foreign/{name}"
        write(path, data)
        for command in (["inspect"], ["plan", "--model", "resnet20"], ["plan", "--model", "gpt2-124m"]):
            given = [os.path.dirname(path), path] if os.path.basename(path) != "full.mat" else [path]
            for spec in given:
                done = dptrain(*command, "--data-path", spec, code=2)
                assert said in done.stderr and done.stderr.count("\n") == 1, (spec, done)


def check_described():
    """The files by which datasets describes a folder that it saved are parts of the set; those of Windows and macOS are hidden."""
    path = f"{tmp}/saved"
    for part in ("train", "test"):
        write(f"{path}/{part}/state.json", b"{}")
        write(f"{path}/{part}/dataset_info.json", b"{}")
        shutil.copy(f"{FORMATS}/stream.arrow", f"{path}/{part}/data-00000-of-00001.arrow")
    write(f"{path}/dataset_dict.json", b"{}")
    dptrain("inspect", "--data-path", path, "--strict")
    assert inspect(path)["files"] == {"arrow": 2, "json": 5}
    for name in ("Thumbs.db", "train/desktop.ini", "__MACOSX/x.arrow"):
        write(f"{path}/{name}")
    found = inspect(path)
    assert (found["files"], found["files_left_out"], found["hidden"]) == ({"arrow": 2, "json": 5}, 0, 3), found
    path = f"{tmp}/windows"
    split_folder(path)
    for name in ("Thumbs.db", "train/Thumbs.db", "train/a/desktop.ini"):
        write(f"{path}/{name}")
    found = inspect(path)
    assert (found["files_left_out"], found["hidden"], found["class_names"]) == (0, 3, ["a", "b", "c"]), found


def check_texts():
    path = f"{tmp}/corpus"
    for name in ("a.txt", "valley.txt", "val/x.txt", "deep/validation/y.TXT", "test-0.txt"):
        write(f"{path}/{name}", TEXT.encode())
    found = inspect(path)
    assert found["files"] == {"txt": 4} and found["left_out"] == [
        {"unit": "files", "count": 1, "why": "test is not used, because there is a val", "example": "test-0.txt"}], found


def check_pointers():
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
    for make, name in ((split_folder, "train/a/000.png"), (idx, "train-labels-idx1-ubyte"), (cifar, "data_batch_2.bin"), (text, "B.TXT"),
                       (tokens, "val.tokens")):
        path = f"{tmp}/pointer-{make.__name__}"
        os.makedirs(path if make is not tokens else tmp, exist_ok=True)
        make(path)
        write(f"{path}/{name}", pointer)
        said = dptrain("inspect", "--data-path", path, code=2).stderr
        assert f"{name}: is a Git LFS pointer: its content is not here: run git lfs pull" in said, said
    # Any other picture: counted as left out, as an empty one is.
    path = f"{tmp}/pointer-later"
    split_folder(path)
    before = inspect(path)["files"]["png"]
    write(f"{path}/train/a/003.png", pointer)
    for name in ("train/b/empty.png", "val/a/empty.jpg"):
        write(f"{path}/{name}", b"")
    found = inspect(path)
    assert found["files"]["png"] == before - 1 and {r["why"]: (r["count"], r["example"]) for r in found["left_out"]} == {
        "pointers of Git LFS: run git lfs pull": (1, "train/a/003.png"), "empty": (2, "train/b/empty.png")}, found
    # A byte order mark is no part of a text.
    sizes = []
    for name, mark in (("plain", b""), ("marked", b"\xef\xbb\xbf")):
        path = f"{tmp}/{name}"
        write(f"{path}/a.txt", mark + TEXT.encode())
        write(f"{path}/b.jsonl", mark + json.dumps({"text": TEXT}).encode() + b"\n")
        dptrain("tokenize", "--data-path", path, "--out", f"{path}.tokens", "--val-split", "0")
        sizes.append(os.path.getsize(f"{path}.tokens/train.tokens"))
    assert sizes[0] == sizes[1], sizes


def check_bucket():
    """The same folders in a store, by class and as shards."""
    noisy.folder(f"{tmp}/s3/bucket/images", {"train": 6, "val": 3})
    for name in ("train/loose.png", "train/a/x.heic", "notes.md", "test/a/1.png"):
        write(f"{tmp}/s3/bucket/images/{name}")
    dptrain("shard", "--data-path", f"{tmp}/s3/bucket/images", "--out", f"{tmp}/s3/bucket/shards")
    shutil.copy(f"{tmp}/s3/bucket/shards/val-000000.tar", f"{tmp}/s3/bucket/shards/test-000000.tar")
    write(f"{tmp}/s3/bucket/shards/notes.md")
    server = s3server.S3(f"{tmp}/s3")
    for name, used, left in (("images", 9, 4), ("shards", 6, 2)):
        here, there_ = inspect(f"{tmp}/s3/bucket/{name}"), json.loads(
            dptrain("inspect", "--data-path", f"s3://bucket/{name}", "--json", env=server.environment()).stdout)
        assert sum(there_["files"].values()) == used and there_["files_left_out"] == left, there_
        key = lambda f: sorted((r["why"], r["example"], r["count"]) for r in f["left_out"])
        assert here["files"] == there_["files"] and key(here) == key(there_), (here["left_out"], there_["left_out"])
    server.stop()
    done = dptrain("inspect", "--data-path", "s3://bucket/nosuch", "--data-timeout", "2", env=server.environment(), code=2)
    assert done.stderr.count("\n") == 1, done.stderr


def check_hdf5():
    path = f"{tmp}/hdf5"
    write(f"{path}/notes.md")
    shutil.copy(f"{FORMATS}/hdf5/named.h5", f"{path}/named.h5")
    done = subprocess.run([os.path.join(BUILD, "dptrain"), "inspect", "--data-path", path], capture_output=True, text=True, timeout=60, check=False)
    if "this build lacks" not in done.stderr:
        check_account(path, 1, 1)


# ---- reports and records ----

def check_training():
    path = f"{tmp}/reported"
    split_folder(path)
    write(f"{path}/train/a/x.heic")
    flags = ["--model", "resnet20", "--image-size", "32", "-b", "2", "--max-steps", "1", "--threads", "1", "--backend", "ref"]
    done = dptrain("train", "--data-path", path, "--runs-dir", f"{tmp}/runs", "--run-name", "x", *flags)
    assert "data: 9 files (9 .png), 3 classes: a, b, c\n" in done.stdout, done.stdout
    assert f"{path}: left out 1 file: .heic is a kind" in done.stderr, done.stderr
    refused(path, "left out 1 file", "--strict", flags=[*flags, "--strict"])
    shutil.rmtree(f"{path}/train/b")
    shutil.rmtree(f"{path}/train/c")
    shutil.rmtree(f"{path}/val")
    assert "all samples have one class, a: there is nothing to learn" in dptrain("inspect", "--data-path", path).stdout


def check_arrays():
    """IDX and CIFAR without a file for evaluation are split as other formats are. Labels that begin at 1, gaps among them and a stray
    one are said in every format; not if --classes states their number."""
    def write_idx(path, labels):
        write(f"{path}/train-images-idx3-ubyte", struct.pack(">HBBIII", 0, 8, 3, len(labels), 8, 8) + bytes(range(64)) * len(labels))
        write(f"{path}/train-labels-idx1-ubyte", struct.pack(">HBBI", 0, 8, 1, len(labels)) + bytes(labels))
    def write_cifar(path, labels):
        for i in range(5):
            write(f"{path}/data_batch_{i + 1}.bin", b"".join(bytes([label]) + bytes(3072) for label in labels[i::5]))
    def write_tar(path, labels):
        os.makedirs(path)
        png = open(f"{tmp}/reported/train/a/000.png", "rb").read()
        with tarfile.open(f"{path}/train-0.tar", "w") as tar:
            for i, label in enumerate(labels):
                for name, data in (("png", png), ("cls", b"%d" % label)):
                    info = tarfile.TarInfo(f"{i:04d}.{name}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    begins, gap = "labels begin at 1 and are used unchanged: class 0 is empty", "1 of the 10 labels from 0 to 9 do not occur (the first is 5)"
    for make, name in ((write_idx, "letters"), (write_cifar, "cifar"), (write_tar, "tar")):
        for i, (labels, said) in enumerate((([k % 9 + 1 for k in range(90)], begins), ([k for k in range(10) if k != 5] * 10, gap),
                                            ([k % 3 for k in range(89)] + [255], "label 255 is far above the others, which end at 2"))):
            if name == "cifar" and i == 2:
                continue  # a label above its 9 is refused
            path = f"{tmp}/{name}-{i}"
            make(path, labels)
            done = dptrain("inspect", "--data-path", path, "--val-split", "0.5")
            assert f"{path}: {said}" in done.stdout, (path, done)
            stated = dptrain("inspect", "--data-path", path, "--val-split", "0.5", "--classes", "256" if i == 2 else "10")
            assert said not in stated.stdout, stated
            found = inspect(path, "--val-split", "0.5")
            train, val = found["samples"]["train"], found["samples"]["val"]
            assert train + val == 90 and min(train, val) > 25 and said in found["doubts"], found
            assert inspect(path, "--val-split", "0")["samples"]["val"] == 0
            for s in found["first"] if name == "letters" else ():
                assert s["label"] in labels, s


def check_evaluation():
    """An evaluation says what it leaves out, as a training does, and of how many samples it speaks: darknet#7817, yolov5#916."""
    path = f"{tmp}/evaluated"
    noisy.folder(path, {"train": 6, "val": 18})
    flags = ["--model", "resnet20", "--image-size", "32", "-b", "2", "--threads", "1", "--backend", "ref", "--runs-dir", f"{tmp}/runs"]
    dptrain("train", "--data-path", path, "--max-steps", "1", "--save-weights", f"{tmp}/w.safetensors", *flags)
    test = lambda code=0, more=(): dptrain("train", "--test-only", "--data-path", path, "--init-from", f"{tmp}/w.safetensors", *flags, *more, code=code)
    assert "evaluation of 18 samples: " in test().stdout
    cut = [f"val/{'abc'[i % 3]}/{i:03d}.png" for i in range(18)]
    for name, other in zip(cut[:3], cut[15:]):
        os.truncate(f"{path}/{name}", 100)
        os.rename(f"{path}/{other}", f"{path}/{other[:-4]}.avif")
    done = test()
    assert "data: 21 files (21 .png), 3 classes: a, b, c\n" in done.stdout, done.stdout
    assert "evaluation of 12 of 15 samples (3 cannot be read): " in done.stdout, done.stdout
    assert f"{path}: left out 3 files: .avif is a kind" in done.stderr and "(val/a/015.avif)" in done.stderr, done.stderr
    assert all(done.stderr.count(name) == 1 for name in cut[:3]), done.stderr
    # Above the limit: each that was read is named, and the error names one.
    for name in cut[3:12]:
        os.truncate(f"{path}/{name}", 100)
    said = test(1).stderr.splitlines()
    assert "11 samples cannot be read, more than 10" in said[-1] and "one of them: " in said[-1] and ".png" in said[-1], said
    assert sum("warning" in line and ".png" in line for line in said) == 11, said
    for command in (["plan"], ["bench", "--loader", "--steps", "1"], ["shard", "--out", f"{tmp}/evaluated.shards"], ["inspect"]):
        more = [] if command[0] in ("shard", "inspect") else [f for f in flags if f not in ("--runs-dir", f"{tmp}/runs")]
        done = dptrain(*command, "--data-path", path, *more)
        assert f"{path}: left out 3 files: .avif is a kind" in done.stderr + done.stdout, (command, done)


def check_control_characters():
    """Names of classes and files neither begin a line nor move the cursor of a terminal."""
    path = f"{tmp}/control"
    names = ("a\nb", "c\x1b[1md")
    noisy.folder(path, {"train": 6})
    shutil.rmtree(f"{path}/train/c")
    for letter, name in zip("ab", names):
        os.rename(f"{path}/train/{letter}", f"{path}/train/{name}")
    os.rename(f"{path}/train/{names[0]}/000.png", f"{path}/train/{names[0]}/x\ny.png")
    said = dptrain("inspect", "--data-path", path).stdout
    assert "2 classes: a?b, c?[1md\n" in said and "train/a?b/" in said and "(a?b)\n" in said and "\x1b" not in said, said
    assert all(":" in line or "classes" in line for line in said.splitlines()), said
    assert inspect(path)["class_names"] == list(names)
    done = dptrain("train", "--data-path", path, "--runs-dir", f"{tmp}/runs", "--model", "resnet20", "--image-size", "32", "-b", "2", "--max-steps", "1",
                   "--threads", "1")
    assert "2 classes: a?b, c?[1md\n" in done.stdout and "\x1b" not in done.stdout + done.stderr, (done.stdout, done.stderr)


def check_shard():
    """A file that is no picture, or one that is truncated, is not packed, with and without --decode; a Git LFS pointer is refused."""
    path = f"{tmp}/broken"
    for name in ("a/1.jpg", "b/2.png"):
        write(f"{path}/{name}", b"no picture")
    pack = lambda *flags, code: dptrain("shard", "--data-path", path, "--out", f"{tmp}/packed", "--val-split", "0", *flags, code=code)
    for flags in (["--decode", "32"], [], ["--restart-markers"]):
        done = pack(*flags, code=2)
        assert "none of the 2 training samples can be read" in done.stderr and not os.path.exists(f"{tmp}/packed"), (flags, done.stderr)
    noisy.folder(f"{path}/c", {"z": 3})
    done = pack(code=0)
    assert "1.jpg: is not a picture format" in done.stderr and done.stderr.count("skipped") == 2, done.stderr
    assert "packed: 3 training samples" in done.stdout and "packed: left out 2 of 5 training samples: cannot be read" in done.stdout, done.stdout
    shutil.rmtree(f"{tmp}/packed")
    for name in ("b/001", "c/002"):
        os.truncate(f"{path}/c/z/{name}.png", 100)
    for flags in ([], ["--decode", "32"]):
        done = pack(*flags, code=0)
        assert done.stderr.count("damaged PNG: the file is truncated: skipped") == 2, done.stderr
        assert "packed: 1 training sample in 1 shard, " in done.stdout and "left out 4 of 5 training samples: cannot be read" in done.stdout, done.stdout
        shutil.rmtree(f"{tmp}/packed")
    write(f"{path}/c/y.png", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    done = pack(code=2)
    assert "y.png: is a Git LFS pointer" in done.stderr and not os.path.exists(f"{tmp}/packed"), done.stderr


def check_drop_last():
    path = f"{tmp}/last"
    noisy.folder(path, {"train": 10, "val": 3})
    flags = ["--model", "resnet20", "--image-size", "32", "-b", "4", "--epochs", "2", "--threads", "1", "--backend", "ref", "--data-path",
             path, "--runs-dir", f"{tmp}/runs"]
    for more, steps in (([], 3), (["--drop-last"], 2)):
        done = dptrain("train", *flags, *more)
        assert f"epoch 2/2  step {steps}/{steps}" in done.stdout, done.stdout


with tempfile.TemporaryDirectory() as tmp:
    check_folders()
    check_images()
    check_places()
    check_unknown()
    check_foreign()
    check_described()
    check_texts()
    check_pointers()
    check_bucket()
    check_hdf5()
    check_training()
    check_arrays()
    check_evaluation()
    check_control_characters()
    check_shard()
    check_drop_last()
