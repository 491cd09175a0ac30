"""A run: one finite network with a seed, and every question that can be asked of it."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Unpack

from giantsteps.answers import (
    DegreesOfFreedom,
    Gradient,
    LearnedFunction,
    Movement,
    Risk,
    Spectrum,
    Trajectory,
)
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem
from giantsteps.simulation import (
    _cost,
    _diagnostics,
    _learned,
    _movement,
    _risk,
    _spectrum,
    _trajectory,
)
from giantsteps.simulation._answers import SimulatedSpectrum, lazily
from giantsteps.simulation._cost import Cost
from giantsteps.simulation._engine._arrays import Array
from giantsteps.simulation._matrices import Matrices
from giantsteps.simulation._network._streams import as_seed
from giantsteps.simulation._networks import Networks
from giantsteps.simulation._options import RunOptions, refuse_unknown
from giantsteps.simulation._readout._ridge import Fit
from giantsteps.simulation._risk import Kind
from giantsteps.types import FloatArray


class Run(Networks):
    """One network drawn with a seed, trained by full-batch steps (theory §0).

    Nothing is computed before it is needed; the weights after the steps are kept, and samples are
    drawn again when needed. Everything follows from the seed: runs with the same seed share their
    initial weights, teacher and data across rates, penalties, noise and devices. Random numbers are
    drawn on the device, and are the same on every device and in every precision.

    Parameters
    ----------
    problem : Problem
        The setting.
    d : int
        Dimension of the inputs; all sizes are ``problem.at(d)``. That of ``data`` if they are
        given.
    seed : int
        Of all random numbers.
    device : str, optional
        ``"cpu"``: NumPy, the default. ``"torch"``: PyTorch on the CPU. ``"cuda"``, ``"cuda:0"``:
        PyTorch on a GPU. Or a namespace that follows the array API, has its linear
        algebra, and has arrays on the host that can be written to: tested with array-api-strict.
    dtype : {"float64", "float32"}
        Of weights, inputs and features. Gram matrices are sums in float64 always, and systems and
        eigenproblems are solved in float64. ``"float32"`` moves the risk by 1e-6 of it or less
        for a smooth activation, by 1e-5 for one with kinks (a few of the σ' of a step change
        side), and more next to n = N without a penalty: 1e-4 and some percent at λ = 1e-8
        (``benchmarks/README.md``).
    test_samples : int or "exact", optional
        Fresh points for the test error, 10,000 by default. ``"exact"``: no points, but the
        expectation over all inputs, by Hermite expansion with a proven bound on the remainder.
    memory : str or int, optional
        Most memory to use, such as ``"2GB"``; samples are processed in chunks. None: all there is.
    inputs : {"gaussian", "rademacher"} or callable
        Law of z, where the inputs of all samples are x = Σ^{1/2}z and Σ is that of
        ``problem.inputs``: N(0, I), independent signs, or, for checks of universality, a callable
        (generator, rows, d) that returns this number of rows, which should be independent, with
        mean 0 and covariance I. Drawn on the host unless Gaussian.
    data : Data, optional
        Your own samples; ``teacher`` and ``noise_variance`` of the problem are then not used,
        overlaps with the teacher are left out, and only weights and second layer are drawn.

    Attributes
    ----------
    problem, d, seed
        As given.
    sizes : Sizes
        The integers d, N, n₀, n.

    Notes
    -----
    The same problem, d, seed, dtype, test_samples, number of threads and machine give the same
    bits; other machines, devices and chunks agree up to rounding. An unknown option is refused with
    the list of those that exist.

    A run uses as many threads as the linear algebra library does (``OMP_NUM_THREADS``); in a worker
    of a process pool the default is one.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import simulation
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> run = simulation.run(problem, d=100, seed=0)
    >>> isinstance(run, Run), run.sizes.neurons, run.arrays["W1"].shape
    (True, 150, (100, 150))
    >>> untrained = run.after(0)  # the same network before its step
    >>> bool(run.risk().test < untrained.risk().test)
    True
    >>> run.risk(penalties=[0.01, 0.1, 1.0]).test.shape  # one pass over the samples
    (3,)
    """

    @refuse_unknown
    def __init__(
        self,
        problem: Problem,
        d: int | None = None,
        seed: int = 0,
        **options: Unpack[RunOptions],
    ) -> None:
        super().__init__(problem, d, as_seed(seed), **options)
        self.seed = as_seed(seed)

    def __repr__(self) -> str:
        sizes = self.sizes
        return (
            f"Run(d={sizes.d}, neurons={sizes.neurons}, step_samples={sizes.step_samples}, "
            f"samples={sizes.samples}, seed={self.seed})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled run is what states it: all else follows from the seed."""
        return partial(Run, **self.options, data=self.data), (self.problem, self.d, self.seed)

    def __copy__(self) -> Run:
        """Another run with what this one has computed."""
        other = object.__new__(Run)
        other.__dict__.update(self.__dict__)
        return other

    def _repr_html_(self) -> str:
        """The problem and the integers of the network, for notebooks."""
        numbers = {
            "d": self.sizes.d,
            "neurons, N": self.sizes.neurons,
            "step samples, n₀": ", ".join(map(str, self.sizes.step_samples)) or "none",
            "samples, n": self.sizes.samples or "none",
            "seed": self.seed,
        }
        rows = "".join(f"<tr><th>{key}</th><td>{value}</td></tr>" for key, value in numbers.items())
        return f"{self.problem._repr_html_()}<table><caption>Run</caption>{rows}</table>"

    # The network and its readouts -------------------------------------------------------------

    def readouts(
        self, stages: Sequence[Array], cells: Mapping[int, Sequence[float]], fixed: int
    ) -> list[dict[tuple[int, float], Fit]]:
        if len(stages) == 1 and stages[0] is self.trained.weights:
            return [self.fit(cells, fixed)]
        return super().readouts(stages, cells, fixed)

    def after(self, step: int) -> Run:
        """The run after the first ``step`` steps, from the same random numbers; 0: untrained."""
        steps = self.problem.steps
        if not isinstance(step, numbers.Integral) or not 0 <= step <= len(steps):
            raise InvalidProblem("step", step, f"an integer from 0 to {len(steps)}")
        return self if step == len(steps) else self.shortened(int(step))

    @cached_property
    def arrays(self) -> Mapping[str, Any]:
        """The matrices by name, each drawn or computed when it is read.

        ``"W0"``, ``"W1"``, … (weights after 0, 1, … steps), ``"a"``, ``"beta"``, ``"X0"``,
        ``"y0"``, … (batch of each step, from 0), ``"b"`` (direction of the first step), ``"X"``,
        ``"y"``, ``"Phi"`` (of the readout), ``"X_test"``, ``"f_test"``.
        """
        return Matrices(self)

    # Cost -------------------------------------------------------------------------------------

    def cost(
        self, penalties: Sequence[float] | None = None, samples: Sequence[float] | None = None
    ) -> Cost:
        """Estimate what `risk` with the same arguments takes: peak memory, operations, time.

        Nothing of the run is drawn; the time is that of small trials, scaled.

        Raises
        ------
        InvalidProblem
            If it does not fit into the memory granted.
        """
        return _cost.cost(self, _risk.cells_of(self._asked(penalties, samples), self.d))

    def _asked(
        self, penalties: Sequence[float] | None, samples: Sequence[float] | None
    ) -> Problem | Grid:
        """The problem, or the grid over its readout that is meant."""
        self.problem.require_readout()
        axes = {"readout.samples": samples, "readout.penalty": penalties}
        varied = {path: values for path, values in axes.items() if values is not None}
        return Grid(self.problem, varied) if varied else self.problem

    # Questions --------------------------------------------------------------------------------

    def risk(
        self,
        penalties: Sequence[float] | None = None,
        samples: Sequence[float] | None = None,
        *,
        kind: Kind = "conjugate",
        degrees: int = 4,
        initial: bool = False,
    ) -> Risk:
        r"""Test and train error of ridge regression on the features after the steps.

        .. math:: \hat a = \arg\min_a n^{-1}‖\tilde y − Φa‖^2 + (λ/N)‖a‖^2,
                  \qquad R = E(\hat f − f^*)^2

        Parameters
        ----------
        penalties, samples : sequence of float, optional
            Values of ``readout.penalty`` and ``readout.samples`` (n/d): the answer is then over
            a `Grid` of them. All share one pass over the samples, which are nested.
        kind, degrees, initial
            As of :func:`giantsteps.simulation.risk`.
        """
        asked = self._asked(penalties, samples)
        light = self.shortened(len(self.problem.steps))  # an answer keeps no matrices alive
        return _risk.answer(
            asked, self.d, lambda problem: self, kind, degrees, initial, lambda problem: light
        )

    def weights(self, top: int = 4, *, bulk: bool = True) -> Spectrum:
        """Singular values of W after the steps: see :func:`giantsteps.simulation.weights`."""
        return self.spectrum("weights", top, bulk)

    def kernel(self, top: int = 4, *, kind: Kind = "conjugate", bulk: bool = True) -> Spectrum:
        """Eigenvalues of the kernel, n × n: see :func:`giantsteps.simulation.kernel`."""
        return self.spectrum("kernel" if _risk.as_kind(kind) == "conjugate" else kind, top, bulk)

    def features(self, top: int = 4, *, bulk: bool = True) -> Spectrum:
        """Singular values of the features: see :func:`giantsteps.simulation.features`."""
        return self.spectrum("features", top, bulk)

    def spectrum(self, matrix: str, top: int, bulk: bool) -> Spectrum:
        """What `weights`, `kernel` and `features` share; ``matrix`` as in `Spectrum`."""
        (fields,) = _spectrum.fields(self, matrix, top)
        parts = {"initial": lambda: _spectrum.complete(self.after(0), matrix, top, bulk)}
        if bulk:
            return lazily(
                SimulatedSpectrum, fields, bulk=partial(_spectrum.bulk, self, matrix), **parts
            )
        return lazily(SimulatedSpectrum, fields | {"bulk": None}, **parts)

    def gradient(self) -> Gradient:
        """The first gradient, √N G = μ₁ b aᵀ + B: the norms of both parts (theory §2)."""
        (found,) = _spectrum.first_gradient(self)
        return found

    def learned_function(
        self, *, along: str = "spike", x: Sequence[float] | None = None, draws: int = 1024
    ) -> LearnedFunction:
        """The mean and spread of f̂ at given ⟨u, x⟩, over ``draws`` of the rest of x (theory §5c).

        Parameters
        ----------
        along : {"spike", "teacher", "x0", "x1", ...}
            u: what the steps added to the weights (b/‖b‖ for one step, else the leading
            direction), turned towards the teacher, or β*; of a teacher of several directions one
            by its name.
        x : sequence of float, optional
            Coordinates; by default 61 points from −3 to 3.
        draws : int
            Of the other coordinates, the same for every point.
        """
        (found,) = _learned.learned_function(self, along, x, draws)
        return found

    def movement(self) -> Movement:
        """How far each step moves weights, pre-activations, features and output (theory §0).

        Inputs are ``test_samples`` fresh points.
        """
        (found,) = _movement.movement(self)
        return found

    def trajectory(self, top: int = 1) -> Trajectory:
        """Errors of the readout, and the ``top`` singular values of W, after 0, 1, …, t steps.

        Readout and test points are drawn once for all of them.
        """
        (found,) = _trajectory.trajectory(self, top)
        return found

    # Diagnostics ------------------------------------------------------------------------------

    def degrees_of_freedom(self) -> DegreesOfFreedom:
        """Effective penalty κ and degrees of freedom df₁, df₂ of the readout (theory §4)."""
        (found,) = _diagnostics.degrees_of_freedom(self)
        return found

    def kernel_alignment(self, *, kind: Kind = "conjugate") -> float:
        """Kernel–target alignment ⟨K, ỹỹᵀ⟩/(‖K‖_F ‖ỹ‖²) on the readout's samples."""
        return _diagnostics.kernel_alignment(self, kind)

    def neuron_alignments(self) -> FloatArray:
        """⟨w_j, β*⟩/‖w_j‖ of every neuron after the steps, for a histogram.

        Shape (N,), or (N, rank) for a teacher of several directions.
        """
        return _diagnostics.neuron_alignments(self)
