"""From a source to one prepared HDF5 file."""
