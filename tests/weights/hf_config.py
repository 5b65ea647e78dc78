# SPDX-License-Identifier: Apache-2.0
"""The config.json of a Hugging Face GPT-2 next to its weights: its sizes are used, what dptrain does not compute is
refused by name, and so is a flag that contradicts it. Weights without our metadata, as transformers writes them. The
folder of a run and that of a checkpoint are such folders too: the files' names, tensors and config.json that
GPT2LMHeadModel.from_pretrained expects (huggingface/transformers, modeling_gpt2.py and GPT2Config)."""
import json
import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import SOURCE, Folder, check, dptrain, fast, finish, read_run, safetensors, write_safetensors

SIZES = ["--n-layer", 2, "--n-head", 3, "--n-embd", 24, "--block-size", 16, "--vocab-size", 61]
DATA = ["--synthetic", "-b", 2, "--max-steps", 1, "--lr", 0, "--report-to", "none", "--threads", 1]


def folder_of(tmp):
    """A folder as transformers makes it: weights without metadata, and config.json."""
    folder = os.path.join(tmp, "hf")
    os.mkdir(folder)
    path = os.path.join(folder, "model.safetensors")
    p = dptrain(*DATA, "--model", "gpt2-124m", *SIZES, *fast(), "--runs-dir", os.path.join(tmp, "first"), "--save-weights", path)
    check(p.returncode == 0, "the weights: exit %d: %s" % (p.returncode, p.stderr))
    write_safetensors(path, [(name, "F32", shape, values.tobytes()) for name, (shape, values) in safetensors(path).items()])
    return folder


def state_dict(layers, width, context, vocab):
    """Names and shapes of GPT2LMHeadModel's parameters, without its tied head."""
    shapes = {"transformer.wte.weight": [vocab, width], "transformer.wpe.weight": [context, width]}
    for i in range(layers):
        for name, shape in (("ln_1.weight", [width]), ("ln_1.bias", [width]), ("attn.c_attn.weight", [width, 3 * width]),
                            ("attn.c_attn.bias", [3 * width]), ("attn.c_proj.weight", [width, width]), ("attn.c_proj.bias", [width]),
                            ("ln_2.weight", [width]), ("ln_2.bias", [width]), ("mlp.c_fc.weight", [width, 4 * width]),
                            ("mlp.c_fc.bias", [4 * width]), ("mlp.c_proj.weight", [4 * width, width]), ("mlp.c_proj.bias", [width])):
            shapes["transformer.h.%d.%s" % (i, name)] = shape
    return {**shapes, "transformer.ln_f.weight": [width], "transformer.ln_f.bias": [width]}


def metadata(path):
    with open(path, "rb") as f:
        return json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))["__metadata__"]


def own_folders(tmp):
    """The run's folder and its checkpoint load in other programs; the ids of tokens are those of the tokenizer."""
    texts, bpe = os.path.join(tmp, "texts"), os.path.join(SOURCE, "tests", "data", "bpe")
    os.mkdir(texts)
    with open(os.path.join(texts, "a.txt"), "w", encoding="ascii") as f:
        f.write("whether it is nobler in the mind to suffer\n" * 20)
    with open(os.path.join(bpe, "vocab.json"), encoding="utf-8") as f:
        vocabulary = json.load(f)
    for tokenizer, vocab, end in (("bytes", 256, None), (bpe, len(vocabulary), vocabulary["<|endoftext|>"])):
        runs = os.path.join(tmp, "own", str(vocab))
        p = dptrain("--model", "gpt2-124m", "--n-layer", 2, "--n-head", 3, "--n-embd", 24, "--block-size", 16, "--data-path", texts,
                    "--tokenizer", tokenizer, "-b", 2, "--max-steps", 1, "--dropout", 0.25, "--runs-dir", runs, *fast())
        if not check(p.returncode == 0, "a run: exit %d: %s" % (p.returncode, p.stderr)):
            continue
        run = read_run(runs)["folder"]
        check("weights.safetensors" not in os.listdir(run), "the run's folder: %s" % os.listdir(run))
        evaluation = ["--test-only", "--data-path", texts, "--init-from", run, *fast()]
        other = dptrain(*evaluation, *(["--tokenizer", bpe] if end is None else []))
        check(other.returncode == 2 and "another tokenizer" in other.stderr, "another tokenizer: %s" % other.stderr)
        p = dptrain(*evaluation, "--tokenizer", tokenizer)
        check(p.returncode == 0 and "perplexity" in p.stdout, "the same tokenizer: exit %d: %s" % (p.returncode, p.stderr))
        for folder in (run, os.path.join(run, "checkpoints", "step-1")):
            weights = os.path.join(folder, "model.safetensors")
            got = {name: shape for name, (shape, _) in safetensors(weights).items()}
            check(got == state_dict(2, 24, 16, vocab), "%s: tensors %s" % (folder, got))
            check(metadata(weights)["format"] == "pt", "%s: metadata %s" % (folder, metadata(weights)))
            with open(os.path.join(folder, "config.json"), encoding="ascii") as f:
                got = json.load(f)
            want = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new", "n_layer": 2, "n_head": 3,
                    "n_embd": 24, "n_positions": 16, "n_ctx": 16, "vocab_size": vocab, "layer_norm_epsilon": 1e-5, "initializer_range": 0.02,
                    "tie_word_embeddings": True, "embd_pdrop": 0.25, "attn_pdrop": 0.25, "resid_pdrop": 0.25, "bos_token_id": end,
                    "eos_token_id": end}
            check(got == want, "%s: config.json is %s instead of %s" % (folder, got, want))


