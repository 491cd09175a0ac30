"""The CUDA kernel without a GPU: its source as C++, thread after thread, against the host."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from giantsteps.simulation._engine import _cuda
from giantsteps.simulation._engine._normals import fill_normal, tables

SHIM = r"""
#include <cmath>
#include <cstring>
#define __device__
#define __global__
struct Index { unsigned int x, y; };
static Index blockIdx, blockDim, threadIdx;
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
static inline double __longlong_as_double(long long bits) {
    double value; std::memcpy(&value, &bits, 8); return value;
}
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
"""
DRIVER = r"""
extern "C" void launch(REAL *out, const word *keys, const double *table, double role, double step,
                       double start, double count, int blocks, int threads, int networks) {
    blockDim.x = threads;
    for (int y = 0; y < networks; y++)
        for (int b = 0; b < blocks; b++)
            for (int t = 0; t < threads; t++) {
                blockIdx.x = b; blockIdx.y = y; threadIdx.x = t;
                fill_normal(out, keys, table, role, step, start, count);
            }
}
"""


@pytest.fixture(scope="module", params=["float64", "float32"])
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder: Path = tmp_path_factory.mktemp("kernel")
    real = "double" if request.param == "float64" else "float"
    code = SHIM + _cuda.source(request.param) + DRIVER.replace("REAL", real)
    (folder / "kernel.cpp").write_text(code)
    command = [compiler, "-O1", "-ffp-contract=off", "-shared", "-fPIC", "kernel.cpp", "-o", "k.so"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    launch = ctypes.CDLL(str(folder / "k.so")).launch
    launch.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_double] * 4, *[ctypes.c_int] * 3]
    return request.param, launch


@pytest.mark.parametrize(("start", "count"), [(0, 200_000), (3, 1), (2, 70_001), (2**33 + 1, 5000)])
def test_the_kernel_draws_what_the_host_draws(kernel, start: int, count: int) -> None:  # type: ignore[no-untyped-def]
    dtype, launch = kernel
    keys = np.array([[1, 2], [2**64 - 1, 2**63]], dtype=np.uint64)
    table = np.concatenate(tables())
    out = np.full((2, count), np.nan, dtype=dtype)
    pointers = [array.ctypes.data for array in (out, keys, table)]
    launch(*pointers, 6, 2, start, count, _cuda.blocks(start, count), _cuda.THREADS, 2)
    for row, key in zip(out, keys):
        expected = np.empty(count)
        fill_normal(expected, key, (6, 2, 0), start)
        # log and exp, which one variate in a hundred needs, may differ in the last bit
        np.testing.assert_allclose(row, expected, rtol=4 * np.finfo(dtype).eps, atol=0)
