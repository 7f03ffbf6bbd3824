"""What one example's loss looks like, given a few scores; one file each."""
