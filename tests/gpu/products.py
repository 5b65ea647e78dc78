"""Who computes products on the fake device: cuBLASLt where it can be had, else own kernels after a line that says why; the
same losses either way; fp32 takes TF32 only where it is asked for."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import BUILD, Folder, check, dptrain, finish, read_run, skip

FAKE = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs")
NET = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--vocab-size", 61,
       "--synthetic", "--seq-len", 16, "-b", 4, "--max-steps", 3, "--backend", "cuda"]
OLD = {"DPTRAIN_FAKE_CUBLASLT_VERSION": "120800"}
LINE = ("backend cuda: products without cuBLASLt are far slower: cuBLASLt 12.8.0 is too old: 13.0 or newer is needed "
        "(pip install nvidia-cublas==13.1.0.3 brings it)")


def train(name, flags, env):
    """Losses of the steps, and what was said."""
    with Folder() as tmp:
        p = dptrain(*NET, *flags, "--runs-dir", tmp, env={"DPTRAIN_BACKEND_PATH": FAKE, **env})
        check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr[-2000:]))
        return list(read_run(tmp)["series"][("train/loss", -1)].values()), p.stderr


def distance(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


def main():
    if not os.path.exists(os.path.join(FAKE, "libcublasLt.so.13")):
        skip("the fake cuBLASLt was not built (no header of cuBLASLt)")
    for precision, limit in [("fp64", 1e-13), ("fp32", 1e-5), ("bf16", 1e-2), ("fp16", 1e-2)]:
        own, said = train("own " + precision, ["--precision", precision], OLD)
        check(LINE in said, "an old cuBLASLt: %s" % said[-600:])
        library, said = train("cuBLASLt " + precision, ["--precision", precision], {})
        check("without cuBLASLt" not in said, "cuBLASLt is not used: %s" % said[-600:])
        d = distance(library, own)
        check(d <= limit, "%s: cuBLASLt's losses are %.1e from own kernels', allowed %.1e" % (precision, d, limit))
        if precision == "fp32":
            tf32, _ = train("tf32", ["--tf32"], {})
            check(1e-6 < distance(tf32, library) < 1e-2, "--tf32: %s, without it %s" % (tf32, library))
    room, _ = train("no workspace", [], {"DPTRAIN_FAKE_CUBLASLT_WORKSPACE": "0"})
    usual, _ = train("workspace", [], {})
    check(room == usual, "losses depend on the workspace: %s, %s" % (room, usual))
    finish("products: by cuBLASLt and by own kernels alike, TF32 where it is asked for")


main()
