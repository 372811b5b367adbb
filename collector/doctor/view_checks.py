"""The check that asks ClickHouse for its views: does what comes in go the way that the schema has it go?"""

from clickhouse_connect.driver.client import Client

from collector.doctor.check import Check, fault, ok, warning
from collector.store.migrations import SchemaFile
from collector.store.views import views_astray


def check_views(client: Client, known: list[SchemaFile], *, is_embedded: bool) -> Check:
    """Whether the views are those that the applied files made.

    Args:
        client: On the database.
        known: Every file that this version may apply.
        is_embedded: Whether the store is in the collector's process, which then makes them anew by itself.
    """
    astray = views_astray(client, known)
    if not astray:
        return ok("views", "as the schema has them")
    told = "; ".join(
        f"{view.name} is {'not what' if view.is_there else 'gone, which'} {view.file.name} made" for view in astray
    )
    mend = (
        "restart the collector: it makes them anew at its start"
        if is_embedded
        else "stop the collectors, DROP VIEW each that is there, and run the statements of these files, which tachograph schema prints"
    )
    # A server of another version may write a statement otherwise than it was told: that is for people to look at.
    verdict = fault if is_embedded or not all(view.is_there for view in astray) else warning
    return verdict("views", told, f"{mend}; tachograph query rollup_differences shows what was rolled up otherwise")
