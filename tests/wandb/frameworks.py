# SPDX-License-Identifier: Apache-2.0
"""Training libraries that log to W&B (Hugging Face's Trainer and Accelerate, Lightning, Keras, Ray Tune), a loop that
logs as nanochat does, WANDB_SWEEP_ID and a progress bar of tqdm: each exits with 0, W&B's package complains of nothing,
and the run has each value as the script had it. Needs 1.5 GB of packages from PyPI. Arguments: names of scripts."""
import sys
sys.dont_write_bytecode = True
import ast
import install
lib = install.lib

PACKAGES = ["torch==2.13.0", "wandb==" + install.NEWEST, "numpy", "pillow", "lightning==2.6.6", "transformers==5.24.0", "accelerate==1.15.0", "keras==3.15.1",
            "ray[tune]==2.60.0", "tqdm"]

# A script prints `= want RUN KEY VALUES` for a series, `= step RUN KEY STEPS` and `= param RUN KEY TEXT`.
HEAD = """
import os, sys, warnings
warnings.simplefilter("ignore")
os.environ["KERAS_BACKEND"] = "torch"
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
def want(run, key, values):
    print("= want", run, key, repr([float(v) for v in values]), flush=True)
"""

NANOCHAT = """
import wandb
run = wandb.init(project="nanochat", name="d4", config={"depth": 4, "run": "d4", "fp8": False, "resume_from_step": -1})
bpb, loss, core = [], [], []
for step in range(300):
    if step % 100 == 0:
        bpb.append(3 / (step + 1))
        run.log({"step": step, "total_training_flops": step * 1e15, "total_training_time": step / 7, "val/bpb": bpb[-1]})
    if step == 200:
        core.append(0.125)
        run.log({"step": step, "total_training_flops": step * 1e15, "core_metric": core[-1], "centered_results": {"arc_easy": 0.25, "copa": 0.5}})
    print(f"step {step:05d}/00300 ({step / 3:.2f}%) | loss: {10 / (step + 1):.6f}")
    if step % 50 == 0:
        loss.append(10 / (step + 1))
        run.log({"step": step, "total_training_flops": step * 1e15, "train/loss": loss[-1], "train/lrm": 1.0, "train/tok_per_sec": 12345, "train/mfu": 0.1,
                 "train/epoch": "1 pq: 0 rg: 3"})
run.finish()
want("d4", "val/bpb", bpb), want("d4", "train/loss", loss), want("d4", "core_metric", core), want("d4", "centered_results.copa", [0.5])
print("= param d4 depth 4")
"""

HUGGING_FACE = """
import transformers
os.environ["WANDB_PROJECT"] = "hf"
model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2))
data = [{"input_ids": torch.arange(i, i + 8) % 32, "labels": torch.arange(i, i + 8) % 32} for i in range(16)]
arguments = transformers.TrainingArguments(output_dir="out", max_steps=6, logging_steps=2, per_device_train_batch_size=4, use_cpu=True, report_to="wandb",
                                           save_strategy="no", run_name="hf", learning_rate=0.001)
trainer = transformers.Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data[:4])
trainer.train()
trainer.evaluate()
history = trainer.state.log_history
want("hf", "train/loss", [e["loss"] for e in history if "loss" in e])
want("hf", "eval/loss", [e["eval_loss"] for e in history if "eval_loss" in e])
print("= step hf train/loss", [e["step"] for e in history if "loss" in e])
print("= param hf max_steps 6")
"""

LIGHTNING = """
import lightning
from lightning.pytorch.loggers import WandbLogger
losses = []
class Net(lightning.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.save_hyperparameters()
        self.line = torch.nn.Linear(4, 1)

    def training_step(self, batch, number):
        loss = self.line(batch).square().mean()
        self.log("train/loss", loss)
        losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)
data = torch.utils.data.DataLoader(torch.ones(16, 4), batch_size=4)
trainer = lightning.Trainer(max_epochs=2, logger=WandbLogger(project="pl", name="pl", log_model=True), log_every_n_steps=1, accelerator="cpu")
trainer.fit(Net(lr=0.01), data)
want("pl", "train/loss", losses)
print("= step pl train/loss", list(range(8)))
print("= param pl lr 0.01")
"""

ACCELERATE = """
import accelerate
one = accelerate.Accelerator(cpu=True, log_with="wandb")
one.init_trackers("acc", config={"lr": 0.5}, init_kwargs={"wandb": {"name": "acc", "tags": ["a"]}})
for step in range(5):
    one.log({"loss": 1 / (step + 1)}, step=step * 10)
one.end_training()
want("acc", "loss", [1 / (step + 1) for step in range(5)])
print("= step acc loss", [step * 10 for step in range(5)])
print("= param acc lr 0.5")
"""

