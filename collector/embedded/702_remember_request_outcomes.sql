-- See 700_remember_graph_executions.sql.
ALTER TABLE request_outcomes MODIFY SETTING non_replicated_deduplication_window = 1000
