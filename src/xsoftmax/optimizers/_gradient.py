"""The rule of optimizers that move weights by the learning rate times the gradient."""


def along_gradient(optimizer, step, w, a, g):
    """Move a weight against its gradient: compiled code of ``updated``."""
    return w - step.rate * g, a
