"""`python -m sentinel` is `sentinel`."""

from sentinel.cli.app import main

main()
