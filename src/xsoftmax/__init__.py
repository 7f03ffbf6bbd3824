"""Train a softmax over very many classes.

The pieces are three independent axes (objective, proposal, optimizer); a method is a point in their product.
"""

from xsoftmax.internal.fingerprint import point_numba_cache_at_sources

__version__ = "0.1.0"

point_numba_cache_at_sources()
