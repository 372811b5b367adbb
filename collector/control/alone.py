"""Orders to a store that no collector has open."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext

from collector.backup.making import Source
from collector.control.orders import Holdings, OrderError, Orders
from collector.control.settings import ControlSettings
from collector.spool.database import spool_file
from collector.store.clickhouse import connect, engine_path, open_store


@contextmanager
def orders_alone(settings: ControlSettings, pinned: Mapping[str, int]) -> Iterator[Orders]:
    """Opens the store for as long as the context lasts. The caller holds the data directory.

    Args:
        settings: Which store.
        pinned: What they pin, as `parsed_retention` has it.

    Raises:
        CollectorError: there is no store, or it cannot be opened.
    """
    if settings.clickhouse_url:
        with closing(connect(settings.clickhouse_url)) as client:
            yield Orders(Holdings(lambda: nullcontext(client), settings.clickhouse_cluster, pinned, None))
        return
    if not engine_path(settings.data_dir).is_dir():
        raise OrderError(f"{settings.data_dir} holds no store: name the collector's --data-dir")
    source = Source(settings.data_dir, spool_file(settings.data_dir), nullcontext)
    with closing(open_store(settings.data_dir)) as client:
        yield Orders(Holdings(lambda: nullcontext(client), "", pinned, source))
