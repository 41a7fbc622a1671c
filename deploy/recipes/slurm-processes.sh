#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --signal=TERM@60
srun bash -c '
  trap : TERM
  if [ "$SLURM_LOCALID" = 0 ]; then # the first rank of each node
    watch=(~/sentinel/bin/sentinel watch --poll --state-dir "$SLURM_SUBMIT_DIR/.sentinel-$SLURM_NODEID" runs/)
    "${watch[@]}" --wait &
  fi
  python train.py --output runs/
  status=$?
  if [ "$SLURM_LOCALID" = 0 ]; then
    kill -TERM $!
    wait
    "${watch[@]}" --once
  fi
  exit $status'
