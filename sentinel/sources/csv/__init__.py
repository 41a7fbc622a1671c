"""Tables with a header and a row for each step."""
