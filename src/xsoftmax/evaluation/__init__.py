"""Exact likelihoods in class blocks, and metrics."""
