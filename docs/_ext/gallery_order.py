"""The order of the gallery: that of the story; scripts that it does not name come last."""

from __future__ import annotations

_ORDER = ("compare", "spike", "kernel", "rates", "staircase", "two_steps", "many_steps",
          "optimizers", "inputs", "inputs_digits", "phases",
          "own_function", "own_weights", "probe_digits", "train_mlp", "fine_tuning")  # fmt: skip


class GalleryOrder:
    """A key that sorts the files of the gallery."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        stem = name.removeprefix("plot_").removesuffix(".py")
        return (_ORDER.index(stem) if stem in _ORDER else len(_ORDER), stem)
