"""Certificates: uniform where theory is right, and a planted error is found."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from giantsteps.comparison import certify as package
from giantsteps.comparison.certify import (
    FAMILIES,
    Certificate,
    Finding,
    Setting,
    certify,
    design,
    examine,
)
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Problem, Ridge

SMALL = ("risk, no step", "risk, exponent 1/2", "weights, exponent 0")


def made_up(
    number: int, gap: float, rng: np.random.Generator, power: float = 1.0, closes: float = 0.0
) -> Finding:
    """A setting whose gap is ``gap`` at every size, beside one that closes as d^{-power}."""
    problem = Problem(activation="tanh", teacher="sin", width=1.0)
    sizes = (50, 200)
    closing = np.array([(50 / d) ** power for d in sizes])[:, None]
    noise = 0.03 * closing * rng.standard_normal((2, 6))
    return Finding(
        setting=Setting(number, "risk, no step", "risk", "test", problem),
        sizes=sizes,
        theory=np.ones(2),
        simulated=1.0 + gap + closes * closing + noise,
        residual=0.0,
        quadrature=np.nan,
        violated=(),
    )


def certificate(
    gap: float, power: float = 1.0, count: int = 200, closes: float = 0.03
) -> Certificate:
    rng = np.random.default_rng(3)
    findings = tuple(made_up(i, gap, rng, power, closes) for i in range(count))
    return Certificate(findings, "full", (50, 200), 6, 0)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_gaps_that_close_are_uniform_and_their_power_is_found(power: float) -> None:
    found = certificate(0.0, power, closes=0.1)
    assert found.passed
    assert found.all > 0.01
    assert found.groups[0].power == pytest.approx(power, abs=0.15)


def test_a_gap_that_stays_is_found() -> None:
    found = certificate(0.03)
    assert not found.passed
    assert "not uniform" in found.exceptions[0]


def test_t_is_that_of_the_contrast() -> None:
    finding = made_up(0, 0.1, np.random.default_rng(0))
    contrast = 4 * (finding.simulated[1] - 1) - (finding.simulated[0] - 1)
    expected = stats.ttest_1samp(contrast, 0.0)
    assert finding.t(1.0) == pytest.approx(expected.statistic)
    assert 2 * min(finding.uniform(1.0), 1 - finding.uniform(1.0)) == pytest.approx(expected.pvalue)


def test_the_design_is_seeded_and_nested() -> None:
    few = list(design(3, sizes=(20, 40), families=SMALL))
    more = list(design(6, sizes=(20, 40), families=SMALL))
    other = list(design(3, seed=1, sizes=(20, 40), families=SMALL))
    assert few == more[:3]
    assert [s.problem for s in few] != [s.problem for s in other]
    assert [s.family for s in few] == list(SMALL)


def test_a_short_certificate_passes_and_is_written(tmp_path: Path) -> None:
    found = certify("short", families=SMALL, settings=9, sizes=(20, 60), seeds=4)
    assert found.passed, found.exceptions
    for finding in found.findings:
        assert finding.residual < 1e-8
        assert not finding.quadrature > 1e-6
    files = found.save(tmp_path)
    data = json.loads(files[0].read_text(encoding="utf-8"))
    assert data["passed"] is True
    assert len(data["settings"]) == 9
    page = files[1].read_text(encoding="utf-8")
    assert "passed" in page
    assert all(group.name in page for group in found.groups)
    violated = [text for f in found.findings for text in f.violated]
    assert all(text in "".join(found.exceptions) for text in violated)


def strongly_penalised(count: int = 8) -> Certificate:
    """Untrained networks with large penalties: errors that hardly fluctuate."""
    settings = [
        Setting(
            number,
            "risk, no step",
            "risk",
            "test",
            Problem(
                activation=("tanh", "erf")[number % 2],
                teacher=("sin", "tanh", "erf")[number % 3],
                width=0.5 + 0.1 * number,
                readout=Ridge(samples=0.4 + 0.05 * number, penalty=30.0 + number),
            ),
        )
        for number in range(count)
    ]
    sizes, seeds = (16, 64), 4
    findings = tuple(examine(setting, sizes, seeds) for setting in settings)
    return Certificate(findings, "short", sizes, seeds, 0)


@pytest.mark.agreement
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (1.03, False), (0.97, False)])
def test_a_planted_error_of_three_percent_is_found(
    monkeypatch: pytest.MonkeyPatch, factor: float, passes: bool
) -> None:
    """In R + Δ = (E y² − P + κP')/(1 − df₂), the error of theory §4."""
    from giantsteps.theory import _small_step

    right = _small_step.ridge_errors

    def wrong(features: Any) -> Any:
        found = right(features)
        return dataclasses.replace(found, test=factor * found.test)

    monkeypatch.setattr(_small_step, "ridge_errors", wrong)
    found = strongly_penalised()
    assert max(f.resolution for f in found.findings) < 0.02
    assert found.passed is passes, (found.groups[0].to_data(), found.exceptions)


def test_unknown_names() -> None:
    with pytest.raises(InvalidProblem, match="short"):
        certify("long")
    with pytest.raises(InvalidProblem, match="gradient"):
        certify(families=("gradients",))
    assert set(SMALL) < set(FAMILIES)


def test_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from giantsteps.cli._certify import command

    monkeypatch.setattr(package, "certify", lambda *a, **k: certificate(0.03, count=40))
    result = CliRunner().invoke(command, ["-o", str(tmp_path)], standalone_mode=False)
    assert result.return_value == 3
    assert "certificate: failed" in result.output
    assert (tmp_path / "certificate.html").exists()
