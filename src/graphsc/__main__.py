"""`python -m graphsc`."""

from graphsc.cli.main import main

main()
