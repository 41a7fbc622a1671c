#!/usr/bin/env bash
# Judges the logs of PATHS (one a line): writes the report to the job's summary, incidents to the file SARIF,
# and the exit status of sentinel to the step's outputs, so that a later step can fail when all is shown.
set -euo pipefail

mapfile -t paths < <(grep -v '^[[:space:]]*$' <<< "$PATHS")
options=()
[ -z "$BASELINE" ] || options+=(--baseline "$BASELINE")
[ -z "$CONFIG" ] || options+=(--config "$CONFIG")

status=0
sentinel replay --format sarif --output "$SARIF" --fail-on "$FAIL_ON" "${options[@]}" -- "${paths[@]}" || status=$?
if [ "$status" -lt 2 ]; then
  report=$(mktemp)
  sentinel replay --format markdown --output "$report" "${options[@]}" -- "${paths[@]}"
  head --bytes 1000000 "$report" >> "$GITHUB_STEP_SUMMARY" # GitHub shows no summary of more than a megabyte
  rm "$report"
fi
echo "status=$status" >> "$GITHUB_OUTPUT"
