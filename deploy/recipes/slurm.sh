#!/bin/bash
#SBATCH --job-name=train
#SBATCH --signal=TERM@60 # the training gets it a minute before the limit; this script and the watch do not
watch=(sentinel watch --poll --state-dir "$SLURM_SUBMIT_DIR/.sentinel" runs/)
trap : TERM # comes at the limit; this script ends after the training and the watch
"${watch[@]}" --wait &
srun python train.py --output runs/
status=$?
kill -TERM $! # the watch tells how the training ended, and ends
wait
"${watch[@]}" --once # a last look, also at a training that ended before the watch began
exit $status
