"""What trains on PyTorch, on a card or on its CPU device; nothing here needs numba."""
