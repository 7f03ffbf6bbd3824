"""What every part stands on: files, checksums, hashes of sources, threads, progress, errors."""
