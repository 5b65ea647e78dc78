# SPDX-License-Identifier: Apache-2.0
"""Records an emulation of Apex's levels O1, O2 and O3 for resnet20 and a small GPT, for tests/train/casts.py.

    pip install torch==2.13.0 numpy safetensors
    python3 make_casts.py               writes casts.json next to this script

Everything is computed in f64 from the weights and batches of make_resnet20.py and make_gpt.py. Values are rounded where
trainer/ops/casts.def says that a tensor is stored: to f32, or through f32 to f16. The backward passes are written out,
because rounding has no derivative. Per run: losses, and of each gradient of step 1, which includes the loss scale, its norm and its product with
cos(0), cos(1), ... ."""
import json
import os
import sys

import torch
from safetensors.torch import load_file
from torch.autograd import Function

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 8
F16, F32 = "F16", "F32"
# level: weights as the model reads them, as the optimiser updates them, norms, gradients of weights and of norms,
# activations of a text model between products, loss scale
LEVELS = {"O1": dict(read=F32, stored=F32, norm=F32, grad=F32, norm_grad=F32, between=F32, scale=65536.0),
          "O2": dict(read=F16, stored=F32, norm=F32, grad=F16, norm_grad=F32, between=F16, scale=65536.0),
          "O3": dict(read=F16, stored=F16, norm=F16, grad=F16, norm_grad=F16, between=F16, scale=1.0)}


def rounded(x, kind):
    x = x.float()
    return (x.half() if kind == F16 else x).double()


def half(x):
    return rounded(x, F16)


class Weight(Function):
    """A parameter as the model reads it; its gradient as it is stored."""

    @staticmethod
    def forward(ctx, p, read, grad):
        ctx.kind = grad
        return rounded(p, read)

    @staticmethod
    def backward(ctx, g):
        return rounded(g, ctx.kind), None, None


class Conv(Function):
    @staticmethod
    def forward(ctx, x, w, stride, pad):
        x, w = half(x), half(w)
        ctx.save_for_backward(x, w)
        ctx.how = stride, pad
        return half(torch.nn.functional.conv2d(x, w, None, stride, pad))

    @staticmethod
    def backward(ctx, g):
        (x, w), (stride, pad), g = ctx.saved_tensors, ctx.how, half(g)
        dx = torch.nn.grad.conv2d_input(x.shape, w, g, stride, pad)
        return half(dx), half(torch.nn.grad.conv2d_weight(x, w.shape, g, stride, pad)), None, None


class BatchNorm(Function):
    """With the sum and the ReLU after it: rounded once. Sums are those of unrounded gradients."""

    @staticmethod
    def forward(ctx, x, gain, bias, skip, relu):
        mean = x.mean((0, 2, 3), keepdim=True)
        rstd = 1 / torch.sqrt((x * x).mean((0, 2, 3), keepdim=True) - mean * mean + 1e-5)
        xhat = (x - mean) * rstd
        pre = gain.view(1, -1, 1, 1) * xhat + bias.view(1, -1, 1, 1)
        y = half((pre if skip is None else pre + skip).clamp(min=0) if relu else pre)
        ctx.save_for_backward(xhat, rstd, gain, (pre if skip is None else y) > 0)
        ctx.relu, ctx.skips = relu, skip is not None
        return y

    @staticmethod
    def backward(ctx, g):
        xhat, rstd, gain, positive = ctx.saved_tensors
        g = g * positive if ctx.relu else g
        count = g.numel() / g.shape[1]
        sums = g.sum((0, 2, 3), keepdim=True), (g * xhat).sum((0, 2, 3), keepdim=True)
        g = half(g)
        dx = gain.view(1, -1, 1, 1) * rstd * (g - sums[0] / count - xhat * sums[1] / count)
        return half(dx), sums[1].flatten(), sums[0].flatten(), g if ctx.skips else None, None


