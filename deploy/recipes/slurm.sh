#!/bin/bash
#SBATCH --job-name=train
#SBATCH --signal=TERM@60
watch=(~/sentinel/bin/sentinel watch --poll --state-dir "$SLURM_SUBMIT_DIR/.sentinel" runs/)
trap : TERM # which the training and the watch get, too; this script ends after them
"${watch[@]}" --wait &
srun python train.py --output runs/
status=$?
kill -TERM $!
wait
"${watch[@]}" --once # a last look, also at a training that ended before the watch began
exit $status
