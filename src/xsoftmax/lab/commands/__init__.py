"""The verbs that need more than the engine does: ``pip install 'xsoftmax[report,track]'``."""
