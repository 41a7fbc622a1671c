"""Measurements of sentinel on logs, programs and simulated runs; `README.md` says what each measures."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
MEASUREMENTS = ROOT / "deploy" / "site" / "docs" / "measurements"
"""The pages that the studies write."""
