"""What agents may ask, over the Model Context Protocol. Nothing else needs it."""
