"""The laws of the inputs by their names in files."""

from __future__ import annotations

from giantsteps.problem._covariance import Covariance, SpikedCovariance
from giantsteps.problem._inputs import Inputs, Isotropic
from giantsteps.problem._part import as_law
from giantsteps.problem._power_law import PowerLaw

_LAWS: dict[str, type[Inputs]] = {
    law.law: law for law in (Isotropic, Covariance, PowerLaw, SpikedCovariance)
}


#: Names of the laws.
INPUTS = tuple(_LAWS)


def as_inputs(spec: object, field: str = "inputs") -> Inputs:
    """Return the law that ``spec`` names: a law, its name, or ``{"law": name, ...parameters}``."""
    return as_law(spec, Inputs, _LAWS, field, "a law of the inputs")
