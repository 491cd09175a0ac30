"""PyTorch checkpoints read without PyTorch and without pickle: tensors, or a refusal.

A checkpoint is a zip archive: a pickle program that says how to build the state dict, and one
file per storage.
The program is interpreted here, instruction by instruction.
It may build dicts, lists, tuples, numbers, texts and tensors; a reference to any other Python
object ends the reading before it is looked up.
"""

from __future__ import annotations

import pickletools
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.practice._small_floats import FLOAT8, decode, item_size

#: Storage classes and the types of their numbers.
_STORAGES = {
    "torch.DoubleStorage": "float64",
    "torch.FloatStorage": "float32",
    "torch.HalfStorage": "float16",
    "torch.BFloat16Storage": "bfloat16",
    "torch.LongStorage": "int64",
    "torch.IntStorage": "int32",
    "torch.ShortStorage": "int16",
    "torch.CharStorage": "int8",
    "torch.ByteStorage": "uint8",
    "torch.BoolStorage": "bool",
    "torch.storage.UntypedStorage": "uint8",
}
#: Types that come with the tensor, because they have no storage class.
_NAMED_TYPES = {f"torch.{name}": name for name in FLOAT8}
_CALLABLE = {
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
}
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
}
_LITERALS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE",
             "SHORT_BINUNICODE"}  # fmt: skip
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
#: Bytes of the program; that of a state dict with 100,000 tensors has some ten million.
_LONGEST = 1 << 28
_MARK = object()


@dataclass(frozen=True)
class _Name:
    """A reference to a Python object, which is never looked up."""

    name: str


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: str
    size: int


@dataclass(frozen=True)
class TorchTensor:
    """A tensor of a checkpoint: ``read()`` gives its numbers."""

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], NDArray[Any]]


