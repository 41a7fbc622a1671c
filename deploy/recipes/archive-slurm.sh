#!/bin/bash
#SBATCH --job-name=judge-archive
#SBATCH --array=0-63
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=1G
# All tasks write to one directory; a task that is started again goes on where it stopped.
share="$SLURM_ARRAY_TASK_ID/64"
~/sentinel/bin/sentinel archive judge /archive/runs --out /archive/verdicts --workers 4 --shard "$share"
