"""The solver against the equations of theory §5c written down literally, T × T and damped."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory import NeuronCovariance
from giantsteps.theory.solver import readout as readouts
from giantsteps.theory.solver.dyson import Directions, Dyson
from giantsteps.theory.solver.newton import Solved, solve_state
from giantsteps.theory.solver.prior import Prior
from giantsteps.theory.solver.readout import Readout, read_out
from giantsteps.theory.solver.state import Equations, State
from giantsteps.theory.solver.system import System

from .commuting import along_directions


def random_covariance(types: int, rank: int, rng: np.random.Generator) -> NeuronCovariance:
    """Two directions; spikes and teacher are not generic in them."""
    frame = np.linalg.qr(rng.standard_normal((rank + 1, rank + 1)))[0]
    part = frame @ np.diag(rng.uniform(0.2, 0.8, rank + 1)) @ frame.T
    variances = rng.uniform(0.4, 2.0, (types, 2))
    special = np.stack([part, np.eye(rank + 1) - part])
    return along_directions([0.4, 0.6], variances, special, variances)


def random_system(types: int, rank: int, inverse_neurons: float, seed: int = 0) -> System:
    """Arbitrary coefficients: the equations do not ask where they come from."""
    rng = np.random.default_rng(seed)
    nodes = 24
    k = rng.standard_normal((nodes, rank))
    weights = rng.dirichlet(np.full(nodes, 20.0))
    slopes = rng.uniform(0.5, 1.5, (types, rank))
    mean = np.tanh(slopes @ k.T) + 0.1 * rng.standard_normal((types, 1)) * (k**2).sum(axis=1)
    linear = 0.3 + 0.5 / (1 + (slopes @ k.T) ** 2)
    residual = 0.1 + 0.2 / (1 + (k**2).sum(axis=1)) * rng.uniform(0.5, 1.5, (types, 1))
    target = np.sin(k.sum(axis=1))
    target_linear = np.cos(k.sum(axis=1))
    covariance = random_covariance(types, rank, rng)
    arrays = {
        "coordinates": k,
        "weights": weights,
        "mean": np.stack([mean, 0.05 * rng.standard_normal((types, nodes))], axis=1),
        "linear": linear,
        "residual": residual,
        "norms": np.zeros((0, 1, nodes)),
        "second": np.ones(1),
        "target": np.stack([target, np.zeros(nodes)]),
        "target_linear": target_linear[None],
        "target_square": target**2 + target_linear**2 + 0.2,
        "shares": np.zeros((1, 0)),
        "left": np.eye(1),
        "loadings": np.zeros((0, rank + 1)),
        "spread": np.zeros(0),
        "probabilities": rng.dirichlet(np.full(types, 5.0)),
        "excess": np.zeros((types, 0, 0)),
        "pull": np.zeros((1, types, types)),
        "width": np.asarray(1.3),
        "ratio": np.asarray(1.1),
        "inverse_neurons": np.asarray(inverse_neurons),
        "penalty": np.asarray(0.07),
        "unit": np.asarray(1.0),
        "tolerance": np.asarray(1e-12),
    }
    return System(
        bulk=covariance.bulk(), **{name: np.array(value)[None] for name, value in arrays.items()}
    )


def solve(system: System) -> Solved:
    return solve_state(Equations(system), system.penalty)


def regress(system: System) -> Readout:
    return read_out(solve(system).state)


def plain(system: System) -> dict[str, Any]:
    """Theory §5c line by line, each equation damped until nothing moves."""
    w, k = system.weights[0], system.coordinates[0]
    mu0, xi = system.mean[0, :, 0], system.mean[0, :, 1]
    mu1, mu2 = system.linear[0], system.residual[0]
    h, h1, hh = system.target[0, 0], system.target_linear[0, 0], system.target_square[0]
    pi, bulk = system.probabilities[0], system.bulk
    variances = bulk.coefficients[0] @ bulk.diagonal[0]
    nu, s = bulk.shares[0, :2], variances[:, :2]
    roots = bulk.external[0, :, 2:]  # (F, J, F)
    special = np.einsum("ajc,bjc->jab", roots, roots)
    beta, gamma, lam = system.width[0], system.ratio[0], system.penalty[0]
    p = 1 / system.inverse_neurons[0]
    types, rank, directions = len(pi), k.shape[1], len(nu)

    v1, tau = np.eye(types), np.ones(types)
    for _ in range(4000):
        v = np.einsum("tk,sk,ts->k", mu1, mu1, v1) + mu2.T @ (pi * tau)
        omega = 1 / (1 + v)
        v1_hat = gamma * np.einsum("k,tk,sk->ts", w * omega, mu1, mu1)
        v2_hat = gamma * mu2 @ (w * omega)
        d = [np.diag(beta * pi * tau * s[:, i]) for i in range(directions)]
        y = [np.linalg.inv(v1_hat + np.linalg.inv(di)) for di in d]
        g = [v1_hat - v1_hat @ yi @ v1_hat for yi in y]
        tau_new = 1 / (
            lam + v2_hat + sum(nu[i] * s[:, i] * np.diag(g[i]) for i in range(directions))
        )
        v1_new = sum(nu[i] * y[i] for i in range(directions)) / beta
        moved = max(np.abs(v1_new - v1).max(), np.abs(tau_new - tau).max())
        v1, tau = (v1 + v1_new) / 2, (tau + tau_new) / 2
        if moved < 1e-14:
            break
    v2 = pi * tau

    # 𝒴 for every pair of special directions, T × T blocks.
    mixed = np.asarray(sum(np.kron(special[i], y[i]) for i in range(directions)))
    cut = rank * types
    lift = np.kron(np.eye(rank), v1_hat)
    opened = np.linalg.inv(np.eye(cut) - mixed[:cut, :cut] @ lift)
    y_bb, y_bt = opened @ mixed[:cut, :cut], opened @ mixed[:cut, cut:]
    y_tt = mixed[cut:, cut:] + mixed[:cut, cut:].T @ lift @ y_bt

    psi_hat = gamma * mu1 @ (w * omega * h1)
    phi = np.concatenate([mu0, np.concatenate([k[:, j] * mu1 for j in range(rank)])])
    phi_n = np.concatenate([xi, np.zeros((cut, len(w)))])
    matrix = gamma * ((phi * (w * omega)) @ phi.T + (phi_n * (w * omega)) @ phi_n.T)
    matrix[:types, :types] += np.diag(1 / (p * v2))
    matrix[types:, types:] += np.linalg.inv(y_bb)
    right = gamma * phi @ (w * omega * h)
    right[types:] += np.linalg.solve(y_bb, y_bt @ psi_hat)
    solution = np.linalg.solve(matrix, right)
    m, chi = solution[:types], solution[types:]
    c, c_n = solution @ phi, m @ xi
    m_hat = gamma * (mu0 @ (w * omega * (h - c)) - xi @ (w * omega * c_n))
    chi_hat = gamma * np.concatenate([mu1 @ (w * omega * k[:, j] * (h - c)) for j in range(rank)])
    np.testing.assert_allclose(m, p * v2 * m_hat, rtol=1e-8)
    psi = y_bt.T @ chi_hat + y_tt @ psi_hat
    chi_tilde = chi_hat + lift @ chi

    rows = np.concatenate([chi_tilde, psi_hat]).reshape(rank + 1, types)
    known = hh - 2 * h * c + c**2 + c_n**2 - 2 * h1 * (psi @ mu1)
    q, q2, delta = np.zeros((types, types)), np.zeros(types), np.zeros(types)
    error = np.zeros_like(known)
    for _ in range(4000):
        error_new = known + np.einsum("tk,sk,ts->k", mu1, mu1, q) + mu2.T @ q2
        moved = np.abs(error_new - error).max()
        error = error_new
        q_hat = gamma * np.einsum("k,tk,sk->ts", w * omega**2 * error, mu1, mu1)
        q2_hat = gamma * mu2 @ (w * omega**2 * error)
        m2 = q2_hat + p * m_hat**2
        m1 = [q_hat + beta / nu[i] * rows.T @ special[i] @ rows for i in range(directions)]
        felt = m2.copy()
        for i in range(directions):
            ell = np.eye(types) - v1_hat @ y[i]
            felt += nu[i] * s[:, i] * np.diag(ell @ m1[i] @ ell.T)
            felt -= nu[i] * s[:, i] * (g[i] ** 2 @ (beta * pi * s[:, i] * delta))
        delta = -(tau**2) * felt
        q = -np.asarray(sum(np.outer(row, row) for row in chi.reshape(rank, types)))
        for i in range(directions):
            inner = m1[i] - np.diag(beta * pi * s[:, i] * delta / np.diag(d[i]) ** 2)
            q = q + nu[i] / beta * y[i] @ inner @ y[i]
        q2 = -pi * delta
        if moved < 1e-14:
            break
    return {
        "error": w @ error,
        "train": w @ (omega**2 * error),
        "fit": c,
        "slope": (psi @ mu1)[None],
    }


@pytest.mark.parametrize("inverse_neurons", [1e-3, 1e-1])
@pytest.mark.parametrize(("types", "rank"), [(1, 1), (3, 1), (1, 2), (3, 2), (4, 3)])
def test_channels_and_newton_give_what_the_plain_equations_give(
    types: int, rank: int, inverse_neurons: float
) -> None:
    system = random_system(types, rank, inverse_neurons, seed=types + 10 * rank)
    solved = solve(system)
    found = read_out(solved.state)
    for name, value in plain(system).items():
        np.testing.assert_allclose(getattr(found, name)[0], value, rtol=1e-8, atol=1e-10)
    assert solved.converged.all()
    assert solved.residual[0] < 1e-10
    assert solved.iterations[0] < 15


def test_complex_penalty_has_the_derivative_of_the_real_one() -> None:
    system = random_system(3, 1, 1e-3)
    equations = Equations(system)
    step = 1e-6
    raised = solve_state(equations, system.penalty - 1j * step).state
    high, low = (solve_state(equations, system.penalty + sign * step).state for sign in (1, -1))
    slope = (high.tau - low.tau) / (2 * step)
    np.testing.assert_allclose(-raised.tau.imag / step, slope, rtol=1e-5)
    np.testing.assert_allclose(raised.tau.real, solve(system).state.tau, rtol=1e-9)
    assert np.all(raised.tau.imag > 0)


def test_without_penalty_the_limit_is_reached_on_both_sides_of_interpolation() -> None:
    for ratio in (0.6, 1.7):
        system = dataclasses.replace(random_system(2, 1, 1e-2), ratio=np.array([ratio]))
        interpolating = ratio < 1
        limit = regress(
            dataclasses.replace(
                system,
                penalty=np.array([1.0 if interpolating else 0.0]),
                unit=np.array([0.0 if interpolating else 1.0]),
            )
        )
        far, near = (
            regress(dataclasses.replace(system, penalty=np.array([penalty]))).error[0]
            for penalty in (2e-5, 1e-5)
        )
        assert limit.error[0] == pytest.approx(2 * near - far, rel=1e-6)
        assert limit.train[0] == pytest.approx(0.0, abs=1e-12) or not interpolating


# -- mutations --------------------------------------------------------------------------------


def _scaled(of: type, name: str) -> property:
    original = of.__dict__[name].func
    return property(lambda self: 1.05 * original(self))


def _part(of: type, name: str, index: int) -> property:
    original = of.__dict__[name].func

    def changed(self: Any) -> tuple[Any, ...]:
        parts = list(original(self))
        parts[index] = 1.05 * parts[index]
        return tuple(parts)

    return property(changed)


@pytest.mark.parametrize(
    ("of", "name", "mutant"),
    [
        (State, "variance", _scaled(State, "variance")),
        (State, "c_hat", _scaled(State, "c_hat")),
        (State, "v2_hat", _scaled(State, "v2_hat")),
        (State, "image", _part(State, "image", 0)),
        (State, "image", _part(State, "image", 1)),
        (Prior, "covariance", _scaled(Prior, "covariance")),
        (Prior, "with_teacher", _scaled(Prior, "with_teacher")),
        (Prior, "of_teacher", _scaled(Prior, "of_teacher")),
    ],
)
def test_five_percent_in_any_term_shows(
    monkeypatch: pytest.MonkeyPatch, of: type, name: str, mutant: property
) -> None:
    system = random_system(3, 1, 0.3)  # types cost much, so the spikes need χ
    wanted = plain(system)["error"]
    assert regress(system).error[0] == pytest.approx(wanted, rel=1e-8)
    monkeypatch.setattr(of, name, mutant)
    assert abs(regress(system).error[0] / wanted - 1) > 1e-5


@pytest.mark.parametrize("index", [0, 1])
def test_five_percent_in_the_sources_of_the_error_shows(
    monkeypatch: pytest.MonkeyPatch, index: int
) -> None:
    system = random_system(3, 1, 1e-3)
    wanted = plain(system)["error"]
    original = readouts._sources

    def mutant(*given: Any) -> tuple[Any, ...]:
        parts = list(original(*given))
        parts[index] = 1.05 * parts[index]
        return tuple(parts)

    monkeypatch.setattr(readouts, "_sources", mutant)
    assert abs(regress(system).error[0] / wanted - 1) > 1e-5


def test_unknowns_that_are_numbers_solve_the_same_equations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An odd activation and a constant second layer, with and without the short way."""
    base = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.05,
        width=1.5,
        steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.5)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer="constant"),
    )
    grid = gs.Grid(base, {"readout.penalty": [1e-4, 0.1, 10.0], "readout.samples": [0.3, 1.4, 6.0]})
    short = theory.risk(grid, d=500)
    assert short.solution is not None
    assert np.all(np.asarray(short.solution.iterations) > 0)
    monkeypatch.setattr("giantsteps.theory.solver.newton.are_numbers", lambda equations: False)
    whole = theory.risk(grid, d=500)
    np.testing.assert_allclose(short.test, whole.test, rtol=1e-10)
    np.testing.assert_allclose(short.train, whole.train, rtol=1e-10)


