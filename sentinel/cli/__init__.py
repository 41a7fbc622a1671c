"""The command line: one command, one file. What is slow to import is imported where it is used."""
