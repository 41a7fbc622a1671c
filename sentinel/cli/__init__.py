"""The command line: one file for each command. Slow imports stay inside the functions that use them."""

import os

# Without this, numpy starts a thread for each core. No command multiplies matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
