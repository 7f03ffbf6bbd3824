"""The adversarial tree of Bamler and Mandt: fit, draw, log-probabilities."""
