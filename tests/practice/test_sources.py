"""Where weights come from: every format gives the same, hostile files are refused unexecuted."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps.practice._sources import open_data, open_weights

torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")


def network() -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 10, bias=False)
        )


def test_every_source_gives_the_same_weights(tmp_path: Path) -> None:
    module = network()
    state = module.state_dict()
    arrays = {name: value.numpy() for name, value in state.items()}
    torch.save(state, tmp_path / "a.pt")
    torch.save({"state_dict": state, "epoch": 3, "lr": 0.1}, tmp_path / "a.ckpt")
    torch.save({k: torch.nn.Parameter(v) for k, v in state.items()}, tmp_path / "a.bin")
    safetensors_torch.save_file(state, tmp_path / "a.safetensors")
    np.savez(tmp_path / "a.npz", **arrays)
    np.savez_compressed(tmp_path / "b.npz", **arrays)
    folder = tmp_path / "shards"
    folder.mkdir()
    for i, (name, value) in enumerate(state.items()):
        safetensors_torch.save_file({name: value}, folder / f"part-{i}.safetensors")
    files = ["a.pt", "a.ckpt", "a.bin", "a.safetensors", "a.npz", "b.npz", "shards"]
    for source in [module, state, arrays, *(tmp_path / name for name in files)]:
        weights = open_weights(source)
        assert {tensor.name for tensor in weights} == set(state)
        for name, value in arrays.items():
            tensor = weights.get(name)
            assert tensor is not None
            assert tensor.dtype == "float32"
            assert np.array_equal(tensor.read(), value)


def test_half_precision_and_strides(tmp_path: Path) -> None:
    values = torch.arange(12.0).reshape(3, 4) / 8
    tensors = {"b": values.bfloat16(), "h": values.half(), "t": values.T, "d": values.double()}
    bits = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"):
        tensors[name] = bits.clone().view(getattr(torch, f"float8_{name}"))
    torch.save(tensors, tmp_path / "a.pth")
    safetensors_torch.save_file(
        {name: value.contiguous() for name, value in tensors.items()}, tmp_path / "a.safetensors"
    )
    for file in ("a.pth", "a.safetensors"):
        weights = {tensor.name: tensor for tensor in open_weights(tmp_path / file)}
        for name, value in tensors.items():
            assert np.array_equal(weights[name].matrix(), value.double().numpy(), equal_nan=True)
        assert weights["b"].dtype == "bfloat16"


@pytest.mark.parametrize("ending", ["_scale", "_scale_inv"])
@pytest.mark.parametrize("blocks", [(), (200, 1), (2, 3)])
def test_weights_in_8_bits_and_their_factors(
    tmp_path: Path, ending: str, blocks: tuple[int, ...]
) -> None:
    """A weight, its factors per tensor, row or block of 128, and scales that are no weights."""
    rng = np.random.default_rng(0)
    factors = rng.uniform(0.5, 2.0, blocks).astype(np.float32)
    full: Any = np.ones((200, 300))
    if blocks == (2, 3):
        full = np.repeat(np.repeat(factors, 128, axis=0), 128, axis=1)[:200, :300]
    elif blocks:
        full = full * factors
    weight = torch.tensor(rng.standard_normal((200, 300))).to(torch.float8_e4m3fn)
    state = {
        "fc.weight": weight,
        f"fc.weight{ending}": torch.tensor(factors if blocks else np.float32(1.0)),
        "odd": torch.ones(3, 4).to(torch.float8_e8m0fnu),
    }
    safetensors_torch.save_file(state, tmp_path / "a.safetensors")
    for source in (tmp_path / "a.safetensors", state):
        read = open_weights(source).get("fc.weight")
        assert read is not None
        assert np.array_equal(read.matrix(), weight.double().numpy() * full)
        found = gs.inspect(source)
        assert [layer.name for layer in found.layers] == ["fc.weight"]
        assert set(found.to_columns("skipped")["tensor"]) == {f"fc.weight{ending}", "odd"}
        assert "e8m0" in found.skipped["odd"]
        assert "odd" in repr(found)


def test_factors_that_do_not_fit_are_refused() -> None:
    state = {
        "w": torch.ones(6, 9).to(torch.float8_e5m2),
        "w_scale": torch.ones(4, 2),
    }
    with pytest.raises(gs.InvalidProblem, match="one factor per block of w"):
        gs.inspect(state)


def test_the_optimizer_of_a_checkpoint_is_left_out(tmp_path: Path) -> None:
    module = network()
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.randn(4, 20)).square().sum().backward()
    optimizer.step()
    checkpoint = {"model": module.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(checkpoint, tmp_path / "a.pt")
    assert len(list(open_weights(tmp_path / "a.pt"))) == 3


def test_convolutions_are_unfolded() -> None:
    down, up = torch.nn.Conv2d(3, 16, 5), torch.nn.ConvTranspose2d(16, 9, 3)
    (weight, _) = open_weights(down)
    assert weight.matrix().shape == (16, 75)
    (weight, _) = open_weights(up)
    assert weight.matrix().shape == (9, 144)
    expected = up.weight.detach().numpy()[:, 4].reshape(-1)
    assert np.array_equal(weight.matrix()[4], expected)


# Hostile files --------------------------------------------------------------------------------


class Attack:
    """Makes a folder when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


