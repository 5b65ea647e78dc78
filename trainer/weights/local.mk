# safetensors in and out.
