#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --signal=TERM@60 # all that srun started gets it: the training saves, and the watch ends
srun bash -c '
  trap : TERM
  if [ "$SLURM_LOCALID" = 0 ]; then # the first rank of each node
    watch=(sentinel watch --poll --state-dir "$SLURM_SUBMIT_DIR/.sentinel-$SLURM_NODEID" runs/)
    "${watch[@]}" --wait &
  fi
  python train.py --output runs/
  status=$?
  if [ "$SLURM_LOCALID" = 0 ]; then
    kill -TERM $! # the watch tells how the training ended, and ends
    wait
    "${watch[@]}" --once
  fi
  exit $status'
