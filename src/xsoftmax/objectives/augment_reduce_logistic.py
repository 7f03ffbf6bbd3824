"""Augment and reduce, multinomial logistic: Ruiz, Titsias, Dieng and Blei, Augment and reduce, ICML 2018.

    -L = -E_q[log phi(e) + sum_{k != y} log Phi(e + s_y - s_k)] - H[q]  >=  -log p(y | x)          (eq. 7)

with phi and Phi of the standard logistic distribution and q the logistic distribution at mu with scale sigma. Each
step moves (mu, sigma) of its sample along the gradient at one draw of e, then the weights at a fresh one, with

    h_k = sigma(-(e + s_y - s_k))

in place of a softmax's probabilities. The bound's likelihood is that of the multinomial logistic model, not the
softmax's: prediction takes the link logistic. Cost of a step: n_sampled + 1 rows, 2 n_sampled exponentials.
"""

from xsoftmax.kernels.augment import N_AUXILIARY
from xsoftmax.kernels.noise import Logistic
from xsoftmax.objectives import objective
from xsoftmax.objectives._additive_noise import AdditiveNoise, compiled_for


@objective(
    title="augment-and-reduce bound (logistic)",
    target="bound",
    labels_compete=True,
    excludes_true=True,
    n_auxiliary=N_AUXILIARY,
    n_numbers=2,
    link="logistic",
    qualifier="as visits grow",
)
@compiled_for(Logistic)
class AugmentReduceLogistic(AdditiveNoise):
    """Parameters: those of ``AdditiveNoise``."""


MEMBER = AugmentReduceLogistic
