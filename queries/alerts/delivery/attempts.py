"""Another attempt, and another, further and further apart, as long as it may help."""

import tenacity

from queries.alerts.delivery.errors import ReceiverAwayError


def again(attempts: int, apart_max_s: float) -> tenacity.Retrying:
    """Calls a function up to so many times while its receiver is away, and then raises what it raised last.

    Args:
        attempts: How many at most.
        apart_max_s: The longest pause between two, in s. They begin below half a second and double, by chance.
    """
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(ReceiverAwayError),
        stop=tenacity.stop_after_attempt(attempts),
        wait=tenacity.wait_random_exponential(multiplier=0.5, max=apart_max_s),
        reraise=True,
    )