def zip_checkpoint(path: Path, program: bytes, **files: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", program)
        for name, content in files.items():
            archive.writestr(f"archive/{name.replace('__', '/')}", content)


def tensor_program(size: int, shape: str, strides: str, offset: int = 0) -> bytes:
    """A pickle that rebuilds one tensor, in the text protocol where it may be written by hand."""
    buffer = io.BytesIO()
    buffer.write(b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n((")
    buffer.write(b"X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000")
    buffer.write(b"X\x03\x00\x00\x00cpuJ" + struct.pack("<i", size) + b"tQJ")
    buffer.write(struct.pack("<i", offset))
    for numbers in (shape, strides):
        buffer.write(b"(" + b"".join(b"J" + struct.pack("<i", int(n)) for n in numbers.split()))
        buffer.write(b"t")
    buffer.write(b"\x89Nt")
    buffer.write(b"Rs.")
    return buffer.getvalue()


def test_the_program_written_by_hand_is_right(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype="<f4")
    zip_checkpoint(tmp_path / "a.pt", tensor_program(6, "2 3", "3 1"), data__0=numbers.tobytes())
    (tensor,) = open_weights(tmp_path / "a.pt")
    assert np.array_equal(tensor.read(), numbers.reshape(2, 3))


@pytest.mark.parametrize("ending", [".pt", ".pth", ".bin", ".ckpt"])
@pytest.mark.parametrize("how", ["torch", "legacy", "pickle", "protocol 4"])
def test_pickles_are_not_executed(tmp_path: Path, ending: str, how: str) -> None:
    trace, path = tmp_path / "executed", tmp_path / f"model{ending}"
    content = {"weight": torch.ones(20, 20), "attack": Attack(trace)}
    if how == "torch":
        torch.save(content, path)
    elif how == "legacy":
        torch.save(content, path, _use_new_zipfile_serialization=False)
    elif how == "pickle":
        path.write_bytes(pickle.dumps({"attack": Attack(trace)}))
    else:
        zip_checkpoint(path, pickle.dumps({"attack": Attack(trace)}, protocol=4))
    with pytest.raises(gs.InvalidProblem, match="nothing in it was executed"):
        gs.inspect(path)
    assert not trace.exists()


def test_a_pickled_module_is_refused_with_the_way_out(tmp_path: Path) -> None:
    torch.save(network(), tmp_path / "model.pt")
    with pytest.raises(gs.InvalidProblem, match=r"torch.save\(model.state_dict\(\), path\)"):
        gs.inspect(tmp_path / "model.pt")


@pytest.mark.parametrize(
    ("program", "data"),
    [
        (tensor_program(6, "20 30", "30 1"), b"\0" * 24),  # beyond its storage
        (tensor_program(600, "20 30", "30 1"), b"\0" * 24),  # beyond its file
        (tensor_program(6, "2 3", "3 1", offset=4), b"\0" * 24),
        (tensor_program(6, "2000 3000", "0 0"), b"\0" * 24),  # one number as six million
        (tensor_program(6, "2 3", "-3 1", offset=5), b"\0" * 24),
        (tensor_program(6, "2 3", "3 1")[:-6], b"\0" * 24),
        (b"", b""),
        (b"\x80\x02.", b""),
        (b"\x80\x02]q\x00h\x05.", b""),
        (b"\x80\x02}q\x00(X\x01\x00\x00\x00ah\x00u.", b""),  # a dict inside itself
        (b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.", b""),
        (b"\x80\x02c__builtin__\neval\n.", b""),
        (b"\x80\x02(i__main__\nAttack\n.", b""),
        (b"\x80\x02ccollections\nOrderedDict\n)\x81.", b""),
    ],
)
def test_broken_checkpoints_are_refused(tmp_path: Path, program: bytes, data: bytes) -> None:
    zip_checkpoint(tmp_path / "a.pt", program, data__0=data)
    with pytest.raises(gs.InvalidProblem):
        gs.inspect(tmp_path / "a.pt")


def test_compressed_checkpoints_are_refused(tmp_path: Path) -> None:
    """A few bytes could unfold to any size."""
    with zipfile.ZipFile(tmp_path / "a.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", tensor_program(10**6, "1000 1000", "1000 1"))
        archive.writestr("archive/data/0", b"\0" * 4 * 10**6)
    with pytest.raises(gs.InvalidProblem, match="compressed"):
        gs.inspect(tmp_path / "a.pt")


def _header(entries: Any, length: int | None = None, data: bytes = b"\0" * 64) -> bytes:
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


TENSOR = {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x10\0\0",
        _header({"w": TENSOR}, length=2**63),
        _header({"w": TENSOR}, length=10**9),
        _header({"w": TENSOR}, data=b"\0" * 10),  # cut off
        _header({"w": TENSOR | {"data_offsets": [0, 10**15]}}),
        _header({"w": TENSOR | {"shape": [2**40, 2**40]}}),
        _header({"w": TENSOR | {"shape": [-4, 4]}}),
        _header({"w": TENSOR | {"dtype": "EVIL"}}),
        _header({"w": TENSOR, "v": TENSOR}),  # two tensors in one place
        _header(b"[" * 200000),
        _header(b"not json"),
        pickle.dumps({"w": [1.0]}),
    ],
)
def test_broken_safetensors_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(gs.InvalidProblem, match=r"valid \.safetensors"):
        gs.inspect(tmp_path / "a.safetensors")


def test_objects_in_numpy_files_are_refused(tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    np.save(tmp_path / "a.npy", np.array([Attack(trace)], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", w=np.array([Attack(trace)], dtype=object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(gs.InvalidProblem, match="pickled"):
            gs.inspect(tmp_path / name)
    assert not trace.exists()


def test_absurd_numpy_headers_are_refused(tmp_path: Path) -> None:
    def npy(shape: str) -> bytes:
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()

    for shape in ("(100000000, 100000000)", "(-3, 4)", "(4, 'a')", "__import__('os')", "(3, 3)"):
        (tmp_path / "a.npy").write_bytes(npy(shape))
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("w.npy", npy(shape))
        for name in ("a.npy", "a.npz"):
            with pytest.raises(gs.InvalidProblem):
                gs.inspect(tmp_path / name)
    (tmp_path / "b.npz").write_bytes(b"PK\x03\x04 not a zip file")
    with pytest.raises(gs.InvalidProblem, match=r"valid \.npz"):
        gs.inspect(tmp_path / "b.npz")


def test_archives_that_fill_the_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("giantsteps.practice._sources._BOMB_SIZE", 10**6)
    np.savez_compressed(tmp_path / "bomb.npz", w=np.zeros((500, 1000)))
    with pytest.raises(gs.InvalidProblem, match="unpacks"):
        gs.inspect(tmp_path / "bomb.npz")
    weights = np.random.default_rng(0).standard_normal((400, 500)).astype(np.float32)
    np.savez_compressed(tmp_path / "weights.npz", w=weights)
    assert gs.inspect(tmp_path / "weights.npz").layers[0].rows == 400


@pytest.mark.parametrize("source", [3, None, "no-such-file.npz", [], [1, 2], {"a": 1}, {}])
def test_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(gs.InvalidProblem):
        gs.inspect(source)


def test_unknown_endings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(1))
    with pytest.raises(gs.InvalidProblem, match="safetensors"):
        gs.inspect(tmp_path / "model.pkl")


def test_data_of_all_kinds(tmp_path: Path) -> None:
    x, y = np.ones((5, 3)), np.arange(5)
    np.savez(tmp_path / "a.npz", X=x, y=y)
    np.savez(tmp_path / "b.npz", inputs=x, labels=y)
    for data in ((x, y), {"X": x, "y": y}, tmp_path / "a.npz", tmp_path / "b.npz",
                 (torch.tensor(x), torch.tensor(y)), gs.Data(x, y.astype(float))):  # fmt: skip
        found = open_data(data)
        assert found[0].shape == (5, 3)
        assert found[1].tolist() == [0, 1, 2, 3, 4]
    for wrong in ((x, y[:4]), (x,), {"X": x}, (np.full((5, 3), np.nan), y), (x, ["a"] * 5), 7):
        with pytest.raises(gs.InvalidProblem, match="data"):
            open_data(wrong)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_rounding_does_not_take_the_small_singular_values_of_a_random_matrix(kind: Any) -> None:
    """Square matrices have singular values down to zero, below the rounding of few bits."""
    rng = np.random.default_rng(0)
    weights = [torch.tensor(rng.standard_normal((100, 100))).to(kind) for _ in range(25)]
    layers = gs.inspect(weights).layers
    assert sum(layer.verdict == "random" for layer in layers) >= 22
    assert all(layer.rank == 100 and not layer.note for layer in layers)
    low = rng.standard_normal((100, 8)) @ rng.standard_normal((8, 100))
    (layer,) = gs.inspect([torch.tensor(low).to(kind)]).layers
    assert (layer.verdict, layer.rank) == ("low rank", 8)


def test_data_of_pytorch() -> None:
    """A data loader, a data set and a part of one are read as the pair would be."""
    data = pytest.importorskip("torch.utils.data")
    torch = pytest.importorskip("torch")
    x, y = torch.arange(24.0).reshape(8, 3), torch.arange(8)
    rows = data.TensorDataset(x, y)
    for given in (rows, data.Subset(rows, range(8)), data.DataLoader(rows, batch_size=3)):
        found = open_data(given)
        assert np.array_equal(found[0], x.numpy())
        assert np.array_equal(found[1], y.numpy())
    with pytest.raises(gs.InvalidProblem, match="batches of"):
        open_data(data.DataLoader(data.TensorDataset(x), batch_size=3))
    with pytest.raises(gs.InvalidProblem, match="DataLoader"):
        open_data(object())
