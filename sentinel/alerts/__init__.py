"""From verdicts to incidents a person hears about: life cycle, inhibition, silences, the store."""
