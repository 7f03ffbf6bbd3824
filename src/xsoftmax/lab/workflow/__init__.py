"""What the workflow's rules ask: which jobs a config comes to, and whether the files that they need are right."""
