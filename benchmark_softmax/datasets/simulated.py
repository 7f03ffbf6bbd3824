"""Gaussian rows around a centre for each class: small, and made on the spot."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Classes whose rows overlap, so that the best weights are finite."""

    name = "simulated"
    parameters = {"n_samples, n_features, n_classes": [(4000, 20, 50)], "distance": [4]}
    test_parameters = {"n_samples, n_features, n_classes": [(300, 5, 4)]}
    requirements = []

    def get_data(self):
        """Draw rows of about unit length; of eight, one validates and one tests."""
        rng = np.random.default_rng(self.get_seed(use_dataset=True, use_repetition=True))
        y = (np.arange(self.n_samples) % self.n_classes).astype(np.int32)
        rng.shuffle(y)
        centres = rng.standard_normal((self.n_classes, self.n_features))
        centres *= self.distance / np.linalg.norm(centres, axis=1, keepdims=True)
        X = centres[y] + rng.standard_normal((self.n_samples, self.n_features))
        X = (X / np.sqrt(self.n_features + self.distance**2)).astype(np.float32)
        held_out = self.n_samples // 8
        cuts = {
            "validation": slice(held_out),
            "test": slice(held_out, 2 * held_out),
            "train": slice(2 * held_out, None),
        }
        rows = {f"X_{split}": X[cut] for split, cut in cuts.items()}
        return {"n_classes": self.n_classes, **rows} | {f"y_{split}": y[cut] for split, cut in cuts.items()}
