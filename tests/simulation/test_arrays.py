from __future__ import annotations

import math
import sys
from types import ModuleType

import numpy as np
import pytest

import giantsteps as gs
from giantsteps.errors import InvalidProblem, NotConverged
from giantsteps.functions import as_function
from giantsteps.simulation._engine._arrays import Arrays
from giantsteps.simulation._engine._cholesky import factorise
from giantsteps.simulation._engine._devices import resolve
from giantsteps.simulation._engine._numpy_arrays import NumpyArrays
from giantsteps.simulation._engine._torch_arrays import TorchArrays


def draw(arrays: Arrays, *shape: int) -> tuple[object, np.ndarray]:
    host = np.random.default_rng(sum(shape)).standard_normal(shape).astype(arrays.precision)
    return arrays.asarray(host), host.astype(float)


def close(arrays: Arrays, found: object, expected: np.ndarray) -> None:
    host = arrays.to_host(found)
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(host, expected, rtol=0, atol=30 * arrays.epsilon * scale)


@pytest.mark.parametrize("shape", [(40, 7), (5, 30), (1100, 3)])
def test_gram_and_product(any_arrays: Arrays, shape: tuple[int, int]) -> None:
    a, host = draw(any_arrays, *shape)
    gram = any_arrays.zeros(shape[1], shape[1])
    for _ in range(2):
        gram = any_arrays.add_gram(gram, a)
    close(any_arrays, any_arrays.mirror(gram), 2 * host.T @ host)
    assert any_arrays.to_host(gram).dtype == np.float64
    b, other = draw(any_arrays, shape[0], 4)
    out = any_arrays.add_product(any_arrays.zeros(shape[1], 4), a, b)
    close(any_arrays, any_arrays.add_product(out, a, b), 2 * host.T @ other)


def test_single_precision_is_summed_in_double(single_arrays: Arrays) -> None:
    arrays = single_arrays
    host = np.random.default_rng(0).uniform(99, 101, (5000, 3)).astype("float32").astype(float)
    a = arrays.asarray(host)
    gram = arrays.to_host(arrays.mirror(arrays.add_gram(arrays.zeros(3, 3), a)))
    np.testing.assert_allclose(gram, host.T @ host, rtol=1e-12)
    b = arrays.asarray(host[:, :2], wide=True)
    found = arrays.to_host(arrays.transposed_product(a, b))
    np.testing.assert_allclose(found, host.T @ host[:, :2], rtol=1e-12)


def test_gram_of_a_transpose(any_arrays: Arrays) -> None:
    a, host = draw(any_arrays, 6, 20)
    gram = any_arrays.add_gram(any_arrays.zeros(6, 6), any_arrays.xp.matrix_transpose(a))
    close(any_arrays, any_arrays.mirror(gram), host @ host.T)


def test_panels_of_the_gram_matrix() -> None:
    pytest.importorskip("torch")
    arrays = resolve("torch")
    a, host = draw(arrays, 50, 1300)  # three panels
    gram = arrays.add_gram(arrays.zeros(1300, 1300), a)
    close(arrays, arrays.mirror(gram), host.T @ host)


