"""The trainings behind the sample logs: small, real, and most of them broken on purpose."""
