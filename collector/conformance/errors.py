"""What keeps conformance from being judged.

CollectorError
└── ConformanceError
"""

from collector.errors import CollectorError


class ConformanceError(CollectorError):
    """Nothing was received, or a file cannot be read. The text is one clear line."""

    exit_code = 2
