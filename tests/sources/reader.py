"""Reads runs as the pipeline does, poll by poll."""

from sentinel.testing.sources import Reader as Reader
