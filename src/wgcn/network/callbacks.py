"""What a training of the network calls after every epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from wgcn.network.settings import EpochRecord

if TYPE_CHECKING:
    from wgcn.network.module import WGCN

__all__ = ["Callback"]


class Callback(Protocol):
    """Receives every epoch. It may raise KeyboardInterrupt to end the training."""

    def on_epoch(self, record: EpochRecord, model: WGCN) -> None:
        """Handle the end of an epoch; the model must not be changed."""
