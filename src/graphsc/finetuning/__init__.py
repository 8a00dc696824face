"""Transfer: from a table of molecules with a few labels to a model that predicts them."""
