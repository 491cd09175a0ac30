"""``theory.reuse_exponent``: how a second step on the same batch finds the teacher (theory §7)."""

from __future__ import annotations

from giantsteps.problem import Problem
from giantsteps.theory.scope.dispatch import resolve
from giantsteps.theory.steps.several.reuse import order_of_reuse


def reuse_exponent(problem: Problem) -> int | None:
    r"""The smallest k for which a second step on the same batch aligns with the teacher.

    k is the first order in the movement η̃₁ of the neurons at which the second step, taken on the
    batch of the first, has a component E[u r ζ_A] ≠ 0 along the teacher; the labels enter it as

    .. math:: E[u\,y^{k+1}]\,E[σ^{(k+1)}(g)\,σ'(g)^k].

    0: the teacher has a linear part (information exponent one), and one step sees it. 1: the
    square of the label has one, 2: its cube, and so on; an odd activation leaves odd powers of
    the label only.

    =======  ===============================  =======================================
    symbol   field of the problem             meaning
    =======  ===============================  =======================================
    u        ``teacher``                      ⟨x, β*⟩
    y        ``teacher``, ``noise_variance``  the label
    g                                         N(0, 1), what a neuron sees of an input
    σ^{(k)}  ``activation``                   its k-th derivative
    =======  ===============================  =======================================

    Parameters
    ----------
    problem : Problem
        Gives activation, teacher and noise; its steps play no part.

    Returns
    -------
    int or None
        None: never, because E[u | y] = 0, as for an even teacher.

    Raises
    ------
    NotCovered
        If nothing is found to order 6, or, for an activation with kinks, to order 1 (where its
        response is |η̃₁| times a function of the labels that is no polynomial).

    Notes
    -----
    Relation to the generative exponent, the smallest degree j for which a transformation T of
    the label has E[T(y) He_j(u)] ≠ 0: both ask whether *some* function of the label is linear in
    the teacher. k is finite only if the generative exponent is one, and if it is one, and the law
    of y is given by its moments, then some E[u y^{k+1}] ≠ 0. They differ in what they count. The
    generative exponent counts the degree in u after the best transformation; k counts the powers
    of the label that the activation must form, so it says at which order in η̃₁ the alignment
    appears (size N^{e₂ + k e₁ − k/2}, right vector A^{k+1}), and it depends on the activation: an
    odd σ cannot form y², though the generative exponent is one. None here is a generative
    exponent of two or more.

    References
    ----------
    theory §7; moniri2026.

    Examples
    --------
    >>> import giantsteps as gs
    >>> steps = [gs.Step(samples=4, rate=1), gs.Step(samples=4, rate=1, batch="previous")]
    >>> def k(activation, teacher):
    ...     return reuse_exponent(gs.Problem(activation=activation, teacher=teacher, width=1,
    ...                                      steps=steps))
    >>> activation = gs.centered("tanh(x) + 0.5*tanh(x)**2")
    >>> k(activation, "sin"), k(activation, "he2(x)/2 + he3(x)/12**0.5"), k(activation, "he3")
    (0, 1, 2)
    >>> k("tanh", "he2(x)/2 + he3(x)/12**0.5"), k(activation, "he2")
    (2, None)
    """
    resolve("reuse_exponent", problem, None)
    return order_of_reuse(problem)
