"""Laws of eigenvalues and singular values, and the spikes that leave them."""

from ._empirical import EmpiricalLaw
from ._law import Law
from ._resolvent import g1, g1_prime, g2, g2_prime

__all__ = ["EmpiricalLaw", "Law", "g1", "g1_prime", "g2", "g2_prime"]
