# SPDX-License-Identifier: Apache-2.0
"""dptrain export --gguf without packages: keys, tokens and values of the file, read in plain Python; rows of q and k of
Llama, norms of Gemma; what does not fit is refused in one line. gguf_readers.py compares with gguf and transformers."""
import array
import json
import os
import shutil
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "data", "texts")]
from folders import SIZES, make_folder  # noqa: E402
from helper import Folder, check, dptrain, finish, safetensors, write_safetensors  # noqa: E402
from small_tokenizer import write_tokenizer  # noqa: E402

NUMBERS = {4: "<I", 5: "<i", 6: "<f", 7: "<?"}
LARGE = {**SIZES, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 300, "dtype": "float32"}
TEMPLATE = "{% for m in messages %}{{ m.content + '<|im_end|>' }}{% endfor %}"


class Reader:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.at, self.keys, self.tensors = 24, {}, {}
        magic, version, tensors, keys = struct.unpack("<4sIQQ", self.data[:24])
        assert (magic, version) == (b"GGUF", 3)
        for _ in range(keys):
            key = self.text()
            self.keys[key] = self.value(self.number("<I"))
        index = [(self.text(), [self.number("<Q") for _ in range(self.number("<I"))], self.number("<I"), self.number("<Q")) for _ in range(tensors)]
        begin = (self.at + 31) // 32 * 32
        for name, dims, kind, at in index:
            assert at % 32 == 0
            n = dims[0] * (dims[1] if len(dims) > 1 else 1)
            self.tensors[name] = (kind, dims, self.unpack(kind, begin + at, n))

    def number(self, form):
        v, = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return v

    def text(self):
        n = self.number("<Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == 9:
            of, n = self.number("<I"), self.number("<Q")
            return [self.value(of) for _ in range(n)]
        return self.text() if kind == 8 else self.number(NUMBERS[kind])

    def unpack(self, kind, at, n):
        if kind in (0, 1):
            return struct.unpack_from("<%d%s" % (n, "fe"[kind]), self.data, at)
        if kind == 30:
            return array.array("f", b"".join(b"\0\0" + self.data[at + 2 * i:at + 2 * i + 2] for i in range(n)))
        out = []
        for i in range(n // 32):
            scale, *q = struct.unpack_from("<e32b", self.data, at + 34 * i)
            out += [scale * v for v in q]
        return out


def export(folder, kind, *flags):
    out = os.path.join(folder, kind + ".gguf")
    p = dptrain("export", "--init-from", folder, "--gguf", kind, "--out", out, *flags)
    check(p.returncode == 0, "export %s: exit %d: %s" % (kind, p.returncode, p.stderr))
    return Reader(out)


def refused(words, *flags):
    p = dptrain("export", *flags)
    check(p.returncode == 2 and words in p.stderr and p.stderr.count("\n") == 1, "%s: exit %d: %s" % (words, p.returncode, p.stderr))


def close(title, got, want, step):
    """step: largest relative error of a value, or for q8_0 that of the largest of its 32."""
    for i in range(0, len(want), 32):
        most = max(abs(v) for v in want[i:i + 32])
        for a, b in zip(got[i:i + 32], want[i:i + 32]):
            if abs(a - b) > step * (most if step > 0.003 else abs(b)) + 1e-7:
                return check(False, "%s: %r, expected %r" % (title, a, b))
    return check(len(got) == len(want), "%s: %d values, expected %d" % (title, len(got), len(want)))


def values(folder):
    """Each type against the folder's own values."""
    own = safetensors(os.path.join(folder, "model.safetensors"))
    for kind, number, step in (("f16", 1, 2.0 ** -11), ("bf16", 30, 2.0 ** -8), ("q8_0", 8, 0.5 / 127 + 0.0005)):
        r = export(folder, kind)
        check(len(r.tensors) == len(own), "%s: %d tensors, expected %d" % (kind, len(r.tensors), len(own)))
        for name, theirs in (("token_embd", "model.embed_tokens"), ("output", "lm_head"), ("blk.2.ffn_down", "model.layers.2.mlp.down_proj"),
                             ("blk.0.attn_k", "model.layers.0.self_attn.k_proj"), ("blk.1.ffn_norm", "model.layers.1.post_attention_layernorm")):
            shape, want = own[theirs + ".weight"]
            got = r.tensors[name + ".weight"]
            vector = len(shape) == 1
            check(got[0] == (0 if vector else number) and got[1] == list(reversed(shape)), "%s: %s is %s %s" % (kind, name, got[0], got[1]))
            close("%s: %s" % (kind, name), got[2], want, 0 if vector else step)
    return r.keys


def tokens(keys):
    ids = keys["tokenizer.ggml.tokens"]
    for key, want in (("general.architecture", "qwen3"), ("qwen3.block_count", 3), ("qwen3.attention.head_count_kv", 2), ("qwen3.attention.key_length", 8),
                      ("tokenizer.ggml.model", "gpt2"), ("tokenizer.ggml.pre", "gpt-2"), ("tokenizer.chat_template", TEMPLATE),
                      ("tokenizer.ggml.merges", ["o n", "on e"])):
        check(keys.get(key) == want, "%s is %r" % (key, keys.get(key)))
    check(len(ids) == 300 and ids[keys["tokenizer.ggml.eos_token_id"]] == "<|end|>" and ids[keys["tokenizer.ggml.eot_token_id"]] == "<|im_end|>",
          "tokens: %s" % ids[256:])
    check([keys["tokenizer.ggml.token_type"][i] for i in (0, ids.index("one"), ids.index("<|im_end|>"), 299)] == [1, 1, 3, 5], "types of tokens")


def reordered(folder, tmp):
    """Llama's q: channels i and i + d/2 of a head become neighbours."""
    llama = os.path.join(tmp, "llama")
    shutil.copytree(folder, llama)
    own = safetensors(os.path.join(folder, "model.safetensors"))
    write_safetensors(os.path.join(llama, "model.safetensors"), [(n, "F32", s, struct.pack("<%df" % len(v), *v)) for n, (s, v) in own.items()
                                                                if "q_norm" not in n and "k_norm" not in n])
    with open(os.path.join(llama, "config.json"), "w", encoding="ascii") as f:
        json.dump({**LARGE, "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False}, f)
    r, n, d = export(llama, "f16"), LARGE["hidden_size"], 8
    (rows, _), want = own["model.layers.0.self_attn.q_proj.weight"]
    order = [h + j * d // 2 + i for h in range(0, rows, d) for i in range(d // 2) for j in range(2)]
    close("q of Llama", r.tensors["blk.0.attn_q.weight"][2], [v for k in order for v in want[k * n:(k + 1) * n]], 2.0 ** -11)
    shape, v = own["model.layers.0.self_attn.v_proj.weight"]
    close("v of Llama", r.tensors["blk.0.attn_v.weight"][2], v, 2.0 ** -11)
    return llama


def gemma(tmp):
    folder = make_folder(os.path.join(tmp, "gemma3"), "gemma3", LARGE)
    write_tokenizer(folder, [], [])
    refused("layer_types", "--init-from", folder, "--gguf", "f16", "--out", os.path.join(tmp, "x.gguf"))
    with open(os.path.join(folder, "config.json"), encoding="ascii") as f:
        config = json.load(f)
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as f:
        json.dump({**config, "sliding_window_pattern": 6, "query_pre_attn_scalar": 8}, f)
    r, own = export(folder, "q8_0"), safetensors(os.path.join(folder, "model.safetensors"))
    for name, theirs in (("blk.0.attn_q_norm", "model.layers.0.self_attn.q_norm"), ("blk.2.post_attention_norm", "model.layers.2.post_attention_layernorm"),
                         ("output_norm", "model.norm")):
        close("norm of Gemma", r.tensors[name + ".weight"][2], [v + 1 for v in own[theirs + ".weight"][1]], 1e-6)
    check("output.weight" not in r.tensors and r.keys["gemma3.attention.sliding_window"] == 6, "tied, with a window")


def unfit(folder, tmp):
    out = ["--gguf", "f16", "--out", os.path.join(tmp, "x.gguf")]
    refused("needs --gguf", "--init-from", folder, "--out", os.path.join(tmp, "x.gguf"))
    refused("needs --out", "--init-from", folder, "--gguf", "f16")
    refused("no/folder", "--init-from", folder, "--gguf", "f16", "--out", os.path.join(tmp, "no/folder/x.gguf"))
    with open(os.path.join(folder, "tokenizer.json"), encoding="ascii") as f:
        tokenizer = json.load(f)
    for change, words in (({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": False}, tokenizer["pre_tokenizer"]]}}, "pre_tokenizer: expected that of GPT-2"),
                          ({"added_tokens": [{**tokenizer["added_tokens"][0], "id": 300}]}, "is beyond the 300 rows")):
        with open(os.path.join(folder, "tokenizer.json"), "w", encoding="ascii") as f:
            json.dump({**tokenizer, **change}, f)
        refused(words, "--init-from", folder, *out)
    with open(os.path.join(folder, "config.json"), encoding="ascii") as f:
        config = json.load(f)
    yarn = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16}
    for own in ({"beta_fast": 16}, {"beta_slow": 2}, {"attention_factor": 1.0}, {"truncate": False}):
        with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as f:
            json.dump({**config, "rope_parameters": {**yarn, **own}}, f)
        refused("rope_type: yarn with constants of its own", "--init-from", folder, *out)
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as f:
        json.dump(config, f)
    os.remove(os.path.join(folder, "tokenizer.json"))
    refused("tokenizer.json", "--init-from", folder, *out)
    own = safetensors(os.path.join(folder, "model.safetensors"))
    write_safetensors(os.path.join(folder, "model.safetensors"), [(n, "F32", s, struct.pack("<%df" % len(v), *v)) for n, (s, v) in own.items()
                                                                 if n != "model.layers.1.mlp.up_proj.weight"])
    refused("model.layers.1.mlp.up_proj.weight", "--init-from", folder, *out)
    check(not [n for n in os.listdir(tmp) if n.startswith("x.gguf")], "a refused export leaves no file")


def main():
    with Folder() as tmp:
        folder = make_folder(os.path.join(tmp, "qwen3"), "qwen3", LARGE)
        write_tokenizer(folder, ["one"], ["<|im_end|>", "<|end|>"], eos_token="<|end|>")
        with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="ascii") as f:
            f.write(TEMPLATE)
        tokens(values(folder))
        llama = reordered(folder, tmp)
        gemma(tmp)
        unfit(llama, tmp)
    finish("gguf_file")


main()
