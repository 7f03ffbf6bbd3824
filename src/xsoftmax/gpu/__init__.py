"""Training on PyTorch's devices: what solvers named ``torch-...`` are made of.

Only ``xsoftmax.gpu.device`` is imported before a device is asked for; the other modules import torch.
"""
