"""Hostile and damaged inputs, each tried alone beside what is sound: what holds, and what falls.

`attempt.py` says what holding means. `logs.py`, `lines.py`, `receivers.py`, `states.py` and `others.py` have
the inputs, `page.py` the page.
"""
