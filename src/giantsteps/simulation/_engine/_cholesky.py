"""Cholesky factorisation that lets other threads of Python run.

SciPy's own wrapper of LAPACK holds Python's global lock. The C function behind it, which SciPy
exports for Cython, is called here through `ctypes`, which releases the lock.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack


def _c_function(capsule: object) -> Any:
    """The C function in a capsule, which takes five pointers and returns nothing."""
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)
    return kind(pointer(capsule, name(capsule)))


_dpotrf = _c_function(cython_lapack.__pyx_capi__["dpotrf"])


def factorise(symmetric: np.ndarray) -> bool:
    """Overwrite the lower triangle of S with L, S = LLᵀ; False if S is not positive definite.

    * ``symmetric``: float64, in Fortran's order; above the diagonal nothing is read or written.
    """
    size, failed = ctypes.c_int(symmetric.shape[0]), ctypes.c_int(0)
    if symmetric.dtype != np.float64 or not symmetric.flags.f_contiguous:
        raise ValueError("the matrix must be float64 and in Fortran's order")
    _dpotrf(
        b"L", ctypes.byref(size), symmetric.ctypes.data, ctypes.byref(size), ctypes.byref(failed)
    )
    if failed.value < 0:
        raise ValueError(f"LAPACK refuses argument {-failed.value} of dpotrf")
    return failed.value == 0
