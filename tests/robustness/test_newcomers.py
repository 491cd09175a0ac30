"""What a newcomer types in Python: the answer, or one error that says what to do."""

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import practice, simulation, theory
from giantsteps.displays import LearnedFunctionDisplay, SpectrumDisplay
from giantsteps.laws import Law

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=2, rate=3)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)
RANDOM = np.random.default_rng(0)


def test_a_spike_that_is_not_there() -> None:
    with pytest.raises(IndexError, match="this spectrum has no spike outside its bulk"):
        theory.weights(PROBLEM.untrained()).spikes[0]
    spectrum = theory.weights(PROBLEM.replace({"steps.0.rate": 5.0}))
    assert isinstance(spectrum.bulk, Law)
    assert spectrum.spikes[0].value > spectrum.bulk.edge
    with pytest.raises(IndexError, match=r"no spike number 1: this spectrum has one spike"):
        spectrum.spikes[1]
    assert isinstance(spectrum.spikes, tuple)


def test_weights_of_a_linear_layer_must_be_transposed() -> None:
    beta = np.eye(40)[0]
    with pytest.raises(gs.InvalidProblem, match=r"pass the transpose \(weight.T of an nn.Linear\)"):
        theory.risk_of_weights(RANDOM.standard_normal((60, 40)) / 6, beta, PROBLEM)
    with pytest.raises(gs.InvalidProblem, match="a vector of norm 2"):
        theory.risk_of_weights(RANDOM.standard_normal((40, 60)) / 6, 2 * beta, PROBLEM)


@pytest.mark.parametrize("side", [theory.risk, simulation.risk], ids=["theory", "simulation"])
def test_small_dimensions_carry_a_warning(side: Callable[..., Any]) -> None:
    seed = {} if side is theory.risk else {"seed": 0}
    assert "d of at least about 30 (here 20)" in side(PROBLEM, d=20, **seed).violated[0]
    assert not side(PROBLEM, d=40, **seed).violated


def test_integers_of_numpy_are_dimensions() -> None:
    d: Any = np.int64(100)
    assert theory.risk(PROBLEM, d=d).test == theory.risk(PROBLEM, d=100).test


def test_parts_by_degree_add_up_and_have_no_noise() -> None:
    risk = theory.risk(PROBLEM, d=100)
    assert risk.by_degree is not None
    assert list(risk.by_degree[::2]) == [0.0, 0.0, 0.0]  # an odd teacher, an odd network
    assert risk.rest + risk.by_degree.sum() == pytest.approx(risk.test)
    assert "higher degrees, other directions" in repr(risk)


@pytest.mark.parametrize("question", ["training_loss", "staircase_risk"])
def test_a_teacher_of_several_directions_is_not_told_to_give_d(question: str) -> None:
    several = PROBLEM.replace(teacher=gs.MultiIndex("relu(x0)*x1", rank=2), activation="relu")
    with pytest.raises(gs.NotCovered) as caught:
        getattr(theory, question)(several)
    assert "pass d" not in str(caught.value)
    assert "give d" not in str(caught.value)


def test_data_that_overflow_are_refused() -> None:
    X = RANDOM.standard_normal((80, 40)) * 1e200
    with pytest.raises(gs.InvalidProblem, match="overflow"):
        simulation.risk(PROBLEM, d=40, seed=0, data=gs.Data(X, np.ones(80)))
    with pytest.raises(gs.InvalidProblem, match="finite"):
        gs.Data(np.full((80, 40), np.nan), np.ones(80))


def test_tensors_that_require_a_gradient() -> None:
    torch = pytest.importorskip("torch")
    weights = torch.tensor(RANDOM.standard_normal((40, 60)) / 6, requires_grad=True)
    found = theory.risk_of_weights(weights, torch.eye(40, dtype=torch.float64)[0], PROBLEM)
    plain = theory.risk_of_weights(weights.detach().numpy(), np.eye(40)[0], PROBLEM)
    assert found.test == plain.test
    X = torch.tensor(RANDOM.standard_normal((80, 40)), requires_grad=True)
    y = torch.ones(80, dtype=torch.float64, requires_grad=True)
    assert gs.Data(X, y).X.shape == (80, 40)


