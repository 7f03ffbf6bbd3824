"""What the rules of the workflow ask: which jobs a config comes to, and whether the files that they need are right."""