def read_torch_file(path: Path) -> Mapping[Any, Any]:
    """The mapping of a checkpoint, with a `TorchTensor` for each tensor.

    Raises
    ------
    ValueError
        If the file is not a checkpoint of tensors and plain containers.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in found):
                raise ValueError("it is compressed, which torch.save never does")
            entries = {entry.filename: entry.file_size for entry in found}
            program = next((name for name in entries if name.endswith("/data.pkl")), None)
            if program is None:
                raise ValueError("it is no archive that torch.save wrote")
            if entries[program] > _LONGEST:
                raise ValueError("its program is absurdly long")
            root = program.removesuffix("data.pkl")
            if f"{root}byteorder" in entries and archive.read(f"{root}byteorder") != b"little":
                raise ValueError("it was written on a big-endian machine")
            instructions = archive.read(program)
    except (zipfile.BadZipFile, OSError, NotImplementedError, EOFError) as error:
        raise ValueError(
            f"it is no zip archive, as torch.save writes since version 1.6 ({error})"
        ) from None
    loaded = _Machine(path, root, entries).run(instructions)
    if isinstance(loaded, TorchTensor):
        return {"tensor": loaded}
    if not isinstance(loaded, Mapping):
        raise ValueError("it holds no state dict")
    return loaded


class _Machine:
    """An interpreter of the few instructions that a state dict needs."""

    def __init__(self, path: Path, root: str, entries: Mapping[str, int]) -> None:
        self.path, self.root, self.entries = path, root, entries
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, program: bytes) -> Any:
        try:
            for opcode, argument, _ in pickletools.genops(program):
                if opcode.name == "STOP":
                    return self.stack.pop()
                self.step(opcode.name, argument)
        except (IndexError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"its program is broken ({type(error).__name__})") from None
        raise ValueError("its program is cut off")

    def step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in ("PROTO", "FRAME"):
            return
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name]())
        elif name in _LITERALS:
            stack.append(argument)
        elif name == "MARK":
            stack.append(_MARK)
        elif name == "TUPLE":
            stack.append(tuple(self.above_mark()))
        elif name in _TUPLES:
            count = _TUPLES[name]
            stack[-count:] = [tuple(stack[-count:])]
        elif name in ("APPEND", "APPENDS"):
            items = [stack.pop()] if name == "APPEND" else self.above_mark()
            self.top(list).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else self.above_mark()
            self.top(dict).update(zip(items[::2], items[1::2], strict=True))
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            parts = argument.split(" ") if name == "GLOBAL" else [stack.pop(), stack.pop()][::-1]
            stack.append(self.named(".".join(parts)))
        elif name == "BINPERSID":
            stack.append(self.storage(stack.pop()))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack.append(self.call(stack.pop().name, arguments))
        elif name == "BUILD":  # attributes of an OrderedDict: versions of its modules
            stack.pop()
            self.top(dict)
        else:
            raise ValueError(f"it uses the instruction {name}, which no state dict needs")

    def above_mark(self) -> list[Any]:
        """Everything after the last mark, taken off with it."""
        place = max(i for i, item in enumerate(self.stack) if item is _MARK)
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return items

    def top(self, kind: type) -> Any:
        if not isinstance(self.stack[-1], kind):
            raise TypeError
        return self.stack[-1]

    def named(self, name: str) -> _Name:
        if name not in _CALLABLE and name not in _STORAGES and name not in _NAMED_TYPES:
            raise ValueError(f"it refers to {name}, which is no part of a state dict")
        return _Name(name)

    def storage(self, identity: Any) -> _Storage:
        kind, storage, key, _, size = identity
        if kind != "storage" or not isinstance(key, str) or not isinstance(size, int):
            raise TypeError
        return _Storage(key, _STORAGES[storage.name], size)

    def call(self, name: str, arguments: Any) -> Any:
        if name == "collections.OrderedDict":
            return {} if not arguments else dict(arguments[0])
        if name == "torch._utils._rebuild_parameter":
            if not isinstance(arguments[0], TorchTensor):
                raise TypeError
            return arguments[0]
        if name == "torch._utils._rebuild_tensor_v2":
            return self.tensor(*arguments[:4])
        if name == "torch._utils._rebuild_tensor_v3":
            storage, kind = arguments[0], arguments[6]
            if storage.dtype != "uint8" or kind.name not in _NAMED_TYPES:
                raise TypeError
            return self.tensor(replace(storage, dtype=_NAMED_TYPES[kind.name]), *arguments[1:4])
        raise TypeError

    def tensor(
        self, storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> TorchTensor:
        """A tensor that lies inside its storage, or a refusal."""
        numbers = (offset, *shape, *strides)
        if len(shape) != len(strides) or not all(type(n) is int and n >= 0 for n in numbers):
            raise TypeError
        entry = f"{self.root}data/{storage.key}"
        if self.entries.get(entry, -1) < storage.size * item_size(storage.dtype):
            raise ValueError(f"the storage {storage.key} is missing or too short")
        last = offset + sum((side - 1) * stride for side, stride in zip(shape, strides))
        if 0 not in shape and last >= storage.size:
            raise ValueError(f"a tensor of shape {shape} does not fit in its storage")
        if int(np.prod(shape, dtype=object)) > storage.size:
            raise ValueError(f"a tensor of shape {shape} repeats its storage")
        return TorchTensor(
            shape,
            storage.dtype,
            partial(_read, self.path, entry, storage.dtype, offset, shape, strides),
        )


def _read(
    path: Path,
    entry: str,
    dtype: str,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> NDArray[Any]:
    """The numbers of a tensor that was checked against its storage."""
    with zipfile.ZipFile(path) as archive:
        raw = archive.read(entry)
    flat = decode(raw, dtype)
    if 0 in shape:
        return np.zeros(shape, flat.dtype)
    steps = tuple(stride * flat.itemsize for stride in strides)
    return np.lib.stride_tricks.as_strided(flat[offset:], shape, steps, writeable=False).copy()
