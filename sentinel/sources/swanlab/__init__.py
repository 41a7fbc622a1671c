"""SwanLab's runs on disk."""
