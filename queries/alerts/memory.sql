CREATE TABLE IF NOT EXISTS alerts (
    identity TEXT PRIMARY KEY,
    document TEXT NOT NULL
) STRICT;
-- Rows of alert_history that the collector has not taken yet. A batch, once formed, keeps its rows: sent again, it is stored once.
CREATE TABLE IF NOT EXISTS outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch INTEGER,
    row TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS counters (
    name TEXT PRIMARY KEY,
    value REAL NOT NULL
) STRICT;
