"""Laws of eigenvalues and singular values, and the spikes that leave them."""

from ._deformation import Outlier, critical_strength, outlier
from ._empirical import EmpiricalLaw
from ._kernel_bulk import KernelBulk
from ._law import Law
from ._marchenko_pastur import MarchenkoPastur
from ._resolvent import traces
from ._sample_covariance import Population, SampleCovariance, Subordination
from ._singular_values import SingularValues

__all__ = ["EmpiricalLaw", "MarchenkoPastur", "outlier"]
