"""The functions that have a name.  To add one, add one entry to ``PRIMITIVES`` or ``DEFINED``.

A primitive has a value for every array namespace, a derivative as text, and the points where it is
not smooth.  At a kink the derivative is the mean of its one-sided values: relu'(0) = 1/2,
abs'(0) = 0.  A defined function is an expression in the others; everything follows from its text.
"""

from __future__ import annotations

from . import _special as special
from ._special import Standard
from ._tree import CENTERED, Atom

PRIMITIVES = (
    # name, value, derivative
    Atom("abs", Standard("abs"), ("sign(x)",), kinks=(0.0,)),
    Atom("arctan", Standard("atan"), ("1/(1 + x**2)",)),
    Atom("arcsinh", Standard("asinh"), ("1/sqrt(1 + x**2)",)),
    Atom("cos", Standard("cos"), ("-sin(x)",)),
    Atom("cosh", Standard("cosh"), ("sinh(x)",)),
    Atom("erf", special.erf, ("2/sqrt(pi)*exp(-x**2)",)),
    Atom("exp", Standard("exp"), ("exp(x)",)),
    Atom("expm1", Standard("expm1"), ("exp(x)",)),
    Atom("log", Standard("log"), ("1/x",), jumps=(0.0,)),
    Atom("log1p", Standard("log1p"), ("1/(1 + x)",), jumps=(-1.0,)),
    Atom("log_cosh", special.log_cosh, ("tanh(x)",)),
    Atom("normal_cdf", special.normal_cdf, ("normal_pdf(x)",)),
    Atom("relu", Standard("maximum", (0.0,)), ("step(x)",), kinks=(0.0,)),
    Atom("sech", special.sech, ("-sech(x)*tanh(x)",)),
    Atom("sigmoid", special.sigmoid, ("sigmoid(x)*sigmoid(-x)",)),
    Atom("sign", Standard("sign"), ("0",), jumps=(0.0,)),
    Atom("sin", Standard("sin"), ("cos(x)",)),
    Atom("sinh", Standard("sinh"), ("cosh(x)",)),
    Atom("softplus", special.softplus, ("sigmoid(x)",)),
    Atom("sqrt", Standard("sqrt"), ("0.5/sqrt(x)",), kinks=(0.0,)),
    Atom("square", special.square, ("2*x",)),
    Atom("step", special.step, ("0",), jumps=(0.0,)),
    Atom("tanh", Standard("tanh"), ("1 - tanh(x)**2",)),
    *(
        Atom(f"he{k}", special.Hermite(k), (f"{k}*he{k - 1}(x)" if k > 1 else "1",))
        for k in range(1, 9)
    ),
    # more than one argument
    Atom(
        "max",
        Standard("maximum"),
        ("step(x - y)", "step(y - x)"),
        kinks=(0.0,),
        edge="x - y",
        arity=2,
    ),
    Atom(
        "min",
        Standard("minimum"),
        ("step(y - x)", "step(x - y)"),
        kinks=(0.0,),
        edge="x - y",
        arity=2,
    ),
)

DEFINED = {
    "cube": "x**3",
    "elu": "max(x, 0) + expm1(min(x, 0))",
    "gaussian": "exp(-x**2)",
    "gelu": "x*normal_cdf(x)",
    "gelu_tanh": "0.5*x*(1 + tanh(0.7978845608028654*(x + 0.044715*x**3)))",
    "hard_shrink": "x*step(abs(x) - 0.5)",
    "hard_sigmoid": "clip(x/6 + 0.5, 0, 1)",
    "hard_swish": "x*clip(x/6 + 0.5, 0, 1)",
    "hard_tanh": "clip(x, -1, 1)",
    "leaky_relu": "max(x, 0.01*x)",
    "log_sigmoid": "-softplus(-x)",
    "mish": "x*tanh(softplus(x))",
    "normal_pdf": "exp(-x**2/2)/sqrt(2*pi)",
    "relu6": "clip(x, 0, 6)",
    "relu_squared": "relu(x)**2",
    "selu": "1.0507009873554805*(max(x, 0) + 1.6732632423543772*expm1(min(x, 0)))",
    "silu": "x*sigmoid(x)",
    "snake": "x + sin(x)**2",
    "soft_shrink": "x - clip(x, -0.5, 0.5)",
    "softsign": "x/(1 + abs(x))",
    "tanh_shrink": "x - tanh(x)",
}

DEFINED_OF_THREE = {"clip": "min(max(x, y), z)"}

ALIASES = {
    "Phi": "normal_cdf",
    "asinh": "arcsinh",
    "atan": "arctan",
    "celu": "elu",
    "clamp": "clip",
    "expit": "sigmoid",
    "hardtanh": "hard_tanh",
    "hardsigmoid": "hard_sigmoid",
    "hardswish": "hard_swish",
    "heaviside": "step",
    "linear": "identity",
    "logcosh": "log_cosh",
    "logistic": "sigmoid",
    "logsigmoid": "log_sigmoid",
    "maximum": "max",
    "minimum": "min",
    "ndtr": "normal_cdf",
    "quadratic": "square",
    "relu2": "relu_squared",
    "sgn": "sign",
    "swish": "silu",
}

CONSTANTS = {"pi": 3.141592653589793, "e": 2.718281828459045}

# identity is the variable itself and has no atom.
ATOMS = {
    **{atom.name: atom for atom in PRIMITIVES if atom.name},
    **{name: Atom(name, definition=text) for name, text in DEFINED.items()},
    **{name: Atom(name, definition=text, arity=3) for name, text in DEFINED_OF_THREE.items()},
    "centered": CENTERED,
}


def names() -> tuple[str, ...]:
    """The names that mean a function of one variable, in alphabetical order, without aliases."""
    unary = [name for name, atom in ATOMS.items() if atom.arity == 1 and atom is not CENTERED]
    return tuple(sorted([*unary, "identity"]))
