"""Figures, graph drawings, the HTML report and the explorer, made from arrays and collections."""
