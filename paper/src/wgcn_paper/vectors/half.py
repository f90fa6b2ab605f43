"""A copy of the sentence encoder in half precision, for a machine that cannot install it: 46 MB instead of 91.

    python -m wgcn_paper.vectors.half data/encoder

``WGCN_ENCODER=data/encoder`` then makes every experiment use the copy, in float32 again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save

from wgcn.base.errors import InputError, WGCNError
from wgcn.base.files import write_file
from wgcn_paper.vectors.encoder import encoder_folder

_WEIGHTS = "model.safetensors"


def write_half(target: Path) -> None:
    """Write the encoder's weights, rounded to half precision, and its configuration to a folder, new or with a copy."""
    source = encoder_folder()
    if target.resolve() == source.resolve():
        raise InputError(f"{target} is the encoder itself. Name another folder for the copy.")
    tensors = load_file(source / _WEIGHTS)
    halves = {
        name: values.astype(np.float16) if values.dtype == np.float32 else values for name, values in tensors.items()
    }
    # Without this entry sentence-transformers does not take the file for one of torch.
    contents = {_WEIGHTS: save(halves, {"format": "pt"})}
    for path in sorted(source.rglob("*")):
        if path.suffix in (".json", ".txt"):
            contents[str(path.relative_to(source))] = path.read_bytes()
    for name, content in contents.items():
        write_file(target / name, lambda file, content=content: file.write(content))  # type: ignore[misc]


def main(arguments: list[str] | None = None) -> int:
    """Write the copy to the folder that is named."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if len(given) != 1:
            raise InputError("Name one folder: python -m wgcn_paper.vectors.half data/encoder")
        write_half(Path(given[0]))
    except WGCNError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
