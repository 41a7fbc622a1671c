"""JSON lines, JSON documents, and the state that Hugging Face's Trainer saves."""
