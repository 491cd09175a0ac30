"""Samples of one's own: which rows serve for what, what can be asked, what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation

D = 40


def make(**changes: object) -> gs.Problem:
    problem = gs.Problem(
        activation="tanh",
        teacher="sin",
        width=1.2,
        steps=[
            gs.Step(samples=2.0, rate=1.0, exponent=0.5),
            gs.Step(samples=2.0, rate=0.5, batch="previous"),
            gs.Step(samples=1.5, rate=0.5),
        ],
        readout=gs.Ridge(samples=2.0, penalty=0.05),
    )
    return problem.replace(changes)


def draw(rows: int = 250, points: int = 300, seed: int = 0) -> gs.Data:
    rng = np.random.default_rng(seed)
    x, x_test = rng.standard_normal((rows, D)), rng.standard_normal((points, D))
    return gs.Data(x, np.sin(x[:, 0]) + 0.3 * rng.standard_normal(rows), x_test, x_test[:, 0])


def test_rows() -> None:
    data = draw()
    arrays = simulation.run(make(), data=data).arrays
    np.testing.assert_array_equal(arrays["X0"], data.X[:80])
    np.testing.assert_array_equal(arrays["y1"], data.y[:80])  # the previous batch
    np.testing.assert_array_equal(arrays["X2"], data.X[80:140])
    np.testing.assert_array_equal(arrays["X"], data.X[::-1][:80])
    np.testing.assert_array_equal(arrays["y"], data.y[::-1][:80])
    np.testing.assert_array_equal(arrays["X_test"], data.X_test)
    np.testing.assert_array_equal(arrays["f_test"], data.y_test)
    assert "beta" not in arrays
    drawn = simulation.run(make(), D, 0).arrays
    np.testing.assert_array_equal(arrays["W0"], drawn["W0"])
    np.testing.assert_array_equal(arrays["a"], drawn["a"])


def test_every_row_is_used_once() -> None:
    data = draw(rows=220)  # 80 + 60 for the steps, 80 for the readout
    arrays = simulation.run(make(), data=data).arrays
    used = np.concatenate([arrays[name] for name in ("X0", "X2", "X")])
    np.testing.assert_array_equal(np.sort(used[:, 0]), np.sort(data.X[:, 0]))


@pytest.mark.parametrize("samples", [0.5, 2.0])
def test_risk_written_out(samples: float) -> None:
    data = draw()
    run = simulation.run(make(**{"readout.samples": samples}), data=data, seed=3)
    w, neurons = run.arrays["W3"], run.sizes.neurons
    x, y = run.arrays["X"], run.arrays["y"]
    phi = np.tanh(x @ w) / np.sqrt(neurons)
    a = np.linalg.solve(phi.T @ phi + len(y) * 0.05 / neurons * np.eye(neurons), phi.T @ y)
    errors = np.tanh(data.X_test @ w) @ a / np.sqrt(neurons) - data.y_test
    answer = run.risk()
    assert answer.test == pytest.approx(np.mean(errors**2), rel=1e-9)
    assert answer.train == pytest.approx(np.mean((phi @ a - y) ** 2), rel=1e-9)
    assert answer.by_degree is None
    few = simulation.risk(make(**{"readout.samples": samples}), data=data, seed=3, test_samples=50)
    assert few.test == pytest.approx(np.mean(errors[:50] ** 2), rel=1e-9)


def test_data_of_a_drawn_run_give_its_answers() -> None:
    problem = gs.Problem(
        activation="relu",
        teacher="sin",
        noise_variance=0.1,
        width=0.8,
        steps=[gs.Step(samples=2.0, rate=1.0)],
        readout=gs.Ridge(samples=3.0, penalty=0.1),
    )
    drawn = simulation.run(problem, D, seed=5, test_samples=700)
    names = ("X0", "y0", "X", "y", "X_test", "f_test")
    x0, y0, x, y, x_test, f_test = (drawn.arrays[name] for name in names)
    data = gs.Data(np.concatenate([x0, x[::-1]]), np.concatenate([y0, y[::-1]]), x_test, f_test)
    given = simulation.run(problem, D, seed=5, data=data)
    assert given.risk().test == pytest.approx(drawn.risk().test, rel=1e-12)
    mine, theirs = given.risk().initial, drawn.risk().initial
    assert mine is not None
    assert theirs is not None
    assert mine.test == pytest.approx(theirs.test, rel=1e-12)
    for question in ("weights", "kernel", "features"):
        for spike, other in zip(
            getattr(given, question)(3).spikes, getattr(drawn, question)(3).spikes
        ):
            assert spike.value == pytest.approx(other.value, rel=1e-10)
            expected = {name: v for name, v in other.overlaps.items() if name != "teacher"}
            assert spike.overlaps == pytest.approx(expected, rel=1e-7)
    assert set(given.gradient().overlaps) == {"direction", "second_layer"}
    assert given.gradient().ratio == pytest.approx(drawn.gradient().ratio, rel=1e-10)
    tangent = given.risk(kind="tangent").test
    assert tangent == pytest.approx(drawn.risk(kind="tangent").test, rel=1e-9)


def test_readouts_are_paired() -> None:
    # The readout's samples depend neither on the steps nor on how many more there are.
    data = draw()
    answer = simulation.run(make(), data=data).risk(samples=[0.5, 2.0])
    untrained = simulation.risk(make().untrained(), data=data)
    assert answer.initial is not None
    assert np.asarray(answer.initial.test)[1] == pytest.approx(untrained.test, rel=1e-12)
    grid = gs.Grid(make(), {"steps.0.rate": [0.0, 1.0], "readout.samples": [0.5, 2.0]})
    over = simulation.risk(grid, data=data)
    assert over.d == D
    assert over.initial is not None
    np.testing.assert_allclose(np.asarray(over.test)[1], answer.test, rtol=1e-10)
    np.testing.assert_allclose(np.asarray(over.initial.test)[0], answer.initial.test, rtol=1e-10)


@pytest.mark.parametrize("device", ["torch", "array_api_strict"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_devices(device: str, dtype: str) -> None:
    module = pytest.importorskip(device)
    data = draw()
    assert data.X_test is not None
    single = gs.Data(data.X.astype("float32"), data.y, data.X_test.astype("float32"), data.y_test)
    options: dict[str, Any] = {"device": "torch" if device == "torch" else module, "dtype": dtype}
    for given in (data, single):
        expected = simulation.risk(make(), data=given).test
        found = simulation.risk(make(), data=given, **options).test
        assert found == pytest.approx(expected, rel=1e-9 if dtype == "float64" else 1e-4)


def test_labels_of_a_float32_run_are_as_given() -> None:
    data = draw()
    assert simulation.run(make(), data=data, dtype="float32").arrays["y0"][0] == data.y[0]


def test_integers_booleans_and_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).integers(0, 2, (9, 3))
    for given in (x, x == 1, torch.tensor(x), x.tolist()):
        data = gs.Data(given, np.arange(9))
        assert data.X.dtype == data.y.dtype == np.float64
        np.testing.assert_array_equal(data.X, x)
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 2
    assert repr(data) == "Data(X: (9, 3), y: (9,))"


X, Y = np.ones((4, 3)), np.ones(4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[0], Y), r"data\.X = \(3,\)"),
        ((X[:0], Y[:0]), r"data\.X = \(0, 3\)"),
        ((X, Y[:3]), r"data\.y = \(3,\): must be of length 4"),
        ((X, X), r"data\.y"),
        ((X * np.nan, Y), r"data\.X = .*finite"),
        ((X, Y + 1j), r"data\.y = .*real"),
        ((X.astype(object), Y), r"data\.X = .*real"),
        ((X, Y, X), r"both X_test and y_test"),
        ((X, Y, None, Y), r"both X_test and y_test"),
        ((X, Y, X[:, :2], Y), r"data\.X_test = \(4, 2\): must be of 3 columns"),
        ((X, Y, X, Y[1:]), r"data\.y_test = \(3,\): must be of length 4"),
    ],
)
def test_refused_arrays(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(gs.InvalidProblem, match=message):
        gs.Data(*arguments)


def test_refused_questions() -> None:
    data = draw()
    with pytest.raises(gs.InvalidProblem, match=r"d = 41: must be 40"):
        simulation.run(make(), 41, data=data)
    with pytest.raises(gs.InvalidProblem, match=r"d = None"):
        simulation.run(make())
    with pytest.raises(gs.InvalidProblem, match=r"must be a Data\(X, y"):
        simulation.run(make(), data=(X, Y))  # type: ignore[arg-type]
    with pytest.raises(gs.InvalidProblem, match=r"at least 220 rows at d = 40: 140 for the steps"):
        simulation.run(make(), data=draw(rows=219))
    with pytest.raises(gs.InvalidProblem, match=r"at least 260 rows"):
        simulation.run(make(), data=data).risk(samples=[0.5, 3.0])
    with pytest.raises(gs.InvalidProblem, match=r"test_samples = 301: must be at most 300"):
        simulation.run(make(), data=data, test_samples=301)
    with pytest.raises(gs.InvalidProblem, match="law of the data is not known"):
        simulation.run(make(), data=data, test_samples="exact")
    with pytest.raises(gs.InvalidProblem, match="inputs"):
        simulation.run(make(), data=data, inputs="rademacher")
    with pytest.raises(gs.InvalidProblem, match="no known teacher"):
        simulation.learned_function(make(), data=data)


def test_without_test_points() -> None:
    data = draw()
    run = simulation.run(make(), data=gs.Data(data.X, data.y))
    with pytest.raises(gs.InvalidProblem, match="X_test and y_test for the test error"):
        run.risk()
    assert "X_test" not in run.arrays
    assert len(run.kernel(2).spikes) == 2


def test_numbers_that_overflow_are_refused_with_a_remedy() -> None:
    x = np.random.default_rng(0).standard_normal((300, 20))
    with pytest.raises(gs.InvalidProblem, match=r"data\.X = .*1e\+30.*standard deviation"):
        gs.Data(x * 1e200, x[:, 0])
    with pytest.raises(gs.InvalidProblem, match=r"data\.y = .*overflow"):
        gs.Data(x, x[:, 0] * 1e40)


def test_tensors_of_a_graph_are_taken_as_numbers() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(300, 20, dtype=torch.float64, requires_grad=True)
    y = torch.sin(x[:, 0])
    data = gs.Data(x, y, x[:50], y[:50])
    np.testing.assert_array_equal(data.X, x.detach().numpy())
    problem = gs.Problem(
        activation="tanh", teacher="sin", width=1.0, readout=gs.Ridge(samples=2.0, penalty=0.1)
    )
    assert np.isfinite(simulation.risk(problem, data=data).test)


def test_answers_from_data_of_ones_own_do_not_claim_to_be_exact() -> None:
    x = np.random.default_rng(0).standard_normal((300, 40))
    data = gs.Data(x, np.sign(x[:, 0]), x[:50], np.sign(x[:50, 0]))
    problem = gs.Problem(
        activation="tanh", teacher="sin", width=1.0, readout=gs.Ridge(samples=2.0, penalty=0.1)
    )
    answer = simulation.risk(problem, data=data)
    assert not answer.exact
    assert re.search(r"exact +no", repr(answer))
    assert not simulation.kernel(problem, data=data).exact
    # Labels of ±1 can be counted, whatever teacher the problem names.
    assert answer.classification_error is not None
    assert 0 <= answer.classification_error <= 1


def test_a_preconditioned_step_needs_a_known_covariance() -> None:
    x = np.random.default_rng(0).standard_normal((300, 40))
    problem = gs.Problem(
        activation="tanh",
        teacher="sin",
        width=1.0,
        steps=[gs.Step(samples=2, rate=1, precondition=1)],
        inputs=gs.PowerLaw(0.3),
    )
    with pytest.raises(gs.InvalidProblem, match="whiten the inputs"):
        simulation.run(problem, data=gs.Data(x, x[:, 0]))
