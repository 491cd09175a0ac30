r"""Learning rates of PyTorch in the units of this library, and back.

A network with N neurons in a parametrisation

.. math:: f(x) = m \sum_j v_j\, σ(c\,⟨u_j, x⟩), \qquad
          \operatorname{sd} v_j = s, \qquad \operatorname{sd}\, c\,⟨u_j, x⟩ = q

stores u and v; c, m, s and q are those of the table of `rate_of_learning_rate`. Let κ be the factor
of the loss, that is −∂ℓ/∂f = κ(y − f), and ``lr`` the learning rate that the optimiser applies to
u. With w_j = c u_j/q, whose pre-activations have variance one, σ_q(z) = σ(qz), and A_j = v_j/s, a
step of SGD moves

.. math:: Δw_j = \frac cq\, \mathrm{lr}\, κ\, m\, v_j\, c\; n^{-1} \sum_i r_i\,
                 σ'(c ⟨u_j, x_i⟩)\, x_i
               = η\, \frac{A_j}{\sqrt N}\; n^{-1} \sum_i r_i\, σ_q'(⟨w_j, x_i⟩)\, x_i,

which is the step of theory §0 with

.. math:: η = \mathrm{lr}\; κ\, \sqrt N\, \frac{m\, s\, c^2}{q^2}, \qquad
          \tilde η = η/\sqrt N, \qquad \mathtt{rate} = η\, N^{-\mathtt{exponent}} .

The first step of Adam moves each entry of u by ``lr``, whatever the loss: that is the rule
``"sign"`` with η̃ = lr √d c/q. The output at initialisation is m s √N times that of
``Init(output="unscaled")`` with A of variance one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from giantsteps.errors import InvalidProblem
from giantsteps.problem._checks import choice, integer, number
from giantsteps.problem._step import Step


@dataclass(frozen=True)
class _Scales:
    """c, m, s, q and the factor of lr for SGD."""

    inner: float
    outer: float
    second_layer: float
    preactivation: float
    boost: float = 1.0


#: Name → scales of N neurons, d inputs and the base width.
PARAMETRIZATIONS: dict[str, Callable[[int, int, float], _Scales]] = {
    "pytorch": lambda n, d, base: _Scales(1.0, 1.0, (3 * n) ** -0.5, 3**-0.5),
    "standard": lambda n, d, base: _Scales(1.0, 1.0, n**-0.5, 1.0),
    "he": lambda n, d, base: _Scales(1.0, 1.0, (2 / n) ** 0.5, 2**0.5),
    "ntk": lambda n, d, base: _Scales(d**-0.5, n**-0.5, 1.0, 1.0),
    "mean-field": lambda n, d, base: _Scales(1.0, 1 / n, 1.0, 1.0),
    "mup": lambda n, d, base: _Scales(1.0, 1.0, math.sqrt(base) / n, 1.0, n / base),
}
#: Loss → (κ, loss of `Step`): means over the batch. ``"mse"`` is nn.MSELoss, ``"logistic"``
#: nn.SoftMarginLoss, or nn.BCEWithLogitsLoss with labels 0 and 1 for −1 and 1.
LOSSES = {
    "mse": (2.0, "squared"),
    "half-mse": (1.0, "squared"),
    "logistic": (1.0, "logistic"),
    "hinge": (1.0, "hinge"),
    "huber": (1.0, "huber"),
}
OPTIMIZERS = {"sgd": "gradient", "adam": "sign", "signsgd": "sign"}
#: Powers of N that the movement of a network has between small and giant steps.
_HALFWAY = 0.25


@dataclass(frozen=True, kw_only=True)
class LearningRate:
    """A learning rate in the units of this library.

    Attributes
    ----------
    eta : float
        η = rate · N^exponent.
    rate, exponent : float
        As in `Step`.
    neurons : int
        N.
    rule, loss : str
        As in `Step`.
    decay : float
        As in `Step`: learning rate times weight decay.
    preactivation : float
        q: state the activation as σ(qx), such as ``"tanh(0.577*x)"``, where q is not one.
    output : float
        Output at initialisation over that of ``Init(output="unscaled")``; N^{-1/2} is ``"scaled"``.
    """

    eta: float
    rate: float
    exponent: float
    neurons: int
    rule: str = "gradient"
    loss: str = "squared"
    decay: float = 0.0
    preactivation: float = 1.0
    output: float = 1.0

    @property
    def movement(self) -> float:
        """η̃ = η/√N: about how far a neuron of norm one moves."""
        return self.eta / math.sqrt(self.neurons)

    @property
    def init_output(self) -> str:
        """The ``Init(output=...)`` whose output has the same size up to a number of order one."""
        return "scaled" if self.output < self.neurons**-_HALFWAY else "unscaled"

    def step(self, samples: float, batch: str = "fresh") -> Step:
        """Return the step with that many samples, n₀/d."""
        return Step(
            samples=samples,
            rate=self.rate,
            exponent=self.exponent,
            batch=batch,
            rule=self.rule,
            loss=self.loss,
            decay=self.decay,
        )


def rate_of_learning_rate(
    lr: float,
    *,
    neurons: int,
    d: int,
    parametrization: str = "pytorch",
    optimizer: str = "sgd",
    loss: str = "mse",
    weight_decay: float = 0.0,
    exponent: float | None = None,
    base_width: float = 1.0,
) -> LearningRate:
    r"""Translate a learning rate of PyTorch into ``rate`` and ``exponent``.

    .. math:: η = \mathrm{lr}\; κ\, \sqrt N\, m\, s\, c^2/q^2
              \quad\text{(SGD)}, \qquad
              η = \mathrm{lr}\, \sqrt{dN}\, c/q \quad\text{(the first step of Adam)}

    ======  ===================  ===============================================================
    symbol  argument             meaning
    ======  ===================  ===============================================================
    lr      ``lr``               learning rate that is given to the optimiser
    N, d    ``neurons``, ``d``   width of the hidden layer, dimension of the inputs
    \       ``parametrization``  ``"pytorch"`` (defaults of nn.Linear), ``"standard"``, ``"he"``,
                                 ``"ntk"``, ``"mean-field"`` or ``"mup"``
    \       ``optimizer``        ``"sgd"``, ``"adam"`` or ``"signsgd"``
    κ       ``loss``             ``"mse"`` (2), ``"half-mse"``, ``"logistic"``, ``"hinge"`` or
                                 ``"huber"`` (1), means over the batch
    ======  ===================  ===============================================================

    The scales of each parametrisation:

    ===============  ========  ========  ===========  ========  =====================
    parametrisation  c         m         s            q         lr of the first layer
    ===============  ========  ========  ===========  ========  =====================
    "pytorch"        1         1         (3N)^{-1/2}  3^{-1/2}  lr
    "standard"       1         1         N^{-1/2}     1         lr
    "he"             1         1         (2/N)^{1/2}  2^{1/2}   lr
    "ntk"            d^{-1/2}  N^{-1/2}  1            1         lr
    "mean-field"     1         1/N       1            1         lr
    "mup"            1         1         1/N          1         SGD: N lr; Adam: lr
    ===============  ========  ========  ===========  ========  =====================

    ``"pytorch"`` is the default initialisation of ``nn.Linear``, uniform on ±1/√fan_in;
    ``"standard"`` has variance 1/fan_in and ``"he"`` 2/fan_in (``nn.init.kaiming_normal_``). For
    ``"mup"`` with a base width B, s = √B/N (what the readout's multiplier leaves), and the first
    layer has N/B times lr.

    Parameters
    ----------
    lr, neurons, d, parametrization, optimizer, loss
        As above. Inputs are standardised; biases are not part of the model.
    weight_decay : float
        That of the optimiser (for Adam, that of AdamW).
    exponent : float, optional
        The exponent to express η with. By default 0 or 1/2, whichever gives a rate closer to one.
    base_width : float
        Of ``"mup"``: the width at which it is the standard parametrisation.

    Returns
    -------
    LearningRate
        ``rate``, ``exponent``, ``movement``, and ``step(samples)`` for a problem.

    References
    ----------
    theory §0.

    Examples
    --------
    The default network of PyTorch with learning rate 0.1 takes a small step; µP takes a giant one.

    >>> found = rate_of_learning_rate(0.1, neurons=4096, d=1024)
    >>> round(found.rate, 4), found.exponent
    (0.3464, 0.0)
    >>> found = rate_of_learning_rate(0.1, neurons=4096, d=1024, parametrization="mup")
    >>> found.rate, found.exponent
    (0.2, 0.5)
    """
    lr = number(lr, "lr", "a finite number >= 0", lower=0.0)
    neurons, d = _sizes(neurons, d)
    scales = _scales(parametrization, neurons, d, base_width)
    factor, name = LOSSES[choice(loss, "loss", LOSSES)]
    rule = OPTIMIZERS[choice(optimizer, "optimizer", OPTIMIZERS)]
    decay = number(weight_decay, "weight_decay", "a finite number >= 0", lower=0.0)
    applied = lr * (scales.boost if rule == "gradient" else 1.0)
    if not applied * decay < 1:
        raise InvalidProblem(
            "weight_decay",
            weight_decay,
            f"below {1 / applied:g}: learning rate times weight decay must be below one",
        )
    eta = lr * _eta(scales, rule, factor, neurons, d)
    if exponent is None:
        exponent = 0.5 if eta > neurons**_HALFWAY else 0.0
    exponent = number(exponent, "exponent", "a number in [0, 1/2]", lower=0.0, upper=0.5)
    return LearningRate(
        eta=eta,
        rate=eta / neurons**exponent,
        exponent=exponent,
        neurons=neurons,
        rule=rule,
        loss=name,
        decay=applied * decay,
        preactivation=scales.preactivation,
        output=scales.outer * scales.second_layer * math.sqrt(neurons),
    )


def learning_rate_of_rate(
    rate: float,
    exponent: float,
    *,
    neurons: int,
    d: int,
    parametrization: str = "pytorch",
    optimizer: str = "sgd",
    loss: str = "mse",
    base_width: float = 1.0,
) -> float:
    r"""Translate ``rate`` and ``exponent`` into a learning rate of PyTorch.

    .. math:: \mathrm{lr} = \mathtt{rate} · N^{\mathtt{exponent}} \Big/
              \bigl(κ\, \sqrt N\, m\, s\, c^2/q^2\bigr)

    The inverse of `rate_of_learning_rate`, which states κ, m, s, c and q.

    ======  ============  ==========================
    symbol  argument      meaning
    ======  ============  ==========================
    rate    ``rate``      as in `Step`
    \       ``exponent``  as in `Step`
    N       ``neurons``   width of the hidden layer
    ======  ============  ==========================

    Parameters
    ----------
    rate, exponent, neurons
        As above.
    d, parametrization, optimizer, loss, base_width
        As in `rate_of_learning_rate`.

    Returns
    -------
    float
        The learning rate to give to the optimiser.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> round(learning_rate_of_rate(1.0, 0.5, neurons=4096, d=1024, parametrization="mup"), 9)
    0.5
    """
    rate = number(rate, "rate", "a finite number >= 0", lower=0.0)
    exponent = number(exponent, "exponent", "a number in [0, 1/2]", lower=0.0, upper=0.5)
    neurons, d = _sizes(neurons, d)
    scales = _scales(parametrization, neurons, d, base_width)
    factor, _ = LOSSES[choice(loss, "loss", LOSSES)]
    rule = OPTIMIZERS[choice(optimizer, "optimizer", OPTIMIZERS)]
    return rate * neurons**exponent / _eta(scales, rule, factor, neurons, d)


def _sizes(neurons: Any, d: Any) -> tuple[int, int]:
    return (
        integer(neurons, "neurons", "an integer >= 1 (the width N of the hidden layer)"),
        integer(d, "d", "an integer >= 1 (the dimension of the inputs)"),
    )


def _scales(parametrization: str, neurons: int, d: int, base_width: float) -> _Scales:
    base = number(base_width, "base_width", "a positive number", lower=0.0, open_below=True)
    name = choice(parametrization, "parametrization", PARAMETRIZATIONS)
    if base != 1 and name != "mup":
        raise InvalidProblem("base_width", base_width, 'left out: only "mup" has one')
    return PARAMETRIZATIONS[name](neurons, d, base)


def _eta(scales: _Scales, rule: str, factor: float, neurons: int, d: int) -> float:
    """η of a learning rate of one."""
    c, q = scales.inner, scales.preactivation
    if rule == "sign":
        return math.sqrt(d * neurons) * c / q
    strength = scales.outer * scales.second_layer * c**2 / q**2
    return scales.boost * factor * math.sqrt(neurons) * strength
