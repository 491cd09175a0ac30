"""Where weights come from: modules, state dicts, arrays, and files that are never executed."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import require
from giantsteps.errors import InvalidProblem
from giantsteps.practice._small_floats import FLOAT8, decode, spread
from giantsteps.practice._torch_file import TorchTensor, read_torch_file
from giantsteps.types import FloatArray

#: Bytes of one array that a file may declare.
_LARGEST = 1 << 34
#: Where checkpoints keep the state dict.
_STATE_DICTS = ("state_dict", "model_state_dict", "model")
_DEEPEST = 16
#: Types of .safetensors files that are floating-point numbers.
_SAFETENSORS_FLOATS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
#: What checkpoints in 8 bits call the factors of a weight, after its name.
_SCALES = ("_scale", "_scale_inv")
_SOURCES = (
    "an nn.Module, a state dict, an array, a list or dict of arrays, or a file that ends in "
    ".safetensors, .npz, .npy, .pt, .pth, .bin or .ckpt"
)
#: A part of an archive that unpacks to more bytes than this, and to as many times its size, is
#: there to fill the memory.
_BOMB_SIZE, _BOMB_RATIO = 2**28, 100


@dataclass(frozen=True)
class Tensor:
    """A named tensor that is read when asked for.

    ``dtype`` is the type it is stored in; ``transposed`` says that the first two axes are
    (in, out) instead of (out, in), as in transposed convolutions; ``factors_of`` names the weight
    in 8 bits that the numbers multiply.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], NDArray[Any]]
    transposed: bool = False
    factors_of: str = ""

    def matrix(self) -> FloatArray:
        """The tensor unfolded: one row per output, one column per input and kernel position."""
        values = np.asarray(self.read(), dtype=np.float64)
        if self.transposed:
            values = values.swapaxes(0, 1)
        return values.reshape(values.shape[0], -1)


@dataclass(frozen=True)
class Weights:
    """The tensors of one source, with the module if there is one."""

    title: str
    tensors: tuple[Tensor, ...]
    module: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", _with_factors(self.tensors))

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def get(self, name: str) -> Tensor | None:
        """The tensor of a name, or None."""
        return next((tensor for tensor in self.tensors if tensor.name == name), None)


def open_weights(source: Any, field: str = "source") -> Weights:
    """The tensors of whatever was given; nothing in a file is executed."""
    if isinstance(source, str | PathLike):
        return _open_file(Path(fspath(source)), field)
    if isinstance(source, type):
        raise InvalidProblem(
            field, source, f"an object with weights, such as {source.__name__}(...)"
        )
    if hasattr(source, "state_dict") and hasattr(source, "named_modules"):
        return _of_module(source)
    if isinstance(source, Mapping):
        return Weights("state dict", tuple(_of_mapping(source, field)))
    if isinstance(source, list | tuple):
        if not source or not all(hasattr(item, "shape") for item in source):
            raise InvalidProblem(field, type(source).__name__, _SOURCES)
        return Weights("arrays", tuple(_of_mapping(dict(enumerate(source)), field)))
    if hasattr(source, "shape") and hasattr(source, "dtype"):
        return Weights("array", tuple(_of_mapping({"array": source}, field)))
    raise InvalidProblem(field, type(source).__name__, _SOURCES)


