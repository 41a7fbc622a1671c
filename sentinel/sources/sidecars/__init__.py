"""What lies beside a log: files with settings, and console output."""
