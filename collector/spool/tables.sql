-- The spool's tables. Statements are applied at every opening, so each is IF NOT EXISTS.

-- What was accepted and is not stored yet, in the order of its coming.
CREATE TABLE IF NOT EXISTS requests
(
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL UNIQUE,
    door TEXT NOT NULL,
    received_unix_ms INTEGER NOT NULL,
    spans INTEGER NOT NULL,
    size INTEGER NOT NULL,
    request BLOB NOT NULL
);

-- Inserts begun: their members are fixed before the first attempt, so that every attempt is the same insert.
CREATE TABLE IF NOT EXISTS batches
(
    first_position INTEGER PRIMARY KEY,
    last_position INTEGER NOT NULL,
    token TEXT NOT NULL
);

-- What became of requests that are stored, for whoever sends them again.
CREATE TABLE IF NOT EXISTS answered
(
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL UNIQUE,
    answered_unix_ms INTEGER NOT NULL,
    outcome TEXT NOT NULL
);

-- Requests that ClickHouse refuses whatever is done, each with ClickHouse's words.
CREATE TABLE IF NOT EXISTS set_aside
(
    request_id TEXT PRIMARY KEY,
    door TEXT NOT NULL,
    received_unix_ms INTEGER NOT NULL,
    set_aside_unix_ms INTEGER NOT NULL,
    spans INTEGER NOT NULL,
    size INTEGER NOT NULL,
    error TEXT NOT NULL,
    retry_wanted INTEGER NOT NULL DEFAULT 0,
    request BLOB NOT NULL
);

-- For each door, what became of every span that was accepted there, and what waits.
CREATE TABLE IF NOT EXISTS ledger
(
    door TEXT PRIMARY KEY,
    received INTEGER NOT NULL DEFAULT 0,
    stored INTEGER NOT NULL DEFAULT 0,
    deduplicated INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0,
    set_aside INTEGER NOT NULL DEFAULT 0,
    other_spans INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Executions stored, by the day (UTC, in days since 1970) they were received on: what ClickHouse must still hold, day by
-- day, since it forgets by day.
CREATE TABLE IF NOT EXISTS stored_by_day
(
    received_day INTEGER PRIMARY KEY,
    stored INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
