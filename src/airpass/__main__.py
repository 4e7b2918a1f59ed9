"""`python -m airpass`."""

from airpass.cli import main

main()
