"""Whether a request is at fault or the store, where ClickHouse's error has the same name."""

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from collector.spool.faults import of_the_data


@pytest.mark.parametrize(
    ("said", "is_of_the_data"),
    [
        ("Cannot read all data. Bytes read: 12. Bytes expected: 40.: While executing ProtobufRowInputFormat.", True),
        # As 26.9.2 said them of parts that a full disk had damaged: nothing was wrong with the request.
        (
            "Cannot read all marks from file /data/store/d4c/d4c609f5/20261201_1_56_11/skp_idx_started_at_minmax.cmrk2, marks"
            " expected 51 (bytes size 1224), marks read 0 (bytes size 0): While executing MergeTreeSelect(pool: ReadPoolInOrder)",
            False,
        ),
        ("Cannot read all data in MergeTreeReaderCompact. Rows read: 0. Rows expected: 50", False),
        ("Cannot read all data: (while reading column k): (while reading from part /data/store/1_1_0/)", False),
    ],
)
def test_a_part_that_cannot_be_read_is_no_fault_of_the_request(said: str, is_of_the_data: bool) -> None:
    error = DatabaseError(
        f"Code: 33. DB::Exception: {said} (CANNOT_READ_ALL_DATA)", code=33, name="CANNOT_READ_ALL_DATA"
    )
    assert of_the_data(error) is is_of_the_data
