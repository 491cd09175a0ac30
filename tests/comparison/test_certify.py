"""Certificates: uniform where theory is right, and a planted error is found."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from giantsteps.campaign import Workers
from giantsteps.comparison import certify as package
from giantsteps.comparison.certify import (
    FAMILIES,
    SCALES,
    Certificate,
    Finding,
    Group,
    Plan,
    Scale,
    Setting,
    certify,
    draw,
    recertify,
)
from giantsteps.errors import InvalidProblem, StoreError
from giantsteps.problem import Problem

SIZES = (100, 600)
TINY = Scale(settings=2, sizes=(20, 60), blocks=3, small=2)
CHEAP = ("degrees of freedom", "training loss", "weights' spike, small step")
Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Student's with four degrees of freedom, of variance one."""
    return rng.standard_t(4, shape) / math.sqrt(2)


def skewed(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Skewness 0.3; that of networks is below 0.2."""
    return (rng.gamma(44.0, size=shape) - 44) / math.sqrt(44)


def made_up(
    rng: np.random.Generator,
    *,
    gap: float = 0.0,
    closing: float = 0.0,
    power: float = 1.0,
    noise: Noise = normal,
    count: int = 12,
    blocks: int = 8,
    family: str = "test error, no step",
) -> list[Finding]:
    """Settings of very different noise, with a gap that stays and gaps that close as d^{-power}."""
    problem = Problem(activation="tanh", teacher="sin", width=1.0)
    plan = Plan(SIZES, blocks, 4)
    findings = []
    for number in range(count):
        spread = 0.03 * math.exp(0.6 * rng.standard_normal())
        own = closing * (1 + rng.standard_normal())
        closes = np.array([[own * (SIZES[1] / d) ** power] for d in SIZES])
        simulated = 1.0 + gap + closes + spread * noise(rng, (2, blocks))
        findings.append(
            Finding(
                setting=Setting(number, family, problem),
                plan=plan,
                theory=np.ones(2),
                simulated=simulated,
                residual=0.0,
                numerics=math.nan,
            )
        )
    return findings


def group(findings: list[Finding], level: float = 1e-4) -> Group:
    return Group("made up", tuple(findings), level)


# The tests of a group --------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.5, 0.8, 1.0])
def test_gaps_that_close_pass_and_their_power_is_found(power: float) -> None:
    rng = np.random.default_rng(3)
    found = group(made_up(rng, closing=0.04, power=power, blocks=40))
    assert found.passed
    assert found.power == pytest.approx(power, abs=0.06)
    low, high = found.power_range
    assert 0.5 <= low <= found.power <= high <= 1.0


@pytest.mark.parametrize("gap", [0.03, -0.03])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_a_gap_that_stays_is_found(gap: float, power: float) -> None:
    rng = np.random.default_rng(5)
    found = group(made_up(rng, gap=gap, closing=0.003, power=power, blocks=40))
    assert not found.passed
    assert found.error == pytest.approx(gap, abs=4 * found.standard_error)
    assert found.standard_error < 0.006


@pytest.mark.parametrize("noise", [normal, heavy, skewed])
@pytest.mark.parametrize(("closing", "power"), [(0.0, 0.5), (0.005, 0.5), (0.005, 1.0)])
def test_false_alarms_are_as_rare_as_stated(noise: Noise, closing: float, power: float) -> None:
    """150 families without an error: p-values below 1 % in 1 % of them, within three errors."""
    rng = np.random.default_rng(11)
    groups = [group(made_up(rng, closing=closing, power=power, noise=noise)) for _ in range(150)]
    most = 0.01 + 3 * math.sqrt(0.01 * 0.99 / len(groups))
    assert np.mean([g.p_value() < 0.01 for g in groups]) <= most
    assert np.mean([g.kolmogorov < 0.01 for g in groups]) <= most


def test_what_is_allowed_is_what_would_pass() -> None:
    """A theory that is off by more than `allowed` fails, one that is off by less does not."""
    findings = made_up(np.random.default_rng(7), closing=0.003, blocks=40)
    found = group(findings)
    low, high = found.allowed
    assert low < 0 < high
    assert found.detectable < 0.03

    def with_theory(factor: float) -> Group:
        return group([replace(f, theory=f.theory * factor) for f in findings])

    # theory × f turns a gap g into (1 + g)/f − 1
    for end in (low, high):
        assert with_theory(1 + 0.9 * end).p_value() > found.level
        assert with_theory(1 + 1.1 * end).p_value() <= found.level


def test_errors_of_both_signs_are_found() -> None:
    rng = np.random.default_rng(2)
    found = group(made_up(rng, gap=0.06, blocks=20) + made_up(rng, gap=-0.06, blocks=20))
    assert abs(found.error) < 0.03
    assert not found.passed


def test_t_is_that_of_the_contrast() -> None:
    findings = made_up(np.random.default_rng(0), closing=0.02)
    found = group(findings)
    for finding, t, u in zip(findings, found.t, found.uniform):
        contrast = 6**found.power * finding.gaps[1] - finding.gaps[0]
        expected = stats.ttest_1samp(contrast, 0.0)
        assert t == pytest.approx(expected.statistic)
        assert 2 * min(u, 1 - u) == pytest.approx(expected.pvalue)


def test_a_precise_setting_is_not_drowned_by_a_noisy_one() -> None:
    """Equal weights would have ten times the standard error."""
    rng = np.random.default_rng(4)
    calm = made_up(rng, count=6, blocks=20)
    wild = made_up(rng, count=6, blocks=20, noise=lambda r, s: 20 * r.standard_normal(s))
    alone, together = group(calm), group(calm + wild)
    assert together.standard_error < 1.6 * alone.standard_error


# The certificate -------------------------------------------------------------------------------


def certificate(gap: float, **options: float) -> Certificate:
    rng = np.random.default_rng(3)
    return Certificate(tuple(made_up(rng, gap=gap, blocks=40, **options)), "full", 0)  # type: ignore[arg-type]


def test_a_failing_family_is_named() -> None:
    assert certificate(0.0).passed
    found = certificate(0.03)
    assert not found.passed
    assert found.exceptions[0].startswith("Test error, no step: fails. An error of +")


def test_a_theory_that_raises_does_not_pass() -> None:
    right = certificate(0.0)
    first = right.findings[0]
    nothing = np.full((2, 40), np.nan)
    broken = replace(first, theory=nothing[:, 0], simulated=nothing, failure="No")
    found = Certificate((broken, *right.findings[1:]), "full", 0)
    assert not found.passed
    assert "theory raised No" in found.exceptions[0]


def test_an_empty_certificate_does_not_pass() -> None:
    violated = tuple(replace(f, violated=("an assumption",)) for f in certificate(0.0).findings)
    found = Certificate(violated, "full", 0)
    assert not found.groups
    assert not found.passed
    assert "an assumption" in found.exceptions[0]


def design(
    count: int, *, seed: int = 0, sizes: Sequence[int], families: Sequence[str]
) -> list[Setting]:
    """The first settings, the families in turn."""
    names = [families[number % len(families)] for number in range(count)]
    return [draw(number, name, seed=seed, sizes=sizes)[0] for number, name in enumerate(names)]


def test_the_design_is_seeded_and_nested() -> None:
    few = design(3, sizes=(20, 40), families=CHEAP)
    more = design(6, sizes=(20, 40), families=CHEAP)
    other = design(3, seed=1, sizes=(20, 40), families=CHEAP)
    assert few == more[:3]
    assert [s.problem for s in few] != [s.problem for s in other]
    assert [s.family for s in few] == list(CHEAP)
    seeds = [seed for setting in more for seed in setting.seeds(50)]
    assert len(set(seeds)) == len(seeds)


def test_the_full_design_covers_the_matrix() -> None:
    full = SCALES["full"]
    assert full.settings * len(full.families) >= 300
    drawn = [
        setting.problem
        for family in ("test error, small step, limit", "weights' spike, several small steps")
        for setting in design(40, sizes=full.sizes, families=[family])
    ]
    assert len({p.activation for p in drawn}) == 7
    assert len({p.teacher.link.canonical for p in drawn}) == 7  # type: ignore[attr-defined]
    assert len({p.init.second_layer for p in drawn}) == 4
    assert {p.init.weights for p in drawn} == {"gaussian", "sphere"}
    assert {step.batch for p in drawn for step in p.steps} == {"fresh", "previous"}
    assert min(p.width for p in drawn) < 0.6 < 1.8 < max(p.width for p in drawn)


def test_a_certificate_is_written_and_read_again(tmp_path: Path) -> None:
    found = certify(TINY, families=CHEAP)
    assert found.passed, found.exceptions
    assert found.networks == sum(f.plan.networks for f in found.findings)
    for finding in found.findings:
        assert finding.residual < 1e-8
        # Spectra state the error of their edges and spikes, which are solved at one resolution.
        assert not finding.numerics > (1e-3 if "spike" in finding.setting.family else 1e-6)
    report, page = found.save(tmp_path)
    data = json.loads(report.read_text(encoding="utf-8"))
    assert data["passed"] is True
    assert [group["name"] for group in data["groups"]] == list(CHEAP)
    text = page.read_text(encoding="utf-8")
    assert all(group.name in html.unescape(text) for group in found.groups)
    assert "src=" not in text  # nothing to load
    assert "href=" not in text
    again = recertify(report)
    assert again.uniform == pytest.approx(found.uniform, abs=1e-4)


def test_what_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "networks.sqlite"
    monkeypatch.setattr("giantsteps.campaign._run.SAVE", 0.0)
    whole = certify(TINY, families=CHEAP)

    def stop(done: int, failed: int, total: int) -> None:
        if total == whole.networks and done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        certify(TINY, families=CHEAP, store=store, progress=stop)
    seen: list[tuple[int, int, int]] = []
    resumed = certify(TINY, families=CHEAP, store=store, progress=lambda *n: seen.append(n))
    networks = [done for done, _, total in seen if total == whole.networks]
    assert 20 <= networks[0] < networks[-1] == whole.networks
    assert resumed.uniform == pytest.approx(whole.uniform, rel=1e-6)
    seen.clear()
    certify(TINY, families=CHEAP, store=store, progress=lambda *n: seen.append(n))
    assert [done for done, _, total in seen if total == whole.networks] == [whole.networks]


def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a store", encoding="utf-8")
    with pytest.raises(StoreError, match="a file of another kind"):
        certify(TINY, families=CHEAP, store=file)
    assert file.read_text(encoding="utf-8") == "not a store"


def test_workers_give_the_same_numbers() -> None:
    alone = certify(TINY, families=CHEAP[:1])
    shared = certify(TINY, families=CHEAP[:1], workers=2)
    assert shared.uniform == pytest.approx(alone.uniform, rel=1e-9)


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem, match="short"):
        certify("long")
    with pytest.raises(InvalidProblem, match="gradient's spike"):
        certify(families=("gradients",))
    file = tmp_path / "other.json"
    file.write_text("[]", encoding="utf-8")
    with pytest.raises(InvalidProblem, match=r"certificate\.json"):
        recertify(file)
    assert set(CHEAP) < set(FAMILIES)


def test_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from giantsteps.cli._certify import command

    monkeypatch.setattr(package, "certify", lambda *a, **k: certificate(0.03))
    monkeypatch.setattr(package, "recertify", lambda *a, **k: certificate(0.0))
    result = CliRunner().invoke(command, ["-o", str(tmp_path)], standalone_mode=False)
    assert result.return_value == 3
    assert "certificate: failed" in result.output
    assert (tmp_path / "certificate.html").exists()
    again = ["-o", str(tmp_path), "--again", str(tmp_path / "certificate.json")]
    result = CliRunner().invoke(command, again, standalone_mode=False)
    assert "add --overwrite" in str(result.exception)
    both = CliRunner().invoke(command, ["--short", "--full"], standalone_mode=False)
    assert "--short and --full cannot be combined" in str(both.exception)
    result = CliRunner().invoke(command, [*again, "--overwrite"], standalone_mode=False)
    assert result.return_value == 0
    assert "found from" in result.output


def test_networks_on_another_device_are_the_same() -> None:
    """Theory stays on the processors; the verdict does not depend on where networks are."""
    pytest.importorskip("torch")
    names = ("degrees of freedom", "training loss")
    here = certify(TINY, families=names)
    there = certify(TINY, families=names, device="torch")
    assert there.uniform == pytest.approx(here.uniform, abs=1e-6)


def test_a_gpu_has_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a GPU, whose place PyTorch takes here, and a family that needs the processors."""
    pytest.importorskip("torch")
    names = ("degrees of freedom", "test error, given weights")
    tiny = Scale(settings=1, sizes=(20, 40), blocks=2, small=1)
    here = certify(tiny, families=names)
    crews = []

    def threads(
        executor: str | Workers, workers: int, device: str | None = None
    ) -> tuple[Workers, bool]:
        if isinstance(executor, Workers):
            return executor, False
        crews.append((executor, workers, device))
        return Workers(ThreadPoolExecutor(1), 1), True

    monkeypatch.setattr("giantsteps.campaign.gpus", lambda device: ("0",) if device else ())
    monkeypatch.setattr("giantsteps.campaign.as_workers", threads)
    monkeypatch.setattr("giantsteps.campaign._run.as_workers", threads)
    there = certify(tiny, families=names, device="torch", workers=2)
    assert crews == [("processes", 2, None), ("processes", 3, "torch")]
    assert [f.setting for f in there.findings] == [f.setting for f in here.findings]
    assert there.uniform == pytest.approx(here.uniform, abs=1e-6)


def test_a_setting_gets_the_networks_that_its_error_needs() -> None:
    scale = Scale(1, (100, 4000), 6, 2, error=0.003, most=40, points=500)
    calm, usual, wild = (
        scale.plan(name)
        for name in ("degrees of freedom", "test error, no step", "kernel and labels, small step")
    )
    assert calm.blocks == 6
    assert wild.blocks == 40
    spread = FAMILIES["test error, no step"].spread / 2  # at d = 4000
    assert spread / usual.blocks**0.5 <= 0.003 < spread / (usual.blocks - 1) ** 0.5
    assert usual.points == 500


def test_a_group_states_theory_minus_simulation_with_its_trend() -> None:
    rng = np.random.default_rng(0)
    right = Group("test error, no step", tuple(made_up(rng)), 1e-4)
    assert right.trend == "none seen"
    wrong = Group("test error, no step", tuple(made_up(rng, gap=0.2)), 1e-4)
    assert wrong.trend == "stays"
    fading = Group("test error, no step", tuple(made_up(rng, closing=0.08)), 1e-4)
    assert fading.trend.startswith("closes as d^-")
    (small, _), (large, error) = wrong.to_data()["theory_minus_simulation"]
    assert small < 0  # the theory is too low
    assert abs(large + 0.2) < 5 * error


def test_every_family_can_be_drawn_without_asking_theory() -> None:
    """Each problem has what its family says."""
    from giantsteps.comparison.certify._design import _draw

    rng = np.random.default_rng(0)
    drawn = {name: [_draw(rng, family) for _ in range(20)] for name, family in FAMILIES.items()}
    one = drawn["test error, sign step"]
    assert {step.rule for p in one for step in p.steps} == {"sign"}
    assert {p.init.output for p in drawn["test error, unscaled output"]} == {"unscaled"}
    assert {step.batch for p in drawn["test error, two fresh steps"] for step in p.steps} == {
        "fresh"
    }
    again = drawn["test error, two steps on one batch"]
    assert all([step.batch for step in p.steps] == ["fresh", "previous"] for p in again)
    losses = {step.loss for p in drawn["test error, other losses"] for step in p.steps}
    assert losses == {"logistic", "hinge", "huber"}
    everything = [p for some in drawn.values() for p in some]
    assert {"relu", "softplus", "gelu"} <= {
        word
        for p in everything
        for word in ("relu", "softplus", "gelu")
        if word in p.activation.canonical
    }
