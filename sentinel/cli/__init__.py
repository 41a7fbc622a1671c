"""The command line: one file for each command. Slow imports stay inside the functions that use them."""

from sentinel.common.environment import set_default

# Without this, numpy starts a thread for each core. No command multiplies matrices.
set_default("OPENBLAS_NUM_THREADS", "1")
