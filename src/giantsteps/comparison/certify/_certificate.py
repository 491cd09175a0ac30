"""A certificate: all findings, by family, with the tests that they pass or fail."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from giantsteps.answers import written
from giantsteps.campaign import html_table
from giantsteps.comparison.certify._finding import Finding
from giantsteps.comparison.certify._group import SEEN, Group

#: Chance that a certificate fails though the theory is right; all its tests share it.
FALSE_ALARMS = 0.01
#: A setting is listed if it would be so by chance this rarely among all.
LISTED = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """The agreement matrix and its verdict.

    Attributes
    ----------
    findings : tuple of Finding
    scale : str
        Of `SCALES`.
    seed : int
        Of the design.
    """

    findings: tuple[Finding, ...]
    scale: str
    seed: int

    @property
    def sizes(self) -> tuple[int, int]:
        """d₁ and d₂."""
        return self.findings[0].plan.sizes

    @property
    def networks(self) -> int:
        """How many were simulated."""
        return sum(f.plan.networks for f in self.findings if not f.failure)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Families where the theory claims to be exact."""
        return self._grouped([f for f in self.findings if f.exact])

    @cached_property
    def approximate(self) -> tuple[Group, ...]:
        """Families where it does not."""
        return self._grouped([f for f in self.findings if f.violated])

    def _grouped(self, findings: list[Finding]) -> tuple[Group, ...]:
        names = dict.fromkeys(f.setting.family for f in findings)
        return tuple(
            Group(name, tuple(f for f in findings if f.setting.family == name), self.level)
            for name in names
        )

    @cached_property
    def level(self) -> float:
        """A test fails below this p-value: two a family, and one of all together."""
        families = {f.setting.family for f in self.findings if f.exact}
        return FALSE_ALARMS / (2 * len(families) + 1)

    @cached_property
    def uniform(self) -> np.ndarray:
        """Student cdf of the t of every setting where the theory claims to be exact."""
        return np.concatenate([group.uniform for group in self.groups] or [np.empty(0)])

    @cached_property
    def kolmogorov(self) -> float:
        """p-value of the Kolmogorov–Smirnov test of all of them together."""
        return float(stats.kstest(self.uniform, "uniform").pvalue) if self.groups else 1.0

    @property
    def failures(self) -> tuple[Finding, ...]:
        """Settings on which the theory raised."""
        return tuple(f for f in self.findings if f.failure)

    @property
    def passed(self) -> bool:
        """Whether the theory answers everywhere, and every family passes."""
        return (
            bool(self.groups)
            and not self.failures
            and self.kolmogorov > self.level
            and all(group.passed for group in self.groups)
        )

    @property
    def detectable(self) -> float:
        """The smallest error of an equation that is found, whichever family it is in."""
        return max((group.detectable for group in self.groups), default=math.inf)

    @cached_property
    def exceptions(self) -> tuple[str, ...]:
        """In words, where the theory does not hold, and by how much."""
        return (*self._raised(), *self._failed(), *self._approximate(), *self._sizes(),
                *self._single())  # fmt: skip

    def _raised(self) -> list[str]:
        return [
            f"Setting {f.setting.number} ({f.setting.family}): theory raised {f.failure}."
            for f in self.failures
        ]

    def _failed(self) -> list[str]:
        lines = [
            f"{_capital(group.name)}: fails. An error of {_percent(group.error)} "
            f"± {_percent(group.standard_error, False)} remains at d = ∞ (p-value "
            f"{group.p_value():.2g}; of uniformity {group.kolmogorov:.2g})."
            for group in self.groups
            if not group.passed
        ]
        if not self.kolmogorov > self.level:
            lines.append(f"All families together: not uniform (p-value {self.kolmogorov:.2g}).")
        return lines

    def _approximate(self) -> list[str]:
        lines = []
        for group in self.approximate:
            texts = "”, “".join(dict.fromkeys(t for f in group.findings for t in f.violated))
            apart = bool(group.findings[0].setting.kind.slow)
            gaps = sorted(f.gap for f in group.findings)
            left = f"{_percent(group.error)} ± {_percent(group.standard_error, False)}"
            lines.append(
                f"{_capital(group.name)}: "
                + ("kept apart" if apart else "stated to be approximate")
                + f", because it assumes: “{texts}”. "
                f"Gap {_percent(group.gap)} at d = {self.sizes[1]}, in single settings "
                f"from {_percent(gaps[0])} to {_percent(gaps[-1])}; "
                + (
                    "it does not close as a power of d in [1/2, 1]."
                    if group.p_value() <= self.level
                    else f"at d = ∞ {left}, which chance explains."
                )
            )
        return lines

    def _sizes(self) -> list[str]:
        return [
            f"{_capital(group.name)}: a finite-size effect, {_percent(group.gap)} at "
            f"d = {self.sizes[1]}, which closes as d^-{group.power:.2g}."
            for group in self.groups
            if group.passed and abs(group.gap) > SEEN * group.gap_error
        ]

    def _single(self) -> list[str]:
        """Settings too far off for chance, among all of them."""
        level = LISTED / max(len(self.uniform), 1)
        return [
            f"Setting {f.setting.number} ({f.setting.family}): t = {t:+.1f}, "
            f"gap {_percent(f.gap)} at d = {self.sizes[1]}."
            for group in self.groups
            for f, u, t in zip(group.findings, group.uniform, group.t)
            if 2 * min(u, 1 - u) < level
        ]

    # Files -------------------------------------------------------------------------------------

    def to_data(self) -> dict[str, Any]:
        """As plain data, every setting with its simulations included."""
        from giantsteps import __version__

        return {
            "giantsteps": __version__,
            "scale": self.scale,
            "design_seed": self.seed,
            "sizes": list(self.sizes),
            "networks": self.networks,
            "passed": self.passed,
            "kolmogorov_smirnov_p": self.kolmogorov,
            "level": self.level,
            "detectable": self.detectable,
            "groups": [group.to_data() for group in self.groups],
            "approximate": [group.to_data() for group in self.approximate],
            "exceptions": list(self.exceptions),
            "settings": [
                _row(f, *self.tested.get(f.setting.number, (None, None))) for f in self.findings
            ],
        }

    @cached_property
    def tested(self) -> dict[int, tuple[float, float]]:
        """Number of a setting → its t and u."""
        return {
            f.setting.number: (float(t), float(u))
            for group in (*self.approximate, *self.groups)
            for f, t, u in zip(group.findings, group.t, group.uniform)
        }

    def save(self, folder: str | Path) -> list[Path]:
        """Write ``certificate.json`` and ``certificate.html``."""
        from giantsteps.comparison.certify._report import html, json_text

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        files = {"certificate.json": json_text(self), "certificate.html": html(self)}
        for name, text in files.items():
            with written(place / name) as draft:
                draft.write_text(text, encoding="utf-8")
        return [place / name for name in files]

    def _title(self) -> str:
        verdict = "passed" if self.passed else "failed"
        return (
            f"Certificate, {self.scale}: {verdict}, {len(self.findings)} settings, "
            f"d = {self.sizes[0]} and {self.sizes[1]}"
        )

    def to_columns(self) -> dict[str, list[Any]]:
        """A table as columns: one row per family where the theory claims to be exact."""
        groups = self.groups
        return {
            "family": [group.name for group in groups],
            "settings": [len(group.findings) for group in groups],
            f"theory − simulation, d = {self.sizes[0]}": [_difference(g, 0) for g in groups],
            f"d = {self.sizes[1]}": [_difference(g, 1) for g in groups],
            "trend": [group.trend for group in groups],
            "left at d = ∞": [
                f"{100 * group.error:+.2f} ± {100 * group.standard_error:.2f} %" for group in groups
            ],
            "found from": [f"{100 * group.detectable:.1f} %" for group in groups],
            "p-value": [f"{group.p_value():.2g}" for group in groups],
            "KS": [f"{group.kolmogorov:.2g}" for group in groups],
            "verdict": ["passed" if group.passed else "failed" for group in groups],
        }

    def __repr__(self) -> str:
        lines = [
            f"  {group.name}: {_percent(group.error)} ± {_percent(group.standard_error, False)} "
            f"left, found from {_percent(group.detectable, False)}, "
            f"{'passed' if group.passed else 'failed'}"
            for group in self.groups
        ]
        return "\n".join([self._title(), *lines, *(f"  {line}" for line in self.exceptions)])

    def _repr_html_(self) -> str:
        """The families and the exceptions, for notebooks."""
        return html_table(self._title(), self.to_columns(), self.exceptions)


def _row(f: Finding, t: float | None, u: float | None) -> dict[str, Any]:
    s = f.setting
    return {
        "number": s.number,
        "family": s.family,
        "equation": s.kind.asked.equation,
        "quantity": s.kind.quantity,
        "problem": s.problem.to_data(),
        "plan": [*f.plan.sizes, f.plan.blocks, f.plan.small, f.plan.points],
        "theory": f.theory.tolist(),
        "simulation": f.simulated.tolist(),
        "gap": f.gap,
        "resolution": f.resolution,
        "t": t,
        "uniform": u,
        "residual": f.residual,
        "numerics": f.numerics,
        "violated": list(f.violated),
        "failure": f.failure,
    }


def _difference(group: Group, size: int) -> str:
    gap, error = group.gap_at(size)
    return f"{-100 * gap:+.2f} ± {100 * error:.2f} %"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _percent(value: float, sign: bool = True) -> str:
    return f"{100 * value:{'+' if sign else ''}.2g} %" if math.isfinite(value) else "–"
