# SPDX-License-Identifier: Apache-2.0
"""TRL's part of tests/bench/recipes/compare-trl: fine-tuning steps of SFTTrainer on a CPU, on the batch and the folder that dptrain gets.

    trl_step.py make --folder DIR --config JSON --samples N --length T   writes DIR as transformers does, random weights,
                                                                         and DIR/batch.safetensors
    trl_step.py run  --folder DIR --precision fp32|bf16 --lora R --threads T --steps N --mode plain|checkpoints|bf16
                                                                         prints {"loss": [...]}
"""
import argparse
import contextlib
import json
import os
import sys

import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file

SEED = 20261203


def make(o):
    torch.manual_seed(SEED)
    kwargs = json.loads(o.config)
    name = kwargs.pop("class")
    config = getattr(transformers, name + "Config")(**kwargs)
    getattr(transformers, name + "ForCausalLM")(config).save_pretrained(o.folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<pad>": 0}, "<pad>"))  # SFTTrainer wants one; the batch has tokens
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<pad>").save_pretrained(o.folder)
    save_file({"tokens": torch.randint(config.vocab_size, (o.samples, o.length + 1))}, os.path.join(o.folder, "batch.safetensors"))


def run(o):
    import datasets
    import peft
    import trl

    class InOrder(trl.SFTTrainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    torch.set_num_threads(o.threads)
    rows = load_file(os.path.join(o.folder, "batch.safetensors"))["tokens"].tolist()
    model = transformers.AutoModelForCausalLM.from_pretrained(o.folder, dtype=torch.bfloat16 if o.mode == "bf16" else torch.float32)
    trainer = InOrder(
        model=model, train_dataset=datasets.Dataset.from_dict({"input_ids": rows * o.steps}),
        processing_class=transformers.AutoTokenizer.from_pretrained(o.folder),
        peft_config=peft.LoraConfig(r=o.lora, lora_alpha=2 * o.lora, target_modules="all-linear", task_type="CAUSAL_LM") if o.lora else None,
        args=trl.SFTConfig(output_dir=os.path.join(o.folder, "trl"), use_cpu=True, bf16=o.precision == "bf16" and o.mode != "bf16", max_steps=o.steps,
                           per_device_train_batch_size=len(rows), learning_rate=1e-4, lr_scheduler_type="constant", weight_decay=0, max_grad_norm=0,
                           optim="adamw_torch_fused", gradient_checkpointing=o.mode == "checkpoints", logging_steps=1, disable_tqdm=True, report_to=[],
                           save_strategy="no", max_length=len(rows[0]), packing=False, dataset_kwargs={"skip_prepare_dataset": True}, dataloader_pin_memory=False))
    with contextlib.redirect_stdout(sys.stderr):  # it prints the losses as Python's dicts
        trainer.train()
    print(json.dumps({"loss": [row["loss"] for row in trainer.state.log_history if "loss" in row]}))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["make", "run"])
    p.add_argument("--folder")
    p.add_argument("--config")
    p.add_argument("--samples", type=int)
    p.add_argument("--length", type=int)
    p.add_argument("--precision")
    p.add_argument("--lora", type=int, default=0)
    p.add_argument("--threads", type=int)
    p.add_argument("--steps", type=int)
    p.add_argument("--mode")
    o = p.parse_args()
    (make if o.what == "make" else run)(o)


main()
