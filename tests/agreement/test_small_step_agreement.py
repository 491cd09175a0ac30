"""Small steps: theory = simulation, risk and weights of the same networks (theory §2, §4).

Resolution (three standard errors over |theory|) is asserted: 2 % for errors and the spike,
5 % for overlaps.

The labels are large and the rate small: theory sees only their product, while the largest
finite-size effect, the pull of the initial network f₀ in the gradient, shrinks with the rate
(`test_pull_of_the_initial_network`).
"""

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory

pytestmark = pytest.mark.agreement

#: Means and standard errors.
Measured = tuple[np.ndarray, np.ndarray]

D, SEEDS = 300, 110
PROBLEM = gs.Problem(
    activation="tanh",
    teacher="8*sin(x)",
    noise_variance=3.2,
    width=0.8,
    steps=[gs.Step(samples=4, rate=0.5)],
    readout=gs.Ridge(samples=4, penalty=0.2),
)


@pytest.fixture(scope="module")
def measured() -> Measured:
    """Means and standard errors over networks of every quantity that theory predicts."""
    rows = []
    for seed in range(SEEDS):
        run = simulation.run(PROBLEM, d=D, seed=seed, test_samples="exact")
        risk, (spike,) = run.risk(), run.weights(top=1).spikes
        assert risk.initial is not None
        rows.append(
            [risk.test, risk.train, risk.initial.test, risk.initial.train, risk.gain, spike.value]
            + [spike.overlaps[name] for name in ("teacher", "gradient", "second_layer")]
        )
    values = np.array(rows, dtype=float)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(SEEDS)


def predicted(problem: gs.Problem) -> np.ndarray:
    """At this size, with what the initial output pulls."""
    risk, (spike,) = theory.risk(problem, d=D), theory.weights(problem, d=D).spikes
    assert risk.initial is not None
    errors = (risk.test, risk.train, risk.initial.test, risk.initial.train, risk.gain)
    overlaps = [spike.overlaps[name] for name in ("teacher", "gradient", "second_layer")]
    return np.array([*errors, spike.value, *overlaps], dtype=float)


#: test, train, initial test, initial train, gain, spike, three overlaps.
RESOLUTION = np.array([0.02, 0.02, 0.02, 0.02, 0.05, 0.02, 0.05, 0.05, 0.05])


def test_theory_is_simulation(measured: Measured) -> None:
    mean, error = measured
    expected = predicted(PROBLEM)
    resolution, t = 3 * error / expected, (mean - expected) / error
    assert np.all(resolution <= RESOLUTION), resolution
    assert np.all(np.abs(t) <= 3), t


@pytest.mark.parametrize("number", range(len(RESOLUTION)))
def test_an_error_of_its_resolution_is_seen(measured: Measured, number: int) -> None:
    """Twice the resolution planted in any one number is found: this test can fail."""
    mean, error = measured
    wrong = predicted(PROBLEM)[number] * (1 + 2 * RESOLUTION[number])
    assert abs(mean[number] - wrong) / error[number] > 3


@pytest.mark.parametrize(
    "change",
    [
        {"steps.0.rate": 0.5 * 1.15},
        {"steps.0.samples": 4 * 1.4},
        {"noise_variance": 3.2 * 1.3},
        {"readout.samples": 4 * 1.15},
        {"width": 0.8 * 1.1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_wrong_setting_is_seen(measured: Measured, change: dict[str, float]) -> None:
    mean, error = measured
    t = (mean - predicted(PROBLEM.replace(change))) / error
    assert np.abs(t).max() > 3


def test_pull_of_the_initial_network() -> None:
    """b contains −Xᵀf₀/n₀ ≈ −μ₁N^{-1/2} W a, which shortens W₀ along a by ε = η μ₁²/√N.

    To first order the spike's singular value falls by ε ⟨u, W₀a⟩⟨v, a⟩: visible in networks of
    this size at rate 4, absent from the limit.
    """
    small_labels = PROBLEM.replace(
        {"teacher": "sin", "noise_variance": 0.05, "steps.0.rate": 4.0, "readout": None}
    )
    large_labels = PROBLEM.replace({"readout": None})
    ((limit,), (same,)) = (theory.weights(p).spikes for p in (small_labels, large_labels))
    assert limit.value == pytest.approx(same.value, rel=1e-12)

    differences = []
    for seed in range(40):
        one, other = (simulation.run(p, d=D, seed=seed) for p in (small_labels, large_labels))
        differences.append(
            float(one.weights(top=1).spikes[0].value - other.weights(top=1).spikes[0].value)
        )
    mean, error = np.mean(differences), np.std(differences, ddof=1) / np.sqrt(40)
    # ⟨u, W₀v⟩ = s − θ⟨u, b̂⟩⟨v, â⟩ and W₀v ≈ W₀â⟨v, â⟩ + …: sign and size, not digits.
    shortening = (4.0 - 0.5) * 0.6057**2 / np.sqrt(0.8 * D)
    assert mean < -3 * error
    assert 0.1 * shortening < -mean < shortening
