"""The command line: one command, one file. What is slow to import is imported where it is used."""

import os

# Nothing here multiplies matrices, and numpy would begin a thread for each core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
