# SPDX-License-Identifier: Apache-2.0
"""Small folders of Hugging Face with random weights, made without transformers."""
import array
import json
import os
import random

from helper import write_safetensors

SIZES = {"vocab_size": 260, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "dtype": "float64"}
FOLDERS = {  # class, its own keys, further norms of a block
    "qwen3": ("Qwen3ForCausalLM", {"tie_word_embeddings": False}, []),
    "gemma2": ("Gemma2ForCausalLM", {"query_pre_attn_scalar": 12, "sliding_window": 6, "attn_logit_softcapping": 1.5,
                                     "final_logit_softcapping": 2.0}, ["pre_feedforward_layernorm", "post_feedforward_layernorm"]),
    "gemma3": ("Gemma3ForCausalLM", {"query_pre_attn_scalar": 12, "sliding_window": 6, "sliding_window_pattern": 2},
               ["pre_feedforward_layernorm", "post_feedforward_layernorm"]),
}


def make_folder(path, name, sizes):
    """A folder as it is downloaded: config.json and model.safetensors."""
    architecture, keys, norms = FOLDERS[name]
    width, inner, d = (sizes[k] for k in ("hidden_size", "intermediate_size", "head_dim"))
    tied, draw, tensors = keys.get("tie_word_embeddings", True), random.Random(3), []

    def add(tensor, *shape):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [draw.uniform(-0.2, 0.2) + (len(shape) == 1) for _ in range(min(n, 4096))]
        data = (array.array("f", values).tobytes() * (n // len(values) + 1))[:4 * n]
        tensors.append((tensor + ".weight", "F32", shape, data))

    add("model.embed_tokens", sizes["vocab_size"], width)
    for i in range(sizes["num_hidden_layers"]):
        block = "model.layers.%d." % i
        for n in ["input_layernorm", "post_attention_layernorm", *norms]:
            add(block + n, width)
        for n, heads in (("q", sizes["num_attention_heads"]), ("k", sizes["num_key_value_heads"]), ("v", sizes["num_key_value_heads"])):
            add(block + "self_attn.%s_proj" % n, heads * d, width)
        for n in "qk" if name != "gemma2" else "":
            add(block + "self_attn.%s_norm" % n, d)
        add(block + "self_attn.o_proj", width, sizes["num_attention_heads"] * d)
        for n, shape in (("gate", (inner, width)), ("up", (inner, width)), ("down", (width, inner))):
            add(block + "mlp.%s_proj" % n, *shape)
    add("model.norm", width)
    if not tied:
        add("lm_head", sizes["vocab_size"], width)
    os.mkdir(path)
    with open(os.path.join(path, "config.json"), "w", encoding="ascii") as f:
        json.dump({"architectures": [architecture], **sizes, **keys}, f)
    write_safetensors(os.path.join(path, "model.safetensors"), tensors)
    return path
