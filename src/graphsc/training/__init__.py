"""The loop that trains every method, and never loses work."""
