"""``theory.movement``: how far each step moves the network."""

from __future__ import annotations

from giantsteps.answers import Movement
from giantsteps.problem import Grid, Problem
from giantsteps.theory.scope.dispatch import answer


def movement(problem: Problem | Grid, d: int | None = None) -> Movement:
    r"""How far each step moves weights, pre-activations, features and output.

    The coordinate check: with ΔW the change of the weights by a step and x a fresh input,

    .. math::
        \frac{‖ΔW‖_F}{‖W‖_F}, \qquad \frac{‖ΔW‖_{op}}{‖W‖_{op}}, \qquad
        \Bigl(\frac1N \sum_j E⟨Δw_j, x⟩^2\Bigr)^{1/2}, \qquad
        \frac{(E‖Δσ(W^\top x)‖^2)^{1/2}}{(E‖σ(W^\top x)‖^2)^{1/2}}, \qquad (E[Δf(x)^2])^{1/2} .

    ======  ==================================  ===============================================
    symbol  from                                meaning
    ======  ==================================  ===============================================
    W, w_j  ``problem.init``, ``steps``         weights before the step, and its columns
    ΔW      ``problem.steps``                   what the step adds to them
    σ, f    ``problem.activation``              activation, and output of the network
    N, d    ``problem.width``, ``d``            numbers of neurons and inputs
    ======  ==================================  ===============================================

    Parameters
    ----------
    problem : Problem or Grid
        With at least one step.
    d : int, optional
        Input dimension. Without it, the limit, where neurons move at exponent 1/2 only and the
        first step changes the operator norm by an infinite factor.

    Returns
    -------
    Movement
        Over the axis "step", 1 … t.

    Raises
    ------
    NotCovered
        For a reused batch with a teacher of several directions, on inputs with a covariance or in
        more than four steps, the unscaled network and rules without theory: `simulation.movement`
        answers them.

    Notes
    -----
    Terms of relative order 1/N are left out, and of the operator norm of neurons that have used a
    batch again products of its sums.

    References
    ----------
    theory §5b, §7.

    Examples
    --------
    At exponent 1/2 a step moves the pre-activations by as much at every size; at exponent 0 it
    moves the matrix as a whole, and no single neuron:

    >>> import giantsteps as gs
    >>> giant = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                    steps=[gs.Step(samples=4, rate=2, exponent=0.5)])
    >>> small = giant.replace({"steps.0.exponent": 0})
    >>> [round(float(movement(giant, d).preactivations[0]), 3) for d in (500, 50_000)]
    [0.861, 0.861]
    >>> [round(float(movement(small, d).preactivations[0]), 3) for d in (500, 50_000)]
    [0.038, 0.004]
    """
    return answer("movement", problem, d)