def test_data_of_ones_own_are_not_exact() -> None:
    problem = gs.Problem.from_sizes(
        d=40, neurons=60, step_samples=[60], samples=60, activation="tanh", teacher="sin",
        steps=[{"rate": 1.0}], readout={"penalty": 0.1},
    )  # fmt: skip
    rows = RANDOM.standard_normal((400, 40))
    labels = np.sin(rows[:, 0])
    data = gs.Data(rows[:200], labels[:200], rows[200:], labels[200:])
    answer = simulation.risk(problem, d=40, seed=0, data=data)
    assert not answer.exact
    assert re.search(r"exact +no", repr(answer))


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a module of PyTorch": (lambda: PROBLEM.replace(activation=_relu()), 'such as "relu"'),
    "an attribute": (lambda: PROBLEM.replace(activation="np.tanh(x)"), "by their name alone"),
    "a path as text": (lambda: gs.Problem.from_toml("problem.toml"), "pathlib.Path"),
    "sgd": (lambda: gs.Step(samples=1, rate=1, rule="sgd"), 'did you mean "gradient"?'),
    "mse": (lambda: gs.Step(samples=1, rate=1, loss="mse"), 'did you mean "squared"?'),
    "init": (lambda: PROBLEM.replace(init="gaussian"), "an Init(...)"),
    "bounds": (
        lambda: theory.optimize(PROBLEM, bounds=(0, 1)),  # type: ignore[arg-type]
        "a mapping such as",
    ),
    "names of functions": (
        lambda: theory.approximation_error("tahn", "sin"),
        "activation = 'tahn'",
    ),
    "negative bounds": (
        lambda: theory.crossing(PROBLEM, bounds=(-1, 2)),
        r"readout.samples = -1.0",
    ),
    "quantity": (lambda: theory.crossing(PROBLEM, quantity="tests"), "quantity = 'tests'"),
    "points": (lambda: theory.learned_function(PROBLEM, d=100, x="a"), "finite numbers"),
    "one step": (lambda: PROBLEM.replace(steps=gs.Step(samples=1, rate=1)), "[Step(...)]"),
    "a list": (
        lambda: theory.risk([PROBLEM]),  # type: ignore[arg-type]
        "a Problem or a Grid",
    ),
    "a float": (
        lambda: theory.risk(PROBLEM, d=100.0),  # type: ignore[arg-type]
        "a positive whole number",
    ),
    "a number as axes": (
        lambda: theory.risk(gs.Grid(PROBLEM, {"readout.samples": [1, 2]})).plot(ax=3),
        "ax = 3: must be axes of Matplotlib",
    ),
    "errors as a function": (
        lambda: LearnedFunctionDisplay.from_answers(theory.risk(PROBLEM)),  # type: ignore[arg-type]
        "theory = 'Risk': must be a LearnedFunction",
    ),
    "errors as a spectrum": (
        lambda: SpectrumDisplay.from_spectra(
            theory.weights(PROBLEM),
            theory.risk(PROBLEM),  # type: ignore[arg-type]
        ),
        "simulation = 'Risk': must be a Spectrum",
    ),
    "a word as width": (
        lambda: theory.risk(gs.Grid(PROBLEM, {"readout.samples": [1, 2]})).plot(width="wide"),
        "width = 'wide': must be a number of inches",
    ),
    "no format": (
        lambda: theory.risk(gs.Grid(PROBLEM, {"readout.samples": [1, 2]})).plot().save("x.foo"),
        "path = 'x.foo': must be a file that ends in one of",
    ),
    "an endless grid": (
        lambda: gs.Grid(PROBLEM, {"readout.samples": [1.0] * 2000, "width": [1.0] * 2000}),
        "the grid has 4000000 cells, and may have 1000000",
    ),
    "rows of two lengths": (
        lambda: gs.Data([[1, 2], [3]], [1, 2]),  # type: ignore[arg-type]
        "data.X = [[1, 2], [3]]: must be an array of real numbers",
    ),
    "labels as a column": (
        lambda: gs.Data(np.ones((9, 5)), np.ones((9, 1))), "shape (rows,) (give y.ravel())"
    ),
    "no points": (lambda: theory.learned_function(PROBLEM, x=[]), "of finite numbers"),
    "dates": (
        lambda: theory.learned_function(PROBLEM, x=np.array(["2020-01-01"], "datetime64[D]")),
        "of finite numbers",
    ),
    "one number of steps": (
        lambda: theory.optimize(PROBLEM, "steps", {"steps": 3}),  # type: ignore[dict-item]
        "bounds['steps'] = 3: must be whole numbers",
    ),
    "bytes": (
        lambda: gs.Problem.from_toml(b"width = 1"),  # type: ignore[arg-type]
        "must be a text, or a pathlib.Path to a file",
    ),
    "tests that take years": (
        lambda: simulation.risk(PROBLEM, d=50, test_samples=10**15),
        "test_samples = 1000000000000000: must be smaller",
    ),
    "an option of a network": (
        lambda: simulation.risk(PROBLEM, d=50, test_sample=10),  # type: ignore[call-arg]
        'did you mean "test_samples"?',
    ),
    "several seeds": (
        lambda: simulation.risk(PROBLEM, d=50, seeds=3),  # type: ignore[call-arg]
        "give simulation.batch a list of seeds, or average them against theory by gs.compare",
    ),
    "a number of seeds": (
        lambda: simulation.batch("risk", PROBLEM, 50, 3),  # type: ignore[arg-type]
        "a list of seeds, such as range(10)",
    ),
    "one seed": (lambda: gs.compare(PROBLEM, 50, seeds=1), "one has no error bar"),
    "one quantity": (
        lambda: gs.compare(PROBLEM, 50, quantity="test"),
        "quantity = 'test': must be left out: the options are",
    ),
    "a number of quantities": (
        lambda: gs.compare(PROBLEM, 50, quantities=3),  # type: ignore[arg-type]
        "names of numbers, such as 'test'",
    ),
    "regularization": (
        lambda: gs.Ridge(samples=1, regularization=1),  # type: ignore[call-arg]
        'the fields of Ridge are "samples", "penalty", "batch" (did you mean "penalty"?)',
    ),
    "noise": (
        lambda: gs.Problem(noise=0.1),  # type: ignore[call-arg]
        'did you mean "noise_variance"?',
    ),
    "half a path": (lambda: PROBLEM.replace({"penlty": 1}), 'did you mean "readout.penalty"?'),
    "a constant of Python": (
        lambda: PROBLEM.replace(activation=lambda x: 1.0),
        "returns an array of the shape of its argument, not one number",
    ),
    "a product without a sign": (lambda: PROBLEM.replace(teacher="sin(2x)"), "written 2*x"),
    "a teacher as activation": (
        lambda: PROBLEM.replace(activation=gs.MultiIndex("x0*x1", rank=2)),
        "a function of one variable",
    ),
    "rows and columns of data": (
        lambda: gs.Data(np.ones((5, 9)), np.ones(9)),
        "(its columns are samples: give X.T)",
    ),
    "weights of another width": (
        lambda: theory.risk_of_weights(np.eye(40), np.eye(40)[0], PROBLEM),
        "of shape (40, 60): width = 1.5 at d = 40",
    ),
    "weights that overflow": (
        lambda: theory.risk_of_weights(np.full((40, 60), 1e200), np.eye(40)[0], PROBLEM),
        "weights = 'up to 1.0e+200': must be below 1e+50",
    ),
    "a width twice": (
        lambda: gs.Problem.from_sizes(
            d=9, neurons=9, width=1.0, activation="tanh", teacher="sin"
        ),
        "width = 1.0: must be left out: it is neurons / d",
    ),
    "a number as module": (
        lambda: gs.Problem.from_module(3 * bool(_torch()), (np.ones((3, 3)), np.ones(3))),
        "module = 3: must be an nn.Module of PyTorch",
    ),
    "a word as learning rate": (
        lambda: practice.two_layer(_network()).rate("fast"),  # type: ignore[arg-type]
        "learning_rate = 'fast'",
    ),
    "nothing to record": (
        lambda: practice.Recorder(_torch().nn.ReLU()),
        "module = 'ReLU': must be a module with linear or convolution layers",
    ),
    "a base of other names": (
        lambda: gs.inspect({"fc": np.ones((9, 9))}, base={"module.fc": np.eye(9), "b": np.eye(9)}),
        "with the names and shapes of the source, such as fc (here module.fc)",
    ),
    "a penalty as readout": (
        lambda: theory.equivalent(PROBLEM, d=50).risk(0.1),  # type: ignore[arg-type]
        "readout = 0.1: must be a Ridge(samples=..., penalty=...)",
    ),
    "a word as samples": (
        lambda: theory.equivalent(PROBLEM, d=50).kernel("all"),  # type: ignore[arg-type]
        "samples = 'all': must be a positive finite number (n/d)",
    ),
    "a dimension without end": (
        lambda: theory.risk(PROBLEM, d=10**400),
        "or None for the limit, and no larger than a float can be",
    ),
    "a number as store": (
        lambda: gs.compare(PROBLEM, 40, seeds=3, store=3),  # type: ignore[arg-type]
        'store = 3: must be the path of a file, such as "networks.sqlite"',
    ),
    "classes as numbers": (
        lambda: theory.risk_of_features(
            np.eye(90)[:, :9], np.arange(90) % 3, samples=60, penalty=1.0
        ),
        "np.eye(3)[labels] if they are classes 0 to 2, labels.astype(float) if they are numbers",
    ),
    "names of classes": (
        lambda: gs.inspect(_network(), data=(np.eye(9), list("abcabcabc"))),
        "data = 'labels of type <U1': must be numbers; for classes, np.unique(labels, return_in",
    ),
    "data without rows": (
        lambda: gs.inspect(_network(), data=(np.ones((0, 9)), np.ones(0))),
        "data = 'float64 (0, 9)': must be finite inputs of shape (rows, ...)",
    ),
    "weights that are not loaded": (
        lambda: gs.inspect(_torch().nn.Linear(9, 9, device="meta")),
        "on the meta device': must be filled: load the weights first",
    ),
    "a vector as weights": (
        lambda: gs.inspect(np.ones(9)),
        "a matrix of floating-point numbers, or several (here array: a vector or scalar)",
    ),
    "an optimizer of another network": (
        lambda: practice.Recorder(
            _network(), _torch().optim.SGD(_network().parameters(), lr=0.1)
        ),
        "optimizer = 'SGD': must be one that trains layers of the module",
    ),
    "no base": (lambda: gs.inspect({"fc": np.ones((9, 9))}, base={}), "(here there is none)"),
    "a seed of another kind": (
        lambda: gs.inspect(np.eye(9), seed=-1), "seed = -1: must be a non-negative integer"
    ),
    "probabilities": (
        lambda: gs.Vocabulary(values=(1, -1), probabilities=(1,)), "2 numbers, one per value"
    ),
}  # fmt: skip


