"""Pages of the catalogue, in the form of those of sentinel."""
