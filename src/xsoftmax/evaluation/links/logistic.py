"""Multinomial logistic: class k is chosen where s_k plus logistic noise is highest."""

from functools import partial

from xsoftmax.evaluation import links
from xsoftmax.kernels.noise import Logistic

log_probabilities = partial(links.integrated, Logistic())
sampled_log_probabilities = partial(links.sampled, Logistic())