def _torch() -> Any:
    return pytest.importorskip("torch")


def _relu() -> Any:
    return _torch().nn.ReLU()


def _network() -> Any:
    nn = _torch().nn
    return nn.Sequential(nn.Linear(9, 12), nn.Tanh(), nn.Linear(12, 1))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained(mistake: str) -> None:
    call, needle = MISTAKES[mistake]
    with pytest.raises(gs.InvalidProblem) as caught:
        call()
    assert needle in str(caught.value)


def test_an_optimum_says_in_words_that_it_is_at_a_bound() -> None:
    bounds = {"readout.penalty": (1.0, 2.0)}
    found = repr(theory.optimize(PROBLEM, bounds=bounds))
    assert "readout.penalty is at its lower bound: a wider one may be better" in found
    assert "sides" not in found
    grid = gs.Grid(PROBLEM, {"width": [1, 2]})
    assert "is at a bound in 2 of 2 cells" in repr(theory.optimize(grid, bounds=bounds))
    assert "bound" not in repr(theory.optimize(PROBLEM))


def test_a_run_can_be_pickled_and_copied() -> None:
    run = simulation.run(PROBLEM, d=30, seed=1, test_samples=50)
    rows = RANDOM.standard_normal((200, 30))
    own = simulation.run(PROBLEM, data=gs.Data(rows, rows[:, 0], rows, rows[:, 0]), seed=1)
    for one in (run, run.after(0), own):
        expected = one.risk()
        for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
            assert other.risk() == expected
            assert np.array_equal(other.arrays["W0"], one.arrays["W0"])


