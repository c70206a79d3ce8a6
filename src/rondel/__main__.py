"""`python -m rondel` is `rondel`."""

from rondel.cli import main

main()
