"""A model behind HTTP: requests are read and checked, gathered into batches, and answered from shared weights.

``workers`` starts processes that share one model; each runs the application that ``app`` makes. ``requests`` says
what a request may hold, ``batches`` gathers those that wait, ``served`` scores them, perhaps through an ``index``.
"""
