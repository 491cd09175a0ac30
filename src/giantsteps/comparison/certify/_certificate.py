"""A certificate: all findings, by family, with the tests that they pass or fail."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import minimize_scalar

from giantsteps.comparison.certify._finding import Finding

__all__ = ["Certificate", "Group"]

#: A family fails if one of its tests would do so by chance this rarely …
LEVEL = 1e-3
#: … and a setting is listed if it would among so many.
LISTED = 0.05


@dataclass(frozen=True, eq=False)
class Group:
    """Findings that one fit describes.

    Attributes
    ----------
    name : str
        Of the family, or the assumption that is left.
    findings : tuple of Finding
        Its settings.

    Examples
    --------
    >>> from giantsteps.comparison.certify import certify
    >>> found = certify(families=["weights, exponent 0"], settings=3, sizes=(20, 40), seeds=2)
    >>> group, = found.groups
    >>> isinstance(group, Group), 0.5 <= group.power <= 1, len(group.t)
    (True, True, 3)
    """

    name: str
    findings: tuple[Finding, ...]

    @cached_property
    def power(self) -> float:
        """p of gap ∝ d^{-p}, free in [1/2, 1]: the most likely one, t being Student's."""
        if not self.findings:
            return 1.0
        freedom = self.findings[0].simulated.shape[1] - 1

        def surprise(p: float) -> float:
            return -float(np.sum(stats.t.logpdf([f.t(p) for f in self.findings], freedom)))

        found = minimize_scalar(surprise, bounds=(0.5, 1.0), method="bounded")
        return float(found.x)

    @cached_property
    def t(self) -> list[float]:
        """Student t of each finding, with the power of the group."""
        return [finding.t(self.power) for finding in self.findings]

    @cached_property
    def uniform(self) -> list[float]:
        """Their Student cdf."""
        return [finding.uniform(self.power) for finding in self.findings]

    @property
    def kolmogorov(self) -> float:
        """p-value of the Kolmogorov–Smirnov test against the uniform law."""
        return float(stats.kstest(self.uniform, "uniform").pvalue) if self.findings else 1.0

    @property
    def shift(self) -> float:
        """Two-sided p-value of a common shift: Σ Φ⁻¹(u)/√n, which a wrong factor moves."""
        if not self.findings:
            return 1.0
        z = stats.norm.ppf(np.clip(self.uniform, 1e-12, 1 - 1e-12))
        return float(2 * stats.norm.sf(abs(np.sum(z)) / math.sqrt(len(z))))

    @property
    def passed(self) -> bool:
        """Whether both tests are unsurprising."""
        return min(self.kolmogorov, self.shift) > LEVEL

    @property
    def median_gap(self) -> float:
        """Median of the relative gaps at the largest size."""
        return float(np.median([f.gap for f in self.findings])) if self.findings else 0.0

    @property
    def resolution(self) -> float:
        """Three standard errors of the mean relative gap at the largest size, over all settings."""
        if not self.findings:
            return math.nan
        return float(np.sqrt(np.sum([f.resolution**2 for f in self.findings]))) / len(self.findings)

    def to_data(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "settings": len(self.findings),
            "power": self.power,
            "kolmogorov_smirnov_p": self.kolmogorov,
            "shift_p": self.shift,
            "median_gap": self.median_gap,
            "resolution": self.resolution,
            "passed": self.passed,
        }


