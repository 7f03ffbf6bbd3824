"""Wright's omega of many numbers at once: see ``xsoftmax.kernels.mathematics.wright_omega``."""

import torch
from torch import Tensor

# Below, omega is e^z; above, the start is exact, and further steps would overflow.
_LEAST, _MOST = -37.0, 1e8


def wright_omega(z: Tensor) -> Tensor:
    """Solve omega + log(omega) = z for omega > 0, real z, in float64: a start, then two steps of fourth order."""
    e, t = torch.exp(z.clamp(max=0.0)), z - 1.0
    log_z = torch.log(z.clamp(min=1.0))
    w = z - log_z + log_z / z.clamp(min=1.0)
    w = torch.where(z < 3.0, 1.0 + t / 2.0 + t * t / 16.0 - t * t * t / 192.0, w)
    w = torch.where(z < -1.0, e / (1.0 + 0.75 * e), w)
    w = torch.where(z < -2.5, e * (1.0 - e + 1.5 * e * e), w)
    begun = w.clone()
    for _ in range(2):
        r = z - w - torch.log(w)
        q = 2.0 * (1.0 + w) * (1.0 + w + 2.0 * r / 3.0)
        w = w * (1.0 + r / (1.0 + w) * (q - r) / (q - 2.0 * r))
    return torch.where(z < _LEAST, torch.exp(z), torch.where(z > _MOST, begun, w))
