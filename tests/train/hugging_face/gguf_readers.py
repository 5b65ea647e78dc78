#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`dptrain export --gguf`, read by others: PyPI's gguf knows every tensor's name and finds the values of the folder (f16,
bf16: to the bit; q8_0: the bytes of its own quantisation); transformers' gguf_file= gives equal logits for the classes that
it knows, and the ids of its own tokenizer. Skipped where they cannot be installed. `gguf_readers.py NAME...`: some classes."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "data", "texts")]
from helper import Folder, check, dptrain, finish  # noqa: E402
from small_tokenizer import write_tokenizer  # noqa: E402
from transformers_venv import install, python  # noqa: E402

SIZES = {"vocab_size": 270, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": None, "eos_token_id": 257, "pad_token_id": None}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 512}
LONGROPE = {"rope_type": "longrope", "rope_theta": 100.0, "short_factor": [1.0 + 0.1 * i for i in range(8)], "long_factor": [1.5 + i for i in range(8)]}
CASES = {  # class, name in GGUF, what differs from SIZES, whether transformers computes it from the file
    "llama": ("Llama", "llama", {}, True),
    "llama, biases": ("Llama", "llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 8}, False),
    "llama3 scaling": ("Llama", "llama", {"rope_parameters": LLAMA3, "hidden_size": 80, "head_dim": 20}, False),
    "yarn scaling": ("Qwen3", "qwen3", {"rope_parameters": YARN, "head_dim": 64, "max_position_embeddings": 2048}, False),
    "mistral": ("Mistral", "llama", {"head_dim": 32, "sliding_window": None}, True),
    "qwen2": ("Qwen2", "qwen2", {"tie_word_embeddings": True}, True),
    "qwen3": ("Qwen3", "qwen3", {"head_dim": 128, "tie_word_embeddings": True}, True),
    "gemma": ("Gemma", "gemma", {"head_dim": 16}, False),
    "gemma2": ("Gemma2", "gemma2", {"head_dim": 256, "sliding_window": 7, "num_hidden_layers": 3}, True),
    "gemma3": ("Gemma3Text", "gemma3", {"head_dim": 256, "sliding_window": 7, "num_hidden_layers": 7}, True),
    "olmo2": ("Olmo2", "olmo2", {}, False),
    "phi3": ("Phi3", "phi3", {"sliding_window": None}, True),
    "phi3, longrope": ("Phi3", "phi3", {"rope_parameters": LONGROPE, "original_max_position_embeddings": 32}, False),
    "smollm3": ("SmolLM3", "smollm3", {"num_hidden_layers": 4}, False),
}

MAKE = '''
import json, sys, torch, transformers
cases, sizes, folder = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
for i, (title, (name, _, kwargs, _)) in enumerate(cases.items()):
    torch.manual_seed(3)
    config = getattr(transformers, name + "Config")(**{**sizes, **kwargs, "initializer_range": 0.2})
    m = getattr(transformers, name.replace("Text", "") + "ForCausalLM")(config)
    for p in m.parameters():
        if p.ndim == 1:
            p.data += 0.3 * torch.randn_like(p)
    m.to(torch.bfloat16).save_pretrained("%s/%d" % (folder, i), max_shard_size="20KB" if i % 2 else "5GB")
'''

READ = '''
import glob, json, sys, traceback, gguf, numpy, torch, transformers
from safetensors.torch import load_file
OWN = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}
TEXTS = json.loads(sys.argv[2])

def expected(folder, arch, config):
    weights, want = {}, {}
    for path in glob.glob(folder + "/*.safetensors"):
        weights.update(load_file(path))
    names = gguf.get_tensor_name_map(next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch), config["num_hidden_layers"])
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for name, w in weights.items():
        stem, suffix = name.rsplit(".", 1)
        part, w = stem.rsplit(".", 1)[-1], w.float()
        if arch in ("llama", "smollm3") and part in heads:
            w = w.reshape(heads[part], 2, w.shape[0] // heads[part] // 2, *w.shape[1:]).transpose(1, 2).reshape(w.shape)
        if arch.startswith("gemma") and name.endswith("norm.weight"):
            w = w + 1
        want[names.get_name(stem) + "." + suffix] = w.numpy()
    return want

def compare(reader, kind, want):
    got = {t.name: t for t in reader.tensors}
    assert set(got) - OWN == set(want), set(got) ^ set(want)
    for name, w in want.items():
        kinds = gguf.GGMLQuantizationType
        of = kinds.F32 if w.ndim == 1 else kinds.F16 if kind == "q8_0" and w.shape[-1] % 32 else kinds[kind.upper()]
        assert got[name].tensor_type == of and list(got[name].shape) == list(w.shape[::-1]), (kind, name, got[name])
        assert got[name].data.tobytes() == gguf.quants.quantize(w, of).tobytes(), (kind, name)

def yarn(reader, arch):
    # Readers compute pairs from these keys alone, by Peng et al. 2023 with betas of 32 and 1 and an attention factor of 1 + 0.1 ln(factor).
    key = lambda name: reader.fields[arch + ".rope." + name].contents()
    assert key("scaling.type") == "yarn", key("scaling.type")
    base, factor, dims = key("freq_base"), key("scaling.factor"), key("dimension_count")
    ends = [dims * numpy.log(key("scaling.original_context_length") / (beta * 2 * numpy.pi)) / (2 * numpy.log(base)) for beta in (32, 1)]
    low, high = max(0, numpy.floor(ends[0])), min(dims - 1, numpy.ceil(ends[1]))
    ramp = numpy.clip((numpy.arange(dims // 2) - low) / max(0.001, high - low), 0, 1)
    plain = base ** -(numpy.arange(0, dims, 2) / dims)
    return plain / factor * ramp + plain * (1 - ramp), 1 + 0.1 * numpy.log(factor)

def scaling(reader, config, arch):
    scaled = {t.name: t.data.tolist() for t in reader.tensors if t.name in OWN}
    rope = config.get("rope_parameters") or {}
    for key, file in (("short_factor", "rope_factors_short.weight"), ("long_factor", "rope_factors_long.weight")):
        assert numpy.allclose(rope.get(key, []), scaled.get(file, []), rtol=1e-6), (key, scaled)
    if rope.get("rope_type") == "llama3":
        m = transformers.LlamaConfig.from_dict(config)
        theirs, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](m, "cpu")
        plain = rope["rope_theta"] ** -(numpy.arange(0, m.head_dim, 2) / m.head_dim)
        assert numpy.allclose(plain / theirs.numpy(), scaled["rope_freqs.weight"], rtol=1e-5), scaled
    if rope.get("rope_type") == "yarn":
        m = transformers.Qwen3Config.from_dict(config)
        theirs, factor = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["yarn"](m, "cpu")
        got, got_factor = yarn(reader, arch)
        assert numpy.allclose(got, theirs.numpy(), rtol=1e-5) and abs(got_factor - factor) < 1e-6, (got, theirs, factor)

def logits(folder, config):
    ids, out = torch.randint(0, config["vocab_size"], (2, 24), generator=torch.Generator().manual_seed(5)), []
    for source in ({}, {"gguf_file": "bf16.gguf"}):
        m = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **source)
        with torch.no_grad():
            out.append(m.eval()(ids).logits)
    off = (out[0] - out[1]).abs().max() / out[0].abs().max()
    assert off < 1e-5, float(off)

def tokens(folder, reader):
    ours = transformers.AutoTokenizer.from_pretrained(folder, gguf_file="q8_0.gguf")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=folder + "/tokenizer.json")
    for text in TEXTS:
        a, b = (t(text, add_special_tokens=False)["input_ids"] for t in (ours, theirs))
        assert a == b, (text, a, b)
    assert reader.fields["tokenizer.chat_template"].contents() == open(folder + "/chat_template.jinja").read()
    fields = {k: f.contents() for k, f in reader.fields.items() if k.startswith("tokenizer.")}
    assert fields["tokenizer.ggml.pre"] == "gpt-2" and fields["tokenizer.ggml.tokens"][fields["tokenizer.ggml.eos_token_id"]] == "<|im_end|>"

failed = []
for title, folder, arch, known in json.loads(sys.argv[1]):
    try:
        config = json.load(open(folder + "/config.json"))
        want = expected(folder, arch, config)
        for kind in ("f16", "bf16", "q8_0"):
            reader = gguf.GGUFReader(folder + "/" + kind + ".gguf")
            compare(reader, kind, want)
        scaling(reader, config, arch)
        if known:
            logits(folder, config)
        if arch in ("llama", "qwen2", "qwen3"):
            tokens(folder, reader)
    except Exception:
        failed.append(title + ": " + traceback.format_exc())
sys.exit("".join(failed) or 0)
'''
TEXTS = ["one two", " one  two\n\none", "It's 12345 <|im_end|> one", "é日本 two", ""]


def main():
    chosen = {k: v for k, v in CASES.items() if k in sys.argv[1:] or not sys.argv[1:]}
    install()
    with Folder() as tmp:
        if not python(MAKE, json.dumps(chosen), json.dumps(SIZES), tmp):
            finish("gguf_readers")
        made = []
        for i, (title, (_, name, _, known)) in enumerate(chosen.items()):
            folder = os.path.join(tmp, str(i))
            write_tokenizer(folder, ["one", "\u0120two"], ["<|im_start|>", "<|im_end|>"], eos_token="<|im_end|>", pad_token="<|im_start|>")
            with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="ascii") as f:
                f.write("{% for m in messages %}{{ m.content + '<|im_end|>' }}{% endfor %}")
            for kind in ("f16", "bf16", "q8_0"):
                p = dptrain("export", "--init-from", folder, "--gguf", kind, "--out", os.path.join(folder, kind + ".gguf"))
                check(p.returncode == 0, "%s, %s: exit %d: %s" % (title, kind, p.returncode, p.stderr))
            made.append((title, folder, name, known))
        python(READ, json.dumps(made), json.dumps(TEXTS))
    finish("gguf_readers")


main()