def _with_factors(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Weights in 8 bits times the factors that were stored beside them."""
    found = {tensor.name: tensor for tensor in tensors}
    for tensor in tensors:
        beside = [tensor.name + ending for ending in _SCALES if tensor.name + ending in found]
        if not tensor.dtype.startswith("float8") or not beside:
            continue
        factors = found[beside[0]]
        found[beside[0]] = replace(factors, factors_of=tensor.name)
        found[tensor.name] = replace(tensor, read=partial(_scaled, tensor, factors))
    return tuple(found.values())


def _scaled(tensor: Tensor, factors: Tensor) -> FloatArray:
    values = np.asarray(tensor.read(), dtype=np.float64)
    try:
        return values * spread(np.asarray(factors.read(), dtype=np.float64), values.shape)
    except ValueError:
        raise InvalidProblem(
            factors.name, factors.shape, f"one factor per block of {tensor.name}, {tensor.shape}"
        ) from None


def tensor_to_numpy(array: Any) -> NDArray[Any]:
    """NumPy or PyTorch, on any device and of any float type, as NumPy."""
    if isinstance(array, TorchTensor):
        return array.read()
    if hasattr(array, "detach"):
        if array.is_meta:
            raise InvalidProblem("tensor", "on the meta device", "filled: load the weights first")
        array = array.detach().cpu()
        array = array.dequantize() if array.is_quantized else array.to_dense()
        if "bfloat16" in str(array.dtype) or "float8" in str(array.dtype):
            array = array.float()
        return np.asarray(array.numpy())
    return np.asarray(array)


def _of_module(module: Any) -> Weights:
    """Parameters of a module; the weights of transposed convolutions are known as such."""
    transposed = {
        f"{name}.weight" if name else "weight"
        for name, part in module.named_modules()
        if getattr(part, "transposed", False)
    }
    found = tuple(
        Tensor(
            name,
            tuple(parameter.shape),
            str(parameter.dtype).removeprefix("torch."),
            partial(tensor_to_numpy, parameter),
            name in transposed,
        )
        for name, parameter in module.named_parameters()
    )
    return Weights(type(module).__name__, found, module)


def _of_mapping(mapping: Mapping[Any, Any], field: str) -> Iterator[Tensor]:
    """Tensors of a state dict, or of the one that a checkpoint keeps beside its optimizer."""
    for key in _STATE_DICTS:
        if isinstance(mapping.get(key), Mapping):
            mapping = mapping[key]
    yield from _walk(mapping, field, "", 0)


def _walk(mapping: Mapping[Any, Any], field: str, prefix: str, depth: int) -> Iterator[Tensor]:
    if depth > _DEEPEST:
        raise InvalidProblem(field, f"dicts inside dicts, {depth} deep", "a state dict")
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _walk(value, field, f"{name}.", depth + 1)
        elif hasattr(value, "shape") and hasattr(value, "dtype"):
            dtype = str(value.dtype).removeprefix("torch.")
            yield Tensor(name, tuple(value.shape), dtype, partial(tensor_to_numpy, value))


# Files ----------------------------------------------------------------------------------------


def _open_file(path: Path, field: str) -> Weights:
    """Weights of a file by its ending."""
    if path.is_dir():
        parts = sorted(path.glob("*.safetensors"))
        if not parts:
            raise InvalidProblem(field, str(path), "a folder with .safetensors files, or a file")
        tensors = [tensor for part in parts for tensor in _safetensors(part, field)]
        return Weights(path.name, tuple(tensors))
    if not path.is_file():
        raise InvalidProblem(field, str(path), "a file that exists")
    ending = path.suffix.lower()
    if ending == ".safetensors":
        return Weights(path.name, tuple(_safetensors(path, field)))
    if ending in (".npz", ".npy"):
        return Weights(path.name, tuple(_numpy_file(path, field)))
    if ending in (".pt", ".pth", ".bin", ".ckpt"):
        return Weights(path.name, tuple(_torch_file(path, field)))
    raise InvalidProblem(field, str(path), _SOURCES)


def _safetensors(path: Path, field: str) -> Iterator[Tensor]:
    """Tensors of a .safetensors file; the library checks header and offsets."""
    safetensors = require("safetensors", "a .safetensors file", "practice")
    try:
        file = safetensors.safe_open(path, framework="np")
        names = list(file.keys())
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise InvalidProblem(field, str(path), f"a valid .safetensors file ({error})") from None
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(length))
    for name in names:
        entry = header[name]
        dtype, shape = entry["dtype"], tuple(entry["shape"])
        known = _SAFETENSORS_FLOATS.get(dtype, dtype.lower())
        read = partial(file.get_tensor, name)
        if known == "bfloat16" or known in FLOAT8:  # NumPy has no such types
            first, last = entry["data_offsets"]
            read = partial(_read_part, path, known, shape, (8 + length + first, last - first))
        yield Tensor(name, shape, known, read)


def _read_part(
    path: Path, dtype: str, shape: tuple[int, ...], span: tuple[int, int]
) -> NDArray[Any]:
    """Numbers from the bytes of a file that was checked."""
    with path.open("rb") as stream:
        stream.seek(span[0])
        return decode(stream.read(span[1]), dtype).reshape(shape)


def _numpy_file(path: Path, field: str) -> Iterator[Tensor]:
    """Arrays of .npz and .npy; headers are checked before anything is read, pickles refused."""
    try:
        if path.suffix.lower() == ".npy":
            with path.open("rb") as stream:
                shape, dtype = _npy_header(stream, path.stat().st_size)
            yield Tensor(path.stem, shape, str(dtype), lambda: np.load(path, allow_pickle=False))
            return
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.filename.endswith(".npy"):
                    continue
                if entry.file_size > max(_BOMB_SIZE, _BOMB_RATIO * entry.compress_size):
                    raise ValueError(
                        f"{entry.filename} unpacks {entry.compress_size} bytes to "
                        f"{entry.file_size}: no weights are as regular as that"
                    )
                with archive.open(entry) as stream:
                    shape, dtype = _npy_header(stream, entry.file_size)
                name = entry.filename.removesuffix(".npy")
                yield Tensor(name, shape, str(dtype), partial(_read_npz, path, name))
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        allowed = f"a valid {path.suffix} file of numbers, without pickled objects ({error})"
        raise InvalidProblem(field, str(path), allowed) from None


def _npy_header(stream: Any, size: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type that a stream declares, if the stream is long enough for them."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"version {version} of the .npy format")
    if dtype.hasobject:
        raise ValueError("it holds pickled Python objects")
    count = dtype.itemsize
    for side in shape:
        count *= int(side)
    left = size - int(stream.tell())
    if any(side < 0 for side in shape) or count > min(left, _LARGEST):
        raise ValueError(f"an array of shape {shape} does not fit in {left} bytes")
    return shape, dtype


def _read_npz(path: Path, name: str) -> NDArray[Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return np.asarray(arrays[name])


def _torch_file(path: Path, field: str) -> Iterator[Tensor]:
    """A PyTorch checkpoint, read by an interpreter that can build tensors only."""
    try:
        loaded = read_torch_file(path)
    except ValueError as error:
        raise InvalidProblem(
            field,
            str(path),
            "a checkpoint of tensors only, as torch.save(model.state_dict(), path) writes it; "
            f"nothing in it was executed ({error})",
        ) from None
    yield from _of_mapping(loaded, field)


_INPUTS = ("X", "x", "inputs", "features", "data")
_LABELS = ("y", "Y", "labels", "targets", "target")
#: Rows that are read from a data set or data loader of PyTorch.
_ROWS = 4096


def open_data(data: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inputs and labels: a pair, a mapping, ``gs.Data``, a file, or a data loader of PyTorch."""
    if isinstance(data, str | PathLike):
        path = Path(fspath(data))
        if path.suffix.lower() not in (".npz", ".safetensors"):
            raise InvalidProblem("data", str(path), "an .npz or .safetensors file with X and y")
        data = {tensor.name: tensor.read() for tensor in _open_file(path, "data")}
    elif hasattr(data, "X") and hasattr(data, "y"):
        data = {"X": data.X, "y": data.y}
    elif not isinstance(data, list | tuple | Mapping) and not hasattr(data, "shape"):
        data = _first_rows(data)
    if isinstance(data, Mapping):
        names = [next((n for n in names if n in data), None) for names in (_INPUTS, _LABELS)]
        if None in names:
            raise InvalidProblem(
                "data", sorted(map(str, data)), "inputs named X and labels named y"
            )
        data = (data[names[0]], data[names[1]])
    if not isinstance(data, list | tuple) or len(data) != 2:
        raise InvalidProblem(
            "data", type(data).__name__, "a pair (inputs, labels), a file, or a DataLoader"
        )
    x, y = tensor_to_numpy(data[0]), tensor_to_numpy(data[1])
    if x.ndim < 2 or 0 in x.shape or x.dtype.kind not in "fiu" or not np.all(np.isfinite(x)):
        raise InvalidProblem("data", f"{x.dtype} {x.shape}", "finite inputs of shape (rows, ...)")
    if y.dtype.kind not in "fiub":
        raise InvalidProblem(
            "data",
            f"labels of type {y.dtype}",
            "numbers; for classes, np.unique(labels, return_inverse=True)[1]",
        )
    if y.ndim not in (1, 2) or len(y) != len(x):
        raise InvalidProblem("data", y.shape, f"labels, one per row of inputs ({len(x)})")
    if not np.all(np.isfinite(y)):
        raise InvalidProblem("data", "NaN or infinite labels", "finite labels")
    return x, y


def _first_rows(data: Any) -> Any:
    """The first rows of a data loader, or of a data set, which has one row per item."""
    loaded = hasattr(data, "batch_size")
    if not loaded and not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        return data
    parts: list[tuple[NDArray[Any], NDArray[Any]]] = []
    rows = 0
    for batch in data if loaded else (data[i] for i in range(min(len(data), _ROWS))):
        if not isinstance(batch, list | tuple) or len(batch) != 2:
            raise InvalidProblem("data", type(data).__name__, "batches of (inputs, labels)")
        x, y = tensor_to_numpy(batch[0]), tensor_to_numpy(batch[1])
        parts.append((x, y) if loaded else (x[None], y[None]))
        rows += len(parts[-1][0])
        if rows >= _ROWS:
            break
    if not parts:
        raise InvalidProblem("data", type(data).__name__, "at least one row")
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])
