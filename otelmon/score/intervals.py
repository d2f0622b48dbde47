"""How sure a measured rate is: intervals for a count of successes in a number of trials."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist


def wilson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The Wilson score interval of a rate, as (low, high) within 0 to 1; (0, 1) when nothing was tried.
    Raises ValueError when the counts do not fit together."""
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials; expected 0 <= successes <= trials")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; expected a number between 0 and 1")
    if not trials:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate, spread = successes / trials, z * z / trials
    middle = (rate + spread / 2) / (1 + spread)
    half = z * sqrt(rate * (1 - rate) / trials + spread / (4 * trials)) / (1 + spread)
    low = 0.0 if successes == 0 else middle - half
    high = 1.0 if successes == trials else middle + half
    return low, high


def rule_of_three(trials: int) -> float:
    """What a rate can be at most (95 %) when it was seen in none of the trials: three in so many."""
    if trials < 0:
        raise ValueError(f"{trials} trials; expected 0 or more")
    return min(1.0, 3 / trials) if trials else 1.0
