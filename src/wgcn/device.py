"""The device that torch computes on."""

from __future__ import annotations

import torch

from wgcn.errors import InputError

__all__ = ["find_device"]


def find_device(name: str) -> torch.device:
    """Return the device of a name: "cpu", "cuda", or "auto" for CUDA where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"Unknown device {name!r}. Use 'auto', 'cpu' or 'cuda'.") from error
    if device.type not in ("cpu", "cuda") or (device.type == "cuda" and not torch.cuda.is_available()):
        raise InputError(f"The device {name!r} is not there. Use 'auto', or 'cpu'.")
    return device
