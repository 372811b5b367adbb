-- question: Which store is this?
-- column store_id [] | When its schema was first applied, to the ms, UTC: no two stores have the same. '' where it has none.
-- table: store_id
-- example: tachograph query store_id
SELECT if(count() = 0, '', toString(min(applied_at))) AS store_id
FROM schema_changes
