-- See 700_remember_graph_executions.sql.
ALTER TABLE cell_windows MODIFY SETTING non_replicated_deduplication_window = 1000
