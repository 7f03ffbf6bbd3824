"""Pages of documentation that are made, or renewed, from the code and from measurements."""