def test_sizes_and_seeds_may_be_arrays() -> None:
    sizes: Any = np.array([30, 40])
    seeds: Any = np.arange(3)
    found = gs.compare(PROBLEM, sizes, seeds=seeds, test_samples=50)
    plain = gs.compare(PROBLEM, [30, 40], seeds=3, test_samples=50)
    assert found.to_columns() == plain.to_columns()


def test_a_class_has_no_weights() -> None:
    linear = pytest.importorskip("torch").nn.Linear
    with pytest.raises(
        gs.InvalidProblem, match=r"an object with weights, such as Linear\(\.\.\.\)"
    ):
        gs.inspect(linear)


def test_an_answer_without_cells_is_not_an_empty_list() -> None:
    with pytest.raises(TypeError, match="a single problem has no cells; ask a Grid"):
        list(theory.risk(PROBLEM))
    answer = theory.risk(gs.Grid(PROBLEM, {"readout.samples": [1, 2]}))
    assert [cell.test for cell in answer] == np.asarray(answer.test).tolist()


def test_a_gradient_without_a_spike_has_every_property() -> None:
    step = theory.gradient(PROBLEM.replace(activation="cos"))
    assert step.spike_norm == 0.0
    assert np.isnan(step.ratio)


def test_sparse_features_and_weights_are_those_of_the_dense_ones() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    x = RANDOM.standard_normal((90, 9)) * (RANDOM.random((90, 9)) < 0.5)
    y = x[:, 0] + RANDOM.standard_normal(90)
    found, plain = (
        theory.risk_of_features(given, y, samples=[60], penalty=0.1).test
        for given in (sparse.csr_array(x), x)
    )
    assert found == plain
    torch = _torch()
    weights = torch.randn(20, 30)
    scale = gs.inspect({"w": weights.to_sparse()})["w"].scale
    assert scale == gs.inspect({"w": weights})["w"].scale