@pytest.mark.parametrize("samples", [0.3, 0.999, 1.5])
@pytest.mark.parametrize("penalty", [1e-2, 1e-4])
def test_unknowns_that_are_numbers_come_from_above(samples: float, penalty: float) -> None:
    """Large steps and small penalties: from a guess below it took up to 137 rounds."""
    problem = gs.Problem(
        activation="x + 0.1*x**3",
        teacher="sin",
        width=1.5,
        steps=[gs.Step(samples=2.0, rate=3.0, exponent=0.5)],
        readout=gs.Ridge(samples=samples, penalty=penalty),
        init=gs.Init(second_layer="constant"),
    )
    solution = theory.risk(problem, d=300).solution
    assert solution is not None
    assert solution.iterations <= 20


@pytest.mark.parametrize(
    ("activation", "count", "layer"),
    [
        ("relu", 1, "gaussian"),
        ("tanh", 2, "gaussian"),
        ("relu", 2, gs.Vocabulary([-1, 2], [0.6, 0.4])),
    ],
)
def test_responses_are_derivatives(
    monkeypatch: pytest.MonkeyPatch, activation: str, count: int, layer: Any
) -> None:
    """Along X and the types, and of all traces along what the initial output pulls."""
    asked: dict[str, tuple[Dyson, Directions]] = {}

    def watch(name: str) -> None:
        plain = getattr(Dyson, name)

        def kept(dyson: Dyson, directions: Directions) -> Any:
            asked[name] = dyson, directions
            return plain(dyson, directions)

        monkeypatch.setattr(Dyson, name, kept)

    watch("response")
    watch("curved")
    theory.risk(
        gs.Problem(
            activation=activation,
            teacher="sin",
            width=1.5,
            steps=[gs.Step(samples=3, rate=0.7, exponent=0.5)] * count,
            readout=gs.Ridge(samples=3, penalty=0.1),
            init=gs.Init(second_layer=layer),
        ),
        d=500,
    )
    random, size = np.random.default_rng(0), 1e-5
    for name, (dyson, directions) in asked.items():
        packed, outer = dyson.layout.inner, dyson.layout.outer
        change = random.normal(size=(1, directions.count))
        units = directions.rows(np.arange(dyson.layout.parameters))[0]
        parameters = np.concatenate([dyson.x[:, None], dyson.strengths], axis=1)
        way = packed.unpack((units @ change[0]).reshape(1, -1, len(packed)))
        most, here = (np.abs(part[0]).max(axis=(1, 2)) for part in (way, parameters))
        way *= size / max(most[0] / here[0], most[1:].max() / here[1:].max())

        def solved(
            side: float, dyson: Dyson = dyson, parameters: Any = parameters, way: Any = way
        ) -> Dyson:
            there = parameters + side * way
            found = dataclasses.replace(dyson, x=there[:, 0], strengths=there[:, 1:])
            for _ in range(60):
                step = found.layout.outer.unpack(found.settled())
                found = dataclasses.replace(found, active=found.active + step)
            return found

        up, down = solved(1.0), solved(-1.0)
        slope = [(packed.pack(end.traces) * packed.count).reshape(1, -1, 1) for end in (up, down)]
        known = (slope[0] - slope[1])[0, :, 0] / 2
        along = packed.pack(way).reshape(1, -1)
        vector = np.linalg.lstsq(units, along[0], rcond=None)[0][None]
        moved = outer.pack(up.active - down.active)[0] / 2
        if name == "curved":
            found = (dyson.curved(directions) @ vector[:, :, None])[0, :, 0]
            assert_allclose(found, known, rtol=1e-5, atol=1e-6 * np.abs(known).max())
            continue
        hessian, response = dyson.response(directions)
        found, known = (hessian @ vector[:, :, None])[0, :, 0], units.T @ known
        assert_allclose(found, known, rtol=1e-5, atol=1e-6 * np.abs(known).max())
        found = (response @ vector[:, :, None])[0, :, 0]
        assert_allclose(found, moved, rtol=1e-5, atol=1e-6 * np.abs(moved).max())
