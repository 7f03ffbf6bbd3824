"""Multinomial probit: class k is chosen where s_k plus normal noise is highest."""

from functools import partial

from xsoftmax.evaluation import links
from xsoftmax.kernels.noise import Normal

log_probabilities = partial(links.integrated, Normal())
sampled_log_probabilities = partial(links.sampled, Normal())
