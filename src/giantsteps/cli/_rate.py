"""``giantsteps rate``: learning rates of PyTorch in the units of this library, and back."""

from __future__ import annotations

import math
from typing import Any

import click

from ._output import exclusive, table, write_json

_PARAMETRIZATIONS = ("pytorch", "standard", "he", "ntk", "mean-field", "mup")
_LOSSES = ("mse", "half-mse", "logistic", "hinge", "huber")


@click.command(
    "rate",
    epilog="""
    \b
    Examples
      giantsteps rate --lr 1e-3 --width 4096 --dimension 784
      giantsteps rate --lr 0.1 --width 4096 --dimension 784 --parametrization mup
      giantsteps rate --lr 1e-3 --width 4096 --dimension 784 --optimizer adam
      giantsteps rate --rate 1 --exponent 0.5 --width 4096 --dimension 784
    """,
)
@click.option("--lr", type=float, metavar="LR", help="Learning rate given to the optimiser.")
@click.option("--rate", type=float, help="Rate of a step of this library, to translate back.")
@click.option(
    "--exponent",
    type=float,
    metavar="E",
    help="Exponent of the width, 0 to 1/2; default: 0 or 1/2, whichever fits better.",
)
@click.option(
    "--width", "neurons", type=int, required=True, metavar="N", help="Number of hidden neurons."
)
@click.option(
    "-d", "--dimension", "d", type=int, required=True, metavar="D", help="Input dimension."
)
@click.option(
    "--parametrization",
    type=click.Choice(_PARAMETRIZATIONS, case_sensitive=False),
    default="pytorch",
    show_default=True,
    help="pytorch: defaults of nn.Linear; standard: variance 1/fan_in; he: 2/fan_in.",
)
@click.option(
    "--optimizer",
    type=click.Choice(("sgd", "adam", "signsgd"), case_sensitive=False),
    default="sgd",
    show_default=True,
    help="Optimiser; for adam its first step.",
)
@click.option(
    "--loss",
    type=click.Choice(_LOSSES, case_sensitive=False),
    default="mse",
    show_default=True,
    help="Loss, a mean over the batch; mse is nn.MSELoss, logistic nn.SoftMarginLoss.",
)
@click.option("--weight-decay", type=float, default=0.0, help="Weight decay of the optimiser.")
@click.option("--base-width", type=float, default=1.0, help="Base width of mup; default: 1.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(
    lr: float | None,
    rate: float | None,
    exponent: float | None,
    neurons: int,
    d: int,
    weight_decay: float,
    as_json: bool,
    **given: Any,
) -> None:
    """Translate a learning rate, width and parametrisation into rate and exponent, and back.

    The rate of a step is eta = rate * N**exponent; a neuron of norm one moves by about
    eta / sqrt(N). Exponent 0 is a small step, 1/2 a giant one.
    """
    from giantsteps.problem import learning_rate_of_rate, rate_of_learning_rate

    exclusive(lr=lr is not None, rate=rate is not None)
    given |= {"neurons": neurons, "d": d}
    if lr is None:
        if rate is None:
            raise click.UsageError("give --lr, or --rate and --exponent to translate back")
        if exponent is None:
            raise click.UsageError("--rate needs --exponent: eta = rate * N**exponent")
        lr = learning_rate_of_rate(rate, exponent, **given)
    found = rate_of_learning_rate(lr, weight_decay=weight_decay, exponent=exponent, **given)
    fields = [f"samples=n0/{d}", f"rate={found.rate:.6g}", f"exponent={found.exponent:g}"]
    for name, plain in (("rule", "gradient"), ("loss", "squared"), ("decay", 0.0)):
        value = getattr(found, name)
        if value != plain:
            fields.append(f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}")
    values = {
        "learning rate": lr,
        "rate": found.rate,
        "exponent": found.exponent,
        "eta": found.eta,
        "eta/sqrt(N)": found.movement,
        "width N/d": neurons / d,
        "output": found.init_output,
    }
    if as_json:
        write_json(values | {"step": ",".join(fields)})
        return
    title = ", ".join(given[name] for name in ("parametrization", "optimizer", "loss"))
    table({name: [value] for name, value in values.items()}, title)
    click.echo(f"as flags: --width {neurons / d:.6g} --step {','.join(fields)}")
    if found.preactivation != 1:
        q = found.preactivation
        click.echo(
            f'pre-activations start with sd {q:.4g}: --activation "tanh({q:.4g}*x)" for tanh'
        )
    scale = found.output * (math.sqrt(neurons) if found.init_output == "scaled" else 1.0)
    note = "" if math.isclose(scale, 1.0) else f", {scale:.4g} times its size"
    click.echo(f"output at initialisation: --set init.output={found.init_output}{note}")
