"""What features are compared with."""

from __future__ import annotations

from giantsteps.simulation._engine._arrays import Array, Arrays

#: Highest monomial of the features' spikes.
DEGREES = 4


def targets(arrays: Arrays, inputs: Array, labels: Array, direction: Array | None) -> Array:
    """Columns y, 1, z, z², … with z = ⟨x, b⟩/‖b‖ along the first spike, (…, rows, columns)."""
    xp = arrays.xp
    columns = [labels, xp.ones_like(labels)]
    if direction is not None:
        norm = xp.linalg.vector_norm(direction, axis=-1, keepdims=True)
        along = arrays.narrow(direction / norm)
        z = arrays.wide((inputs @ along[..., None])[..., 0])
        columns += [z**degree for degree in range(1, DEGREES + 1)]
    return xp.stack(columns, axis=-1)
