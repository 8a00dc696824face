"""Speed, measured as ratios within one interleaved run."""
