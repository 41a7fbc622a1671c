#!/bin/bash
#SBATCH --job-name=train
#SBATCH --signal=B:TERM@60
~/sentinel/bin/sentinel watch --poll --wait --state-dir "$SLURM_SUBMIT_DIR/.sentinel" runs/ &
watch=$!
srun python train.py --output runs/
kill -TERM "$watch"
wait "$watch"
