"""Readers, one file per format: ``read`` gives rows with labels, ``read_new`` new ones (docs/adding-a-reader.md)."""
