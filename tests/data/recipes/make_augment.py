# SPDX-License-Identifier: Apache-2.0
"""Writes augment.json: what torchvision's transforms.v2 make of small images and given random numbers. Made by torch 2.14.1
and torchvision 0.29.1: python3 make_augment.py. tests/data/recipes/augment_test.c compares."""
import json
import os

import torch
import torchvision
from torchvision.transforms import v2

HERE = os.path.dirname(os.path.abspath(__file__))
OPS = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness",
       "Posterize", "Solarize", "AutoContrast", "Equalize"]
POLICIES = {"ra": v2.RandAugment(interpolation=v2.InterpolationMode.BILINEAR),
            "ta_wide": v2.TrivialAugmentWide(interpolation=v2.InterpolationMode.BILINEAR)}
HEIGHT, WIDTH = 14, 11


def picture(channels, seed):
    """A gradient with noise: levels from 20 to 230, so that contrast and equalisation have something to do."""
    g = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij")
    base = torch.stack([20 + 9 * y + 3 * x, 200 - 7 * y + 2 * x, 60 + 11 * x])[:channels].float()
    return (base + 25 * torch.rand(channels, HEIGHT, WIDTH, generator=g)).clamp(0, 255).to(torch.uint8)


def flat(image):
    """[channels, height, width] as height, width, channels: hexadecimal."""
    return image.permute(1, 2, 0).contiguous().numpy().tobytes().hex()


def steps():
    """Every op of both policies, with the smallest, a middle and the largest magnitude and both signs."""
    for policy, transform in POLICIES.items():
        for op, name in enumerate(OPS):
            function, signed = transform._AUGMENTATION_SPACE[name]
            magnitudes = function(31, HEIGHT, WIDTH)
            for bin_ in [9] if policy == "ra" or magnitudes is None else [3, 17, 20, 30]:
                size = 0.0 if magnitudes is None else float(magnitudes[bin_])
                for sign in (1, -1) if signed else (1,):
                    yield policy, op, name, bin_, sign * size


def augmented():
    rows = []
    for channels, seed in ((3, 1), (1, 2)):
        image = picture(channels, seed)
        for policy, op, name, bin_, magnitude in steps():
            if channels == 1 and name in ("ShearX", "TranslateX", "TranslateY", "Posterize", "Solarize"):
                continue
            got = POLICIES[policy]._apply_image_or_video_transform(image, name, magnitude, v2.InterpolationMode.BILINEAR, {})
            rows.append({"policy": policy, "op": op, "name": name, "bin": bin_, "magnitude": magnitude, "channels": channels,
                         "pixels": flat(got)})
    return {"height": HEIGHT, "width": WIDTH, "images": {"3": flat(picture(3, 1)), "1": flat(picture(1, 2))}, "rows": rows}


class Given:
    """A distribution that draws one number."""

    def __init__(self, value):
        self.value = value

    def sample(self, *_):
        return torch.tensor([self.value], dtype=torch.float64)


def mixed():
    """Images f64 [batch][height][width][channels], mixed with the sample before, and the weights of the labels."""
    g = torch.Generator().manual_seed(3)
    batch, labels = torch.randn(3, 2, 5, 4, dtype=torch.float64, generator=g), torch.tensor([4, 0, 2])
    out = {"batch": batch.permute(0, 2, 3, 1).flatten().tolist(), "samples": 3, "height": 5, "width": 4, "channels": 2,
           "labels": labels.tolist(), "rows": []}
    draws = [("mixup", 0.3, 0, 0), ("mixup", 1.0, 0, 0), ("mixup", 0.875, 0, 0), ("cutmix", 0.4, 1, 2), ("cutmix", 0.9, 3, 4),
             ("cutmix", 0.0, 0, 0), ("cutmix", 0.05, 2, 1)]
    for kind, lam, x, y in draws:
        transform = (v2.MixUp if kind == "mixup" else v2.CutMix)(num_classes=5)
        transform._dist = Given(lam)
        numbers = iter([x, y])
        real, torch.randint = torch.randint, lambda *_, **__: torch.tensor([next(numbers)])
        try:
            images, targets = transform(batch, labels)
        finally:
            torch.randint = real
        out["rows"].append({"kind": kind, "weight": lam, "x": x, "y": y, "images": images.permute(0, 2, 3, 1).flatten().tolist(),
                            "targets": targets.double().flatten().tolist()})
    return out


def erased():
    g = torch.Generator().manual_seed(4)
    image = torch.randn(3, 6, 7, dtype=torch.float64, generator=g)
    box = {"i": 2, "j": 1, "h": 3, "w": 5, "v": torch.zeros(1, dtype=torch.float64)}
    got = v2.RandomErasing(p=1).transform(image, box)
    return {"image": image.permute(1, 2, 0).flatten().tolist(), "height": 6, "width": 7, "channels": 3, "x": 1, "y": 2,
            "box_width": 5, "box_height": 3, "erased": got.permute(1, 2, 0).flatten().tolist()}


def main():
    made = {"torch": torch.__version__, "torchvision": torchvision.__version__, "augment": augmented(), "mix": mixed(),
            "erase": erased()}
    with open(os.path.join(HERE, "augment.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(made).replace('{"', '\n{"') + "\n")


main()
