"""Page rates: what a threshold promises on an archive, and what came true."""
