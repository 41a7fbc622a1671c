"""One wrecked job in a process of its own: `python -m tests.tools.wrecked_jobs.train NAME DIRECTORY
EVIDENCE`.
"""

import sys
from pathlib import Path

import torch

from tests.tools.wrecked_jobs import jobs

name = sys.argv[1]
directory = Path(sys.argv[2])
evidence = Path(sys.argv[3])
torch.set_num_threads(1)
torch.manual_seed(0)
getattr(jobs, name)(directory, evidence.touch)
