"""Estimators for scikit-learn: fit, predict, search and pipe as with its own."""
