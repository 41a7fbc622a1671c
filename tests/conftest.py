"""What holds for all tests."""

from hypothesis import settings

settings.register_profile("sentinel", deadline=None)  # how long an example takes is up to the machine
settings.load_profile("sentinel")
