"""Messages to Slack, email and a hundred others through Apprise, which the extra `[notify]` brings.

https://appriseit.com/services/
"""

import logging
from typing import TYPE_CHECKING

from engine_hooks.extras import install_command
from queries.alerts.delivery.endpoint import mark_of
from queries.alerts.delivery.errors import ReceiverAwayError
from queries.alerts.delivery.groups import Group
from queries.alerts.delivery.messages import body, title
from queries.errors import CallError

if TYPE_CHECKING:
    from apprise import NotifyBase


class AppriseChannel:
    """A channel to one Apprise URL.

    Raises:
        CallError: Apprise is not installed, or knows no such URL.
    """

    at_once = 1
    """Its services wait for one another's sake, and none promises to bear two threads."""

    def __init__(self, url: str) -> None:
        self._service = _service(url)
        self.name = f"notify {self._service.service_name} {mark_of(url)}"

    def tell(self, group: Group) -> None:
        """Send one message.

        Raises:
            ReceiverAwayError: it did not arrive. Apprise does not say whether another attempt helps.
        """
        import apprise  # noqa: PLC0415 -- an extra

        kind = apprise.NotifyType.FAILURE if group.firing else apprise.NotifyType.SUCCESS
        try:
            arrived = self._service.notify(body=body(group), title=title(group), notify_type=kind)
        except Exception as wrong:
            # Plugins let through what their libraries raise. Its text may show the URL.
            raise ReceiverAwayError(f"{self.name} fails ({type(wrong).__name__})") from None
        if not arrived:
            raise ReceiverAwayError(f"{self.name} did not take the message: see what its URL names is right and there")


def _service(url: str) -> "NotifyBase":
    try:
        import apprise  # noqa: PLC0415
    except ImportError as missing:
        raise CallError(f"TACHOGRAPH_ALERT_NOTIFY needs the extra notify: {install_command('notify')}") from missing
    # It logs URLs and answers of servers, which are secrets.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    service = apprise.Apprise.instantiate(url)
    if service is None:
        scheme, mark, _ = url.partition("://")
        raise CallError(
            f"TACHOGRAPH_ALERT_NOTIFY: Apprise cannot use the URL that begins with {scheme + mark if mark else 'nothing'}:"
            " see https://appriseit.com/services/"
        )
    return service
