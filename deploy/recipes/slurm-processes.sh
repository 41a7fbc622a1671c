#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
srun --overlap --ntasks-per-node=1 bash -c \
  'exec ~/sentinel/bin/sentinel watch --poll --wait --state-dir "$SLURM_SUBMIT_DIR/.sentinel-$SLURM_NODEID" runs/' &
srun --overlap python train.py --output runs/
scancel --signal=TERM "$SLURM_JOB_ID.0" # the step of the watches
wait