def test_only_the_lower_triangle_is_read(arrays: Arrays) -> None:
    _, host = draw(arrays, 40, 12)
    full = host.T @ host
    spoiled = np.tril(full) + np.triu(np.full((12, 12), 7.0), 1)
    rhs = np.arange(12.0)
    symmetric = arrays.asarray(spoiled)
    close(
        arrays,
        arrays.solve(symmetric, 0.5, arrays.asarray(rhs))[0],
        np.linalg.solve(full + 0.5 * np.eye(12), rhs),
    )
    values, vectors = (arrays.to_host(x) for x in arrays.eigh(symmetric))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(full), rtol=1e-12)
    np.testing.assert_allclose((vectors * values) @ vectors.T, full, atol=1e-12)
    np.testing.assert_allclose(arrays.to_host(arrays.eigvalsh(symmetric)), values, rtol=1e-12)
    np.testing.assert_array_equal(np.tril(arrays.to_host(symmetric)), np.tril(full))


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
def test_many_shifts(threads: int) -> None:
    arrays = NumpyArrays(np, None, "float64", threads)
    a, host = draw(arrays, 90, 60)
    symmetric, rhs = arrays.add_gram(arrays.zeros(60, 60), a), np.arange(60.0)
    kept = symmetric.copy()
    shifts = [0.1, -1e3, 2.0, 5.0, 0.3]
    found = arrays.solve_many(symmetric, shifts, rhs)
    for shift, (x, solved) in zip(shifts, found):
        assert solved == (shift > 0)
        if solved:
            np.testing.assert_array_equal(x, arrays.solve(symmetric, shift, rhs)[0])
            np.testing.assert_allclose(host.T @ (host @ x) + shift * x, rhs, atol=1e-9)
    np.testing.assert_array_equal(symmetric, kept)
    assert arrays.solve_many(symmetric, [], rhs) == []
    assert arrays.factors(5) == min(threads, 4)


def test_factorise() -> None:
    _, host = draw(resolve(), 90, 60)
    matrix = np.asfortranarray(np.tril(host.T @ host) + np.triu(np.full((60, 60), 7.0), 1))
    expected = np.linalg.cholesky(host.T @ host)
    assert factorise(matrix)
    np.testing.assert_allclose(np.tril(matrix), expected, rtol=0, atol=1e-12)
    assert np.all(matrix[np.triu_indices(60, 1)] == 7.0)
    assert not factorise(np.asfortranarray(-np.eye(3)))
    for wrong in (np.eye(3)[::-1], np.ones((2, 3)).T[:, ::-1], np.eye(3, dtype="float32")):
        with pytest.raises(ValueError, match="Fortran"):
            factorise(wrong)


def test_no_cholesky_of_an_indefinite_matrix(arrays: Arrays) -> None:
    matrix = arrays.asarray(np.diag([1.0, -2.0, 3.0]))
    assert not bool(arrays.solve(matrix, 1.0, arrays.asarray(np.ones(3)))[1])
    assert bool(arrays.solve(matrix, 2.5, arrays.asarray(np.ones(3)))[1])


