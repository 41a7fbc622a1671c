"""What the detectors say of simulated runs: `make detector-figures` writes the table into the docs."""
