"""The solver against the equations as they are written (`equations.py`)."""

from __future__ import annotations

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory.steps.one import neuron_law

from . import equations as reference

BENT = "tanh(x) + 0.4*(tanh(x)**2 - 0.39429449039746)"
TWO = gs.Vocabulary([0.5, 1.5], [0.5, 0.5])


def quadratic(
    activation: object = gs.centered("relu"), rate: float = 1.5, **init: object
) -> gs.Problem:
    """he1 + .5 he2, the settings of the first two rows of the open check values."""
    return gs.Problem(
        activation=activation,  # type: ignore[arg-type]
        teacher="x + 0.5*(x**2 - 1)",
        noise_variance=0.1,
        width=1.2,
        steps=[gs.Step(samples=3.0, rate=rate, exponent=0.5)],
        readout=gs.Ridge(samples=3.0, penalty=0.05),
        init=gs.Init(**{"second_layer": "constant", **init}),  # type: ignore[arg-type]
    )


def sine(**init: object) -> gs.Problem:
    return gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=1.5,
        steps=[gs.Step(samples=1.0, rate=3.0, exponent=0.5)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(**{"second_layer": "constant", **init}),  # type: ignore[arg-type]
    )


PROBLEMS = {"relu": quadratic, "bent": lambda **init: quadratic(BENT, 2.0, **init), "tanh": sine}

# -- open check values ------------------------------------------------------------------------


