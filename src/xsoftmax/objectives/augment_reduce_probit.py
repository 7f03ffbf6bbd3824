"""Augment and reduce, multinomial probit: Ruiz, Titsias, Dieng and Blei, Augment and reduce, ICML 2018.

    -L = -E_q[log phi(e) + sum_{k != y} log Phi(e + s_y - s_k)] - H[q]  >=  -log p(y | x)          (eq. 7)

with phi and Phi of the standard normal distribution and q the normal distribution at mu with scale sigma. Each
step moves (mu, sigma) of its sample along the gradient at one draw of e, then the weights at a fresh one, with

    h_k = phi(e + s_y - s_k) / Phi(e + s_y - s_k)

in place of a softmax's probabilities. The bound's likelihood is that of the multinomial probit model, not the
softmax's: prediction takes the link probit. Cost of a step: n_sampled + 1 rows, 2 n_sampled hazards.
"""

from xsoftmax.kernels.augment import N_AUXILIARY
from xsoftmax.kernels.noise import Normal
from xsoftmax.objectives import objective
from xsoftmax.objectives._additive_noise import AdditiveNoise, compiled_for


@objective(
    title="augment-and-reduce bound (probit)",
    target="bound",
    labels_compete=True,
    excludes_true=True,
    n_auxiliary=N_AUXILIARY,
    n_numbers=4,
    link="probit",
    qualifier="as visits grow",
)
@compiled_for(Normal)
class AugmentReduceProbit(AdditiveNoise):
    """Parameters: those of ``AdditiveNoise``."""


MEMBER = AugmentReduceProbit