class Pool(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return half(x.mean((2, 3)))

    @staticmethod
    def backward(ctx, g):
        n, c, h, w = ctx.shape
        return half((g / (h * w)).view(n, c, 1, 1).expand(ctx.shape))


class Linear(Function):
    """w [in, out]."""

    @staticmethod
    def forward(ctx, x, w, b):
        x, w = half(x), half(w)
        ctx.save_for_backward(x, w)
        return half(x @ w + half(b))

    @staticmethod
    def backward(ctx, g):
        (x, w), g = ctx.saved_tensors, half(g)
        return half(g @ w.T), half(x.T @ g), half(g.sum(0))


class CrossEntropy(Function):
    """The gradient includes the loss scale; the log of the sum is stored."""

    @staticmethod
    def forward(ctx, logits, labels, scale):
        lse = torch.logsumexp(logits, 1)
        ctx.save_for_backward(logits, labels, rounded(lse, F32))
        ctx.scale = scale
        return (lse - logits[torch.arange(len(labels)), labels]).mean()

    @staticmethod
    def backward(ctx, g):
        logits, labels, lse = ctx.saved_tensors
        d = torch.exp(logits - lse[:, None])
        d[torch.arange(len(labels)), labels] -= 1
        return rounded(d * (ctx.scale / len(labels)), F32), None, None


class Head(Function):
    """Classifier and loss of a text model in one: logits are not stored."""

    @staticmethod
    def forward(ctx, x, w, targets, scale):
        x, w = half(x), half(w)
        logits, counts = x @ w.T, targets >= 0
        lse = torch.logsumexp(logits, 1)
        at = torch.arange(len(targets))
        d = torch.exp(logits - lse[:, None])
        d[at, targets.clamp(min=0)] -= 1
        ctx.save_for_backward(x, w, d * counts[:, None] * (scale / counts.sum()))
        return ((lse - logits[at, targets.clamp(min=0)]) * counts).sum() / counts.sum()

    @staticmethod
    def backward(ctx, g):
        x, w, d = ctx.saved_tensors
        return half(d @ w), half(d.T @ x), None, None


class LayerNorm(Function):
    """With the addition before it; returns y and the sum. Statistics are those of the unrounded sum."""

    @staticmethod
    def forward(ctx, x, delta, gain, bias, kind):
        s = x if delta is None else x + delta
        mean = s.mean(1, keepdim=True)
        rstd = 1 / torch.sqrt(((s - mean) ** 2).mean(1, keepdim=True) + 1e-5)
        ctx.save_for_backward(rounded(s, kind), rounded(mean, F32), rounded(rstd, F32), gain)
        ctx.kind, ctx.adds = kind, delta is not None
        return rounded((s - mean) * rstd * gain + bias, kind), rounded(s, kind)

    @staticmethod
    def backward(ctx, g, skip):
        s, mean, rstd, gain = ctx.saved_tensors
        h, g = (s - mean) * rstd, rounded(g, ctx.kind)
        d = g * gain
        ds = rounded(rstd * (d - d.mean(1, keepdim=True) - h * (d * h).mean(1, keepdim=True)) + skip, ctx.kind)
        return ds, ds if ctx.adds else None, (g * h).sum(0), g.sum(0), None


class Gelu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return half(torch.nn.functional.gelu(x, approximate="tanh"))

    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = torch.nn.functional.gelu(x, approximate="tanh")
        return half(torch.autograd.grad(y, x, g)[0])


class Attention(Function):
    @staticmethod
    def forward(ctx, qkv, sequences, heads):
        rows, c = qkv.shape[0], qkv.shape[1] // 3
        q, k, v = (t.reshape(sequences, -1, heads, c // heads).transpose(1, 2) for t in qkv.split(c, 1))
        s = q @ k.transpose(2, 3) / (c // heads) ** 0.5
        s = s.masked_fill(torch.ones(s.shape[2:], dtype=torch.bool).triu(1), float("-inf"))
        lse = torch.logsumexp(s, 3, keepdim=True)
        y = half(torch.exp(s - lse) @ v)
        ctx.save_for_backward(q, k, v, s, rounded(lse, F32), y)
        return y.transpose(1, 2).reshape(rows, c)

    @staticmethod
    def backward(ctx, g):
        q, k, v, s, lse, y = ctx.saved_tensors
        n, h, t, d = q.shape
        dy = half(g).reshape(n, t, h, d).transpose(1, 2)
        p = torch.exp(s - lse)
        ds = p * (dy @ v.transpose(2, 3) - (dy * y).sum(3, keepdim=True)) / d ** 0.5
        parts = ds @ k, ds.transpose(2, 3) @ q, p.transpose(2, 3) @ dy
        return half(torch.cat([x.transpose(1, 2).reshape(n * t, h * d) for x in parts], 1)), None, None


class Embed(Function):
    """Gradients are rounded where they are stored, after the classifier's was added."""

    @staticmethod
    def forward(ctx, table, places, tokens, kind):
        ctx.save_for_backward(tokens)
        ctx.shapes = table.shape, places.shape
        x = table[tokens] + places[:tokens.shape[1]]
        return rounded(x.reshape(-1, x.shape[2]), kind)

    @staticmethod
    def backward(ctx, g):
        tokens, = ctx.saved_tensors
        rows, (table, places) = g.reshape(*tokens.shape, -1), ctx.shapes
        dplaces = torch.zeros(places, dtype=torch.float64)
        dplaces[:tokens.shape[1]] = rows.sum(0)
        return torch.zeros(table, dtype=torch.float64).index_add_(0, tokens.flatten(), g), dplaces, None, None


class Net:
    def __init__(self, level, state, is_norm, decay):
        self.level, self.is_norm, self.decay = level, is_norm, decay
        self.p = {k: rounded(v, level["norm"] if is_norm(k) else level["stored"]).requires_grad_() for k, v in state.items()}
        self.momentum = {k: torch.zeros_like(v) for k, v in self.p.items()}

    def w(self, name):
        norm = self.is_norm(name)
        kinds = ("norm", "norm_grad") if norm else ("read", "grad")
        return Weight.apply(self.p[name], *[self.level[k] for k in kinds])

    def update(self):
        for k, p in self.p.items():
            kind = self.level["norm"] if self.is_norm(k) else self.level["stored"]
            m = 0.9 * self.momentum[k] + p.grad / self.level["scale"] + (self.decay if p.ndim > 1 else 0) * p.data
            p.data = rounded(p.data - 0.01 * m, kind)
            self.momentum[k] = rounded(m, kind)


class ResNet(Net):
    def bn(self, x, name, skip=None, relu=True):
        return BatchNorm.apply(x, self.w(name + ".weight"), self.w(name + ".bias"), skip, relu)

    def block(self, x, name, stride):
        y = self.bn(Conv.apply(x, self.w(name + ".conv1.weight"), stride, 1), name + ".bn1")
        y = Conv.apply(y, self.w(name + ".conv2.weight"), 1, 1)
        if name + ".downsample.0.weight" not in self.p:
            return self.bn(y, name + ".bn2", x)
        x = Conv.apply(x, self.w(name + ".downsample.0.weight"), stride, 0)
        return self.bn(x, name + ".downsample.1", self.bn(y, name + ".bn2", None, False))

    def loss(self, batch):
        x = self.bn(Conv.apply(batch["images"].double(), self.w("conv1.weight"), 1, 1), "bn1")
        for layer in (1, 2, 3):
            for i in range(3):
                x = self.block(x, "layer%d.%d" % (layer, i), 2 if layer > 1 and i == 0 else 1)
        logits = Linear.apply(Pool.apply(x), self.w("fc.weight").T, self.w("fc.bias"))
        return CrossEntropy.apply(logits, batch["labels"], self.level["scale"])


class Gpt(Net):
    def linear(self, x, name):
        return Linear.apply(x, self.w(name + ".weight"), self.w(name + ".bias"))

    def norm(self, x, delta, name):
        return LayerNorm.apply(x, delta, self.w(name + ".weight"), self.w(name + ".bias"), self.level["between"])

    def loss(self, batch):
        tokens = batch["tokens"]
        inputs, targets = tokens[:, :-1], tokens[:, 1:].clone()
        targets[inputs < 0] = -1
        table, delta = self.w("transformer.wte.weight"), None
        x = Embed.apply(table, self.w("transformer.wpe.weight"), inputs.clamp(min=0), self.level["between"])
        for i in range(2):
            h = "transformer.h.%d." % i
            y, x = self.norm(x, delta, h + "ln_1")
            y = Attention.apply(self.linear(y, h + "attn.c_attn"), len(tokens), 3)
            y, x = self.norm(x, self.linear(y, h + "attn.c_proj"), h + "ln_2")
            delta = self.linear(Gelu.apply(self.linear(y, h + "mlp.c_fc")), h + "mlp.c_proj")
        y, _ = self.norm(x, delta, "transformer.ln_f")
        return Head.apply(y, table, targets.flatten(), self.level["scale"])


def described(g):
    g = g.contiguous().flatten()
    return [float(g.norm()), float(g @ torch.cos(torch.arange(len(g), dtype=torch.float64)))]


def train(net, batch):
    losses, grads = [], None
    for _ in range(STEPS):
        for p in net.p.values():
            p.grad = None
        loss = net.loss(batch)
        loss.backward()
        grads = grads or {k: described(p.grad) for k, p in net.p.items()}
        if all(p.grad.isfinite().all() for p in net.p.values()):
            net.update()
        else:
            net.level["scale"] /= 2
        losses.append(loss.item())
    return {"losses": losses, "grads": grads}


def main():
    def load(name):
        return load_file(os.path.join(HERE, name + ".safetensors"))

    pictures = {k: v for k, v in load("weights").items() if "running" not in k}
    words, recorded = load("gpt-tied"), {"torch": torch.__version__}
    for name, level in LEVELS.items():
        recorded[name] = {
            "resnet20": train(ResNet(dict(level), pictures, lambda k: "bn" in k or "downsample.1" in k, 1e-4), load("batch")),
            "gpt": train(Gpt(dict(level), words, lambda k: ".ln_" in k, 0.1), load("gpt-batch"))}
    with open(os.path.join(HERE, sys.argv[1] if len(sys.argv) > 1 else "casts.json"), "w", encoding="utf-8") as out:
        json.dump(recorded, out, indent=0)
        out.write("\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
