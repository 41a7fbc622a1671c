"""MLflow's runs, in files or in a SQLite database."""