def test_a_curve_of_probes_can_be_drawn() -> None:
    pytest.importorskip("matplotlib.pyplot").switch_backend("agg")
    x = RANDOM.standard_normal((90, 9))
    drawn: Any = theory.risk_of_features(x, x[:, 0], samples=[30, 60], penalty=0.1).plot()
    assert drawn.ax_.get_xscale() == "log"
    classes = theory.risk_of_features(x, np.sign(x[:, 0]), samples=[30, 60], penalty=0.1)
    classes.plot(quantity="classification_error")
    with pytest.raises(gs.InvalidProblem, match=r'one of "test", "class.*did you mean "test"'):
        classes.plot(quantity="tset")


def test_labels_of_half_precision() -> None:
    torch = _torch()
    x, y = torch.randn(90, 9), torch.ones(90, dtype=torch.bfloat16)
    y[::2] = -1
    found = theory.risk_of_features(x, y, samples=[60], penalty=0.1)
    assert found.test == theory.risk_of_features(x, y.float(), samples=[60], penalty=0.1).test


def test_data_that_must_not_be_written_to_bring_no_warning() -> None:
    """As pandas hands them over."""
    network = _network()
    x, y = RANDOM.standard_normal((40, 9)), RANDOM.standard_normal(40)
    found = gs.inspect(network, data=(x, y)).gradients[0].critical_rate
    x.flags.writeable = y.flags.writeable = False
    assert gs.inspect(network, data=(x, y)).gradients[0].critical_rate == found


def test_a_quantity_that_was_not_compared() -> None:
    comparison = gs.compare(PROBLEM, 30, seeds=2, quantities="test", test_samples=50)
    with pytest.raises(gs.InvalidProblem, match='one of "test"'):
        comparison["train"]
