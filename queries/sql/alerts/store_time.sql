-- question: What time is it by the store's clock?
-- column store_time [time] | Now, on the clock of ClickHouse's machine.
-- table: store_time
-- example: tachograph query store_time
SELECT now64(6, 'UTC') AS store_time
