-- The embedded engine keeps the token of every insert that a table remembers in memory: 0.5 KB each, in each of five tables.
-- One collector writes to it, one batch after another: a batch that has to be sent again, even after a crash, is the last that
-- was sent, or the one before it. What comes between are judgements and mended rollups, a few a minute. 1,000 inserts are 200 s
-- at full speed. A server remembers 10,000 (collector/schema): several collectors write to it, and one may be away for minutes.
-- docs/decisions/0009-two-looks-at-a-span.md
ALTER TABLE graph_executions MODIFY SETTING non_replicated_deduplication_window = 1000
