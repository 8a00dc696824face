"""The command line: each verb is a thin call of a function that a notebook can call too."""
