"""From points as logged to windows a detector can judge: names, attempts, bounded history."""