@dataclass(frozen=True, eq=False)
class Certificate:
    """The agreement matrix and its verdict.

    Attributes
    ----------
    findings : tuple of Finding
        One a setting, in the order of the design.
    scale : str
        ``"short"`` or ``"full"``.
    sizes : tuple of int
        d₁ < d₂.
    seeds : int
        Networks a setting and size.
    seed : int
        Of the design.

    Examples
    --------
    >>> from giantsteps.comparison.certify import certify
    >>> found = certify(families=["weights, exponent 0"], settings=2, sizes=(20, 40), seeds=2)
    >>> isinstance(found, Certificate), found.sizes, len(found.findings)
    (True, (20, 40), 2)
    >>> sorted(found.to_data())[:4]
    ['approximate', 'design_seed', 'exceptions', 'giantsteps']
    """

    findings: tuple[Finding, ...]
    scale: str
    sizes: tuple[int, ...]
    seeds: int
    seed: int

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Families, with the settings where the theory claims to be exact."""
        names = dict.fromkeys(f.setting.family for f in self.findings)
        return tuple(
            Group(name, tuple(f for f in self.findings if f.setting.family == name and f.exact))
            for name in names
        )

    @cached_property
    def approximate(self) -> tuple[Group, ...]:
        """By assumption: the settings that leave it."""
        texts = dict.fromkeys(text for f in self.findings for text in f.violated)
        return tuple(
            Group(text, tuple(f for f in self.findings if text in f.violated)) for text in texts
        )

    @cached_property
    def all(self) -> float:
        """p-value of the Kolmogorov–Smirnov test of all exact settings together."""
        u = [value for group in self.groups for value in group.uniform]
        return float(stats.kstest(u, "uniform").pvalue) if u else 1.0

    @property
    def passed(self) -> bool:
        """Whether every family is uniform where the theory claims to be exact."""
        return self.all > LEVEL and all(group.passed for group in self.groups)

    @cached_property
    def exceptions(self) -> tuple[str, ...]:
        """In words: where the theory does not hold, and by how much."""
        lines = [
            f"setting {f.setting.number} ({f.setting.family}): theory raised {f.failure}"
            for f in self.findings
            if f.failure
        ]
        for group in self.groups:
            if not group.passed:
                lines.append(
                    f"{group.name}: not uniform (p = {min(group.kolmogorov, group.shift):.2g}); "
                    f"median gap {100 * group.median_gap:+.2g} % at d = {self.sizes[-1]}"
                )
        for group in self.approximate:
            lines.append(
                f"approximate by its own account, {len(group.findings)} settings that leave "
                f"“{group.name}”: median gap {100 * group.median_gap:+.2g} % (resolution "
                f"{100 * group.resolution:.2g} %), "
                + ("consistent with" if group.passed else "more than")
                + " an effect of the size"
            )
        lines += self._single()
        for group in self.groups:
            if group.findings and abs(group.median_gap) > group.resolution:
                lines.append(
                    f"{group.name}: finite size, median gap {100 * group.median_gap:+.2g} % at "
                    f"d = {self.sizes[-1]}, closing as d^-{group.power:.2g}"
                )
        return tuple(lines)

    def _single(self) -> list[str]:
        """Settings too far off for chance, among all of them."""
        level = LISTED / max(len(self.findings), 1)
        lines = []
        for group in self.groups:
            for finding, u in zip(group.findings, group.uniform):
                if 2 * min(u, 1 - u) < level:
                    setting = finding.setting
                    lines.append(
                        f"setting {setting.number} ({setting.family}, {setting.quantity}): "
                        f"t = {finding.t(group.power):+.1f}, gap {100 * finding.gap:+.2g} %"
                    )
        return lines

    def to_data(self) -> dict[str, Any]:
        """As plain data, every setting included."""
        from giantsteps import __version__
        from giantsteps.answers._export import plain

        power = {group.name: group.power for group in self.groups}
        return {
            "giantsteps": __version__,
            "scale": self.scale,
            "sizes": list(self.sizes),
            "seeds": self.seeds,
            "design_seed": self.seed,
            "passed": self.passed,
            "kolmogorov_smirnov_p": self.all,
            "groups": [group.to_data() for group in self.groups],
            "approximate": [group.to_data() for group in self.approximate],
            "exceptions": list(self.exceptions),
            "settings": [
                {
                    "number": f.setting.number,
                    "family": f.setting.family,
                    "quantity": f.setting.quantity,
                    "problem": f.setting.problem.to_data(),
                    "theory": [plain(v) for v in f.theory],
                    "simulation": [float(v) for v in f.simulated.mean(axis=1)],
                    "gap": f.gap,
                    "resolution": f.resolution,
                    "t": f.t(power[f.setting.family]),
                    "uniform": f.uniform(power[f.setting.family]),
                    "residual": f.residual,
                    "quadrature": None if math.isnan(f.quadrature) else f.quadrature,
                    "violated": list(f.violated),
                    "failure": f.failure,
                }
                for f in self.findings
            ],
        }

    def save(self, folder: str | Path) -> list[Path]:
        """Write ``certificate.json`` and ``certificate.html``."""
        from giantsteps.comparison.certify._report import html, json_text

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        files = {"certificate.json": json_text(self), "certificate.html": html(self)}
        for name, text in files.items():
            (place / name).write_text(text, encoding="utf-8")
        return [place / name for name in files]

    def _title(self) -> str:
        verdict = "passed" if self.passed else "failed"
        return f"Certificate, {self.scale}: {verdict}, {len(self.findings)} settings, d = " + (
            " and ".join(map(str, self.sizes))
        )

    def __repr__(self) -> str:
        lines = [
            f"  {group.name}: {len(group.findings)} settings, "
            f"{'passed' if group.passed else 'failed'}"
            for group in self.groups
        ]
        return "\n".join([self._title(), *lines, *(f"  {line}" for line in self.exceptions)])

    def _repr_html_(self) -> str:
        """The families and the exceptions, for notebooks."""
        from giantsteps.comparison.certify._report import families

        lines = "".join(f"<li>{escape(line)}</li>" for line in self.exceptions)
        table = families(self).replace("<table>", f"<table><caption>{self._title()}</caption>", 1)
        return f"{table}<ul>{lines}</ul>" if lines else table
