"""`python -m llmshed.commands`."""

from . import main

main()
