"""The command line: verbs, each a thin call of a function that a notebook can call too."""
