"""Judges a training from within: a monitor for any loop, and callbacks for transformers and Lightning."""