class Cases:
    def __init__(self, tmp):
        self.tmp, self.folder = tmp, folder_of(tmp)
        with open(os.path.join(self.folder, "config.json"), encoding="ascii") as f:
            self.config = json.load(f)

    def run(self, name, change, *flags, command=()):
        with open(os.path.join(self.folder, "config.json"), "w", encoding="ascii") as f:
            json.dump({**self.config, **change}, f)
        p = dptrain(*command, *(() if command else (*DATA, "--runs-dir", os.path.join(self.tmp, "runs", name))), *fast(), "--init-from", self.folder, *flags)
        return p, re.findall(r"loss ([\d.]+)", p.stdout)[:1]

    def works(self, name, change, *flags):
        p, losses = self.run(name, change, *flags)
        check(p.returncode == 0 and losses, "%s: exit %d: %s" % (name, p.returncode, p.stderr))
        return losses

    def refused(self, name, words, change, *flags, command=()):
        p, _ = self.run(name, change, *flags, command=command)
        errors = [line for line in p.stderr.splitlines() if "error" in line]
        check(p.returncode == 2 and len(errors) == 1 and all(w in errors[0] for w in words), "%s: exit %d, %s: %s" % (name, p.returncode, words, p.stderr))


def main():
    with Folder() as tmp:
        own_folders(tmp)
        c = Cases(tmp)
        same = c.works("sizes as flags", {}, "--model", "gpt2-124m", *SIZES)
        check(c.works("sizes of config.json", {}) == same, "sizes of config.json give the same loss as flags: %s" % same)
        check(c.works("another name of the activation", {"activation_function": "gelu_pytorch_tanh", "n_inner": 96, "layer_norm_epsilon": 1e-05}) == same,
              "the same model by other words")
        check(c.works("a file in the folder", {}, "--init-from", os.path.join(c.folder, "model.safetensors")) == same, "--init-from FILE")
        c.refused("a model of images", ["tensors do not fit"], {}, "--model", "resnet20")
        os.rename(os.path.join(c.folder, "config.json"), os.path.join(tmp, "config.json"))
        p = dptrain(*DATA, *fast(), "--init-from", c.folder, "--runs-dir", os.path.join(tmp, "runs", "none"))
        check(p.returncode == 2 and "add --model NAME" in p.stderr, "without config.json: exit %d: %s" % (p.returncode, p.stderr))
        c.refused("an activation", ["config.json", "activation_function", "relu", "gelu_new"], {"activation_function": "relu"})
        c.refused("a relative", ["config.json", 'model_type "gpt_bigcode"', "gpt2"], {"model_type": "gpt_bigcode"})
        c.refused("an activation in an old file", ["config.json", "relu"], {"model_type": None, "activation_function": "relu"})
        c.refused("exact gelu", ["activation_function", '"gelu"'], {"activation_function": "gelu"})
        c.refused("an epsilon", ["layer_norm_epsilon"], {"layer_norm_epsilon": 1e-6})
        c.refused("an inner width", ["n_inner 48"], {"n_inner": 48})
        c.refused("unscaled attention", ["scale_attn_weights false"], {"scale_attn_weights": False})
        c.refused("attention scaled by layer", ["scale_attn_by_inverse_layer_idx true"], {"scale_attn_by_inverse_layer_idx": True})
        c.refused("heads that contradict", ["--n-head 4", "3"], {}, "--n-head", 4)
        c.refused("layers that contradict", ["--n-layer 1", "2"], {}, "--n-layer", 1)
        c.refused("tied weights that contradict", ["--tie-weights", "not tied" if not c.config["tie_word_embeddings"] else "tied"], {},
                  "--no-tie-weights" if c.config["tie_word_embeddings"] else "--tie-weights")
        c.refused("sampling", ["activation_function"], {"activation_function": "relu"}, "--prompt", "a", command=["sample"])
    finish("hf_config")


main()
