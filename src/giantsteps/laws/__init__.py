"""Laws of eigenvalues and singular values, and the spikes that leave them."""

from ._deformation import Outlier as Outlier
from ._deformation import Outliers as Outliers
from ._deformation import critical_strength as critical_strength
from ._deformation import outlier
from ._deformation import outliers as outliers
from ._empirical import EmpiricalLaw
from ._kernel_bulk import KernelBulk as KernelBulk
from ._law import Law as Law
from ._marchenko_pastur import MarchenkoPastur
from ._resolvent import g1 as g1
from ._resolvent import g1_prime as g1_prime
from ._resolvent import g2 as g2
from ._resolvent import g2_prime as g2_prime
from ._resolvent import traces as traces
from ._sample_covariance import Population as Population
from ._sample_covariance import SampleCovariance as SampleCovariance
from ._sample_covariance import Subordination as Subordination
from ._singular_values import SingularValues as SingularValues

__all__ = ["EmpiricalLaw", "MarchenkoPastur", "outlier"]