def test_law_of_a_neuron_given_the_batch() -> None:
    """Open values of theory §5b to all their digits, by the package and by the reference."""
    wanted = {
        "relu": {
            "tilt": 0.598413, "noise": 0.068134, "total": 1.3, "spike": 0.928709,
            "overlap": 0.807573, "spread": 0.616056, "growth": 1.0, "stretch": 0.0,
            "linear": (0.0, 0.0, 0.0), "own": (0.0, 0.0, 0.0), "products": 3.354614,
        },
        "bent": {
            "tilt": 0.290876, "noise": 0.165872, "total": 1.310520, "spike": 1.500064,
            "spread": 4.620519, "growth": 1.069067, "stretch": -0.450232,
            "linear": (-1.454382, -0.044731, 0.0), "own": (0.0, 0.051553, -0.000555),
            "products": 2.485824,
        },
        "tanh": {
            "total": 1.467235, "spread": 6.009089, "growth": 1.200912, "stretch": -0.517466,
            "linear": (-2.181572, 0.0, 0.0), "own": (0.0, 0.0, -0.272181),
        },
    }  # fmt: skip
    for name, values in wanted.items():
        given = PROBLEMS[name]()
        moved = np.array([given.steps[0].rate])
        found = reference.batch_law(given, moved)
        for attribute, value in values.items():
            here = np.ravel(getattr(found, attribute))
            np.testing.assert_allclose(
                here, np.ravel(np.asarray(value)), atol=6e-7, err_msg=attribute
            )
        law = neuron_law(given, moved, level=3)
        norms, covariance = law.norms(True), law.covariance()
        np.testing.assert_allclose(law.tilt, found.tilt, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(law.noise, found.noise, rtol=1e-9)
        np.testing.assert_allclose(law.spikes, found.spike, rtol=1e-9)
        assert law.overlap == pytest.approx(found.overlap, rel=1e-9)
        np.testing.assert_allclose(covariance.totals, found.total, rtol=1e-9)
        np.testing.assert_allclose(norms.spread[0], found.spread, rtol=1e-8)
        assert norms.spread[1] == 2.0
        np.testing.assert_allclose(norms.growth[1], found.growth, rtol=1e-9)
        np.testing.assert_allclose(norms.stretch[1, :, 0], found.stretch, rtol=1e-8, atol=1e-9)
        squares = np.einsum("tc,sd,cd->ts", *(covariance.coefficients,) * 2, covariance.gram)
        np.testing.assert_allclose(squares, found.products, rtol=1e-9)


#: test, train: equal norms in the limit; sphere and gaussian in the limit; both at d = 1000.
VALUES = {
    "relu": [
        (0.617302, 0.323666), (0.607183, 0.318533), (0.581269, 0.305514), (0.607625, 0.318768),
        (0.581768, 0.305766),
    ],
    "bent": [
        (0.735894, 0.516900), (0.738499, 0.517593), (0.738392, 0.517294), (0.738801, 0.517779),
        (0.738696, 0.517483),
    ],
    "tanh": [
        (0.209310, 0.129518), (0.209130, 0.129413), (0.209041, 0.129361), (0.209171, 0.129426),
        (0.209082, 0.129374),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_open_values_of_the_errors(name: str) -> None:
    sphere, gaussian = (PROBLEMS[name](weights=weights) for weights in ("sphere", "gaussian"))
    found = [
        theory.equivalent(sphere, simplify="equal norms").risk(),
        theory.risk(sphere),
        theory.risk(gaussian),
        theory.risk(sphere, d=1000),
        theory.risk(gaussian, d=1000),
    ]
    for answer, wanted in zip(found, VALUES[name], strict=True):
        assert (answer.test, answer.train) == pytest.approx(wanted, abs=6e-7)


def small(activation: object, teacher: str, *, rate: float, width: float, step: float,
          noise: float, law: str, samples: float, penalty: float) -> gs.Problem:  # fmt: skip
    return gs.Problem(
        activation=activation,  # type: ignore[arg-type]
        teacher=teacher,
        noise_variance=noise,
        width=width,
        steps=[gs.Step(samples=step, rate=rate)],
        readout=gs.Ridge(samples=samples, penalty=penalty),
        init=gs.Init(second_layer=law),
    )


RELU_SMALL = quadratic(rate=3.0).replace({"steps.0.exponent": 0.0})
PULLED = {
    law: small("tanh", "sin", rate=4.0, width=0.8, step=4.0, noise=0.05, law=law, samples=2.0,
               penalty=0.05)
    for law in ("constant", "gaussian")
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "d", "test", "train"),
    [
        (quadratic(second_layer=TWO), None, 0.586460, 0.307415),
        (quadratic(second_layer=TWO), 1000, 0.590957, 0.308920),
        (quadratic("relu"), None, 0.694520, 0.404379),
        (quadratic("relu"), 1000, 0.694500, 0.404376),
        (RELU_SMALL, 1000, 0.961607, 0.514700),
        (PULLED["constant"], 1000, 0.184658, 0.115974),
        (PULLED["gaussian"], 500, 0.182975, None),
        (PULLED["gaussian"], 1000, 0.184476, None),
    ],
)
def test_open_values_of_other_settings(
    given: gs.Problem, d: int | None, test: float, train: float | None
) -> None:
    found = theory.risk(given, d=d)
    assert found.test == pytest.approx(test, abs=6e-7)
    if train is not None:
        assert found.train == pytest.approx(train, abs=6e-7)


# -- the reference ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "d"),
    [
        (quadratic(BENT, 2.0), 300),
        (sine(weights="sphere"), 200),
        pytest.param(quadratic(), None, marks=pytest.mark.slow),
        pytest.param(RELU_SMALL, 400, marks=pytest.mark.slow),
        pytest.param(PULLED["constant"], 300, marks=pytest.mark.slow),
    ],
)
def test_the_solver_has_the_errors_of_the_reference(given: gs.Problem, d: int | None) -> None:
    found = theory.risk(given, d=d)
    wanted = reference.risk(given, d, nodes=48, noise_nodes=14)
    assert (found.test, found.train) == pytest.approx(wanted, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "d"),
    [
        (quadratic(second_layer=TWO), None),
        (quadratic(second_layer=TWO), 1000),
        (quadratic("relu"), 1000),
        (PULLED["gaussian"], 500),
        (sine(second_layer=gs.Vocabulary([-1.0, 0.5, 2.0], [0.3, 0.4, 0.3])), 600),
        (quadratic(BENT, 1.0, second_layer="gaussian"), 800),
    ],
)
def test_the_solver_has_the_errors_of_the_reference_for_types(
    given: gs.Problem, d: int | None
) -> None:
    found = theory.risk(given, d=d)
    wanted = reference.risk(given, d, channels=1e-4)
    assert (found.test, found.train) == pytest.approx(wanted, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "d", "left_out", "test"),
    [
        (RELU_SMALL, 1000, ("pull",), 0.962866),
        (RELU_SMALL, 1000, ("own norm",), 0.969607),
        (PULLED["constant"], 1000, ("pull",), 0.187131),
        (PULLED["gaussian"], 500, ("pull",), 0.186465),
        (PULLED["gaussian"], 1000, ("pull",), 0.186951),
    ],
)
def test_what_the_terms_of_finite_size_are_worth(
    given: gs.Problem, d: int, left_out: tuple[str, ...], test: float
) -> None:
    assert reference.risk(given, d, leave_out=left_out)[0] == pytest.approx(test, abs=6e-7)
    assert abs(float(theory.risk(given, d=d).test) - test) > 1e-3