KERAS = """
import keras, numpy, wandb
class Log(keras.callbacks.Callback):  # W&B's own needs TensorFlow
    def on_epoch_end(self, epoch, logs=None):
        run.log({"epoch/" + k: v for k, v in logs.items()}, step=epoch)
keras.utils.set_random_seed(0)
run = wandb.init(project="keras", name="keras", config={"units": 1})
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse")
x = numpy.linspace(0, 1, 64, dtype="float32").reshape(16, 4)
history = model.fit(x, x[:, :1], epochs=3, batch_size=2, verbose=0, validation_split=0.25, callbacks=[Log()]).history
run.finish()
want("keras", "epoch/loss", history["loss"]), want("keras", "epoch/val_loss", history["val_loss"])
print("= step keras epoch/loss", [0, 1, 2])
print("= param keras units 1")
"""

RAY = """
import ray
from ray import tune
from ray.air.integrations.wandb import WandbLoggerCallback
def train(config):
    for i in range(4):
        tune.report({"score": config["a"] * (i + 1)})
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
tune.Tuner(train, param_space={"a": tune.grid_search([2.0, 3.0])},
           run_config=tune.RunConfig(storage_path=os.getcwd(), verbose=0, callbacks=[WandbLoggerCallback(project="ray", log_config=False)])).fit()
for i, a in enumerate((2.0, 3.0)):
    want("#%d" % i, "score", [a * (k + 1) for k in range(4)])
    print("= param #%d a %d" % (i, a))
"""

SWEEP = """
import tqdm, time, wandb
run = wandb.init(name="sweep")  # the project of a sweep is its agent's
values = []
for i in tqdm.tqdm(range(40)):
    values.append(i * 0.5)
    run.log({"x": values[-1]})
    time.sleep(0.02)
print("after the bar")
run.finish()
want("sweep", "x", values)
"""

SCRIPTS = {"nanochat": NANOCHAT, "hf": HUGGING_FACE, "pl": LIGHTNING, "acc": ACCELERATE, "keras": KERAS, "ray": RAY, "sweep": SWEEP}


def check_lines(server, project, said):
    """Compares the runs with the lines that the script printed. #N: the Nth run of a project, by its param."""
    runs = {run["name"]: run for run in (server.json("GET", "/api/v1/runs/" + r["id"])[1] for r in server.json("GET", "/api/v1/runs?experiment=" + project)[1]["runs"])}
    runs.update((f"#{i}", run) for i, run in enumerate(sorted(runs.values(), key=lambda r: float(r["params"].get("a", 0)))))
    wanted = [line[2:].split(" ", 3) for line in said.split("\n") if line.startswith("= ")]
    lib.check(len(wanted) >= 1, f"{project} says what it logged: {said[-2000:]}")
    for kind, name, key, text in wanted:
        if not lib.check(name in runs, f"{project} has a run {name}: {list(runs)}"):
            continue
        run = runs[name]
        lib.equal((run["status"], run["problems"]), ("finished", []), f"{name}: status and problems")
        if kind == "param":
            lib.equal(run["params"].get(key), text, f"{name}: param {key}")
        else:
            points = sorted(install.points(server, run, key))
            lib.equal([p[kind == "want"] for p in points], ast.literal_eval(text), f"{name}: {key}")
    return runs


def one(python, name):
    with lib.fresh() as server:
        more = {"WANDB_SWEEP_ID": "sweep7", "WANDB_PROJECT": "sweep"} if name == "sweep" else {}
        said = install.script(server, HEAD + SCRIPTS[name], python=python, timeout=600, **more)
        runs = check_lines(server, name, said)
        if name == "pl":
            files = [v for v in server.json("GET", f"/api/v1/runs/{runs['pl']['id']}/artifacts?path=wandb-artifacts")[1]["files"]]
            lib.equal(len(files), 1, f"log_model: an artifact {files}")
        if name == "sweep":
            lib.equal(runs["sweep"]["tags"].get("wandb.sweep"), "sweep7", "WANDB_SWEEP_ID")
            lines = [line["text"] for line in server.json("GET", f"/api/v1/runs/{runs['sweep']['id']}/console")[1]["lines"]]
            lib.check(sum("40/40" in line for line in lines) == 1 and lines[-1] == "after the bar" and len(lines) < 5, f"tqdm in the console: {lines}")


def main():
    python = install.python("frameworks", PACKAGES)
    for name in sys.argv[1:] or SCRIPTS:
        one(python, name)
    lib.finish("frameworks")


main()
