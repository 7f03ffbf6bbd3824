"""Softmax over all classes in PyTorch: minibatches, Adagrad, no penalty."""

import numpy as np
import torch
from benchopt import BaseSolver
from scipy.sparse import issparse


class Solver(BaseSolver):
    """Sparse rows become dense ones, a minibatch at a time."""

    name = "pytorch"
    parameters = {"learning_rate": [0.1], "batch_size": [64]}
    requirements = ["pip::torch"]

    def set_objective(self, X, y, n_classes):
        """Take the training rows."""
        self.X, self.y, self.n_classes = X, torch.from_numpy(np.asarray(y, np.int64)), n_classes
        self.seed = self.get_seed(use_repetition=True)

    def warm_up(self):
        """Load what PyTorch loads at its first step."""
        torch.nn.functional.cross_entropy(torch.zeros(1, 2, requires_grad=True), torch.tensor([0])).backward()

    def run(self, callback):
        """Take a step for each minibatch, and ask benchopt after each epoch."""
        rng, n_samples = np.random.default_rng(self.seed), len(self.y)
        self.linear = torch.nn.Linear(self.X.shape[1], self.n_classes)
        for parameter in self.linear.parameters():
            torch.nn.init.zeros_(parameter)
        optimizer = torch.optim.Adagrad(self.linear.parameters(), lr=self.learning_rate)
        while callback():
            order = rng.permutation(n_samples)
            for first in range(0, n_samples, self.batch_size):
                rows = order[first : first + self.batch_size]
                X = self.X[rows].toarray() if issparse(self.X) else self.X[rows]
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self.linear(torch.from_numpy(X)), self.y[rows]).backward()
                optimizer.step()

    def get_result(self):
        """Give the weights as they are now."""
        return {"W": self.linear.weight.detach().numpy(), "b": self.linear.bias.detach().numpy()}
