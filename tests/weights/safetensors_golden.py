#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/weights/golden.safetensors with the safetensors package (0.8.0 with PyTorch 2.13.0): one tensor of
each type, whose element i is i - 2 (booleans: i odd), which tests/weights/safetensors_test reads."""
import sys

import torch
from safetensors.torch import save_file

TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
         "i32": torch.int32, "i16": torch.int16, "i8": torch.int8}
tensors = {name: (torch.arange(6) - 2).to(kind).reshape(2, 3) for name, kind in TYPES.items()}
tensors["u8"] = torch.arange(6, dtype=torch.uint8)
tensors["bool"] = torch.arange(6) % 2 == 1
tensors["scalar"] = torch.tensor(1.5)
tensors["empty"] = torch.zeros(0, 4)
tensors["odd.name \u00e9"] = torch.full((1, 1, 1, 1), -0.25)
save_file(tensors, sys.argv[1], metadata={"format": "pt", "model": "resnet20"})