def test_stacks_of_matrices(arrays: Arrays) -> None:
    """Everything that takes one more axis in front: each matrix as it is alone."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 50, 20)), rng.standard_normal((3, 50, 7))
    left, right = arrays.asarray(a), arrays.asarray(b)
    product = arrays.add_product(arrays.zeros(3, 20, 7), left, right)
    close(arrays, product, np.swapaxes(a, 1, 2) @ b)
    close(arrays, arrays.transposed_product(left, right), np.swapaxes(a, 1, 2) @ b)
    gram = arrays.add_gram(arrays.zeros(3, 20, 20), left)
    close(arrays, arrays.mirror(gram), np.swapaxes(a, 1, 2) @ a)
    rhs = rng.standard_normal((3, 20))
    # Of three matrices the second is not positive definite.
    shifted = arrays.to_host(gram) - 60.0 * np.eye(20) * np.array([0, 1, 0])[:, None, None]
    found, solved = arrays.solve(arrays.asarray(shifted), 0.3, arrays.asarray(rhs))
    assert arrays.to_host(solved).tolist() == [True, False, True]
    for number in (0, 2):
        expected = np.linalg.solve(shifted[number] + 0.3 * np.eye(20), rhs[number])
        np.testing.assert_allclose(arrays.to_host(found)[number], expected, rtol=1e-9)
    z = arrays.transform(lambda x: x**2, arrays.asarray(a.copy()))
    close(arrays, z, a**2)


def test_full_decompositions(arrays: Arrays) -> None:
    w = np.random.default_rng(0).standard_normal((60, 60))
    symmetric = np.tril(w + w.T) + np.triu(np.full((60, 60), 9.0), 1)  # the upper half is not read
    expected, vectors = np.linalg.eigh(w + w.T)
    given = arrays.asarray(symmetric)
    np.testing.assert_allclose(arrays.to_host(arrays.eigvalsh(given)), expected, atol=1e-13)
    values, found = (arrays.to_host(part) for part in arrays.eigh(given))
    np.testing.assert_allclose(values, expected, atol=1e-13)
    np.testing.assert_allclose(np.abs(np.sum(found * vectors, axis=0)), 1, rtol=1e-9)
    zero = arrays.zeros(5, 5)
    np.testing.assert_array_equal(arrays.to_host(arrays.eigvalsh(zero)), np.zeros(5))
    np.testing.assert_array_equal(arrays.to_host(arrays.eigh(zero)[0]), np.zeros(5))


@pytest.mark.parametrize("error", [1e-9, np.nan])
def test_a_wrong_decomposition_is_an_error(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, w = resolve(), np.random.default_rng(0).standard_normal((60, 60))
    values, vectors = np.linalg.eigh(w + w.T)
    off = values + error * np.eye(60)[7] * np.abs(values).max() * 60
    turned = vectors.copy()
    turned[:, 0] += error * 60 * vectors[:, 1]
    monkeypatch.setattr(NumpyArrays, "_eigvalsh", lambda self, symmetric: off)
    with pytest.raises(NotConverged, match="60 eigenvalues of a matrix"):
        arrays.eigvalsh(w + w.T)
    for wrong in ((off, vectors), (values, turned)):
        monkeypatch.setattr(NumpyArrays, "_eigh", lambda self, symmetric, wrong=wrong: wrong)
        with pytest.raises(NotConverged, match="eigenvectors of a matrix of size 60"):
            arrays.eigh(w + w.T)


@pytest.mark.parametrize("name", ["tanh", "relu", "max(x, x**2-1)", "erf"])
def test_transform(any_arrays: Arrays, name: str) -> None:
    z, host = draw(any_arrays, 700, 130)
    function = as_function(name)
    close(any_arrays, any_arrays.transform(function, z), function(host))


def test_transform_by_slabs_and_threads() -> None:
    host = np.random.default_rng(0).standard_normal((3000, 100))
    for threads in (1, 3):
        arrays = NumpyArrays(np, None, "float64", threads)
        np.testing.assert_array_equal(arrays.transform(np.tanh, host.copy()), np.tanh(host))


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "cudax", 3, "numpy "])
def test_refused_devices(device: object) -> None:
    with pytest.raises(InvalidProblem, match="device = "):
        resolve(device)


def test_namespaces_by_module() -> None:
    torch, strict = pytest.importorskip("torch"), pytest.importorskip("array_api_strict")
    assert isinstance(resolve(np), NumpyArrays)
    assert isinstance(resolve(torch), TorchArrays)
    assert type(resolve(strict)) is Arrays


def test_refused_namespaces() -> None:
    with pytest.raises(InvalidProblem, match="math has no astype, concat"):
        resolve(math)
    strict = pytest.importorskip("array_api_strict")
    fixed = ModuleType("fixed")  # as jax.numpy
    fixed.__dict__.update({name: getattr(strict, name) for name in strict.__all__})
    fixed.__dict__["zeros"] = lambda size: (0.0,) * size
    with pytest.raises(InvalidProblem, match="can be written to: those of fixed cannot"):
        resolve(fixed)


def test_jax_is_refused() -> None:
    jax = pytest.importorskip("jax.numpy")
    with pytest.raises(InvalidProblem, match=r"can be written to: those of jax\.numpy cannot"):
        resolve(jax)


@pytest.mark.parametrize("dtype", ["float16", "double", int, None])
def test_refused_precisions(dtype: object) -> None:
    with pytest.raises(InvalidProblem, match=r'dtype = .*"float64" or "float32"'):
        resolve("cpu", dtype)


def test_precisions_by_object() -> None:
    torch = pytest.importorskip("torch")
    assert resolve("cpu", np.float32).precision == "float32"
    assert resolve("torch", torch.float32).precision == "float32"
    assert isinstance(resolve(torch.device("cpu")), TorchArrays)


def test_a_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "array_api_compat.torch", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(gs.InvalidProblem, match=r"pip install .*giantsteps\[torch\]"):
        resolve("cuda")
