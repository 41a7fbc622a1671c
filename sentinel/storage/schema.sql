-- The state directory's database. Times are seconds since the epoch on the machine's clock.

CREATE TABLE IF NOT EXISTS runs (
    id      TEXT PRIMARY KEY,   -- format:path
    path    TEXT NOT NULL,
    format  TEXT NOT NULL,
    state   BLOB NOT NULL,      -- cursor, histories, tracks of incidents; opaque here
    updated REAL NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS unjudged_runs (
    run    TEXT PRIMARY KEY,    -- as in runs; it may be none that was ever committed
    path   TEXT NOT NULL,
    reason TEXT NOT NULL,       -- why it is not judged
    since  REAL NOT NULL
) STRICT;

-- Incidents with an equal finding near the same step may be one problem that several logs of a training report:
-- the logs then share a training key. Incidents with an equal outage key belong to runs that fell silent together.
CREATE TABLE IF NOT EXISTS incidents (
    id         TEXT PRIMARY KEY,
    run        TEXT NOT NULL,
    open       INTEGER NOT NULL,
    updated    REAL NOT NULL,
    incident   TEXT NOT NULL, -- the whole incident as JSON
    finding    TEXT AS (CASE WHEN json_valid(incident) THEN CASE WHEN
        json_extract(incident, '$.detector') IN ('console-error', 'rank-died', 'run-crashed') THEN
        json_array('crash', '') ELSE json_array(json_extract(incident, '$.detector'),
            coalesce(nullif(json_extract(incident, '$.signal'), ''), json_extract(incident, '$.tag'))) END END),
    outage_key TEXT AS (CASE WHEN json_valid(incident) THEN CASE WHEN
        json_extract(incident, '$.evidence.runs_silent') THEN
        json_extract(incident, '$.evidence.place', '$.evidence.since') END END)
) STRICT;
CREATE INDEX IF NOT EXISTS incidents_by_time ON incidents (open, updated);
CREATE INDEX IF NOT EXISTS incidents_by_run ON incidents (run, finding);
CREATE INDEX IF NOT EXISTS incidents_by_outage ON incidents (outage_key) WHERE outage_key IS NOT NULL;

CREATE TABLE IF NOT EXISTS training_keys (           -- what the logs with incidents may share with others
    training_key TEXT NOT NULL,          -- a place, an id or a process of the training
    format       TEXT NOT NULL,
    run          TEXT NOT NULL,
    PRIMARY KEY (training_key, format, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS outbox (
    number         INTEGER PRIMARY KEY,  -- the order in which notifications were decided
    key            TEXT NOT NULL,        -- idempotency key
    sink           TEXT NOT NULL,
    incident       TEXT NOT NULL,
    urgency        INTEGER NOT NULL,     -- the incident's severity; 0 where the notification says that it is over
    body           TEXT NOT NULL,        -- fields of a Notification as JSON
    created_at     REAL NOT NULL,
    attempts       INTEGER NOT NULL DEFAULT 0,
    waited_seconds REAL NOT NULL DEFAULT 0,  -- the pauses after the attempts, added up
    state          TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'failed')),
    error          TEXT,
    finished_at    REAL,                 -- when it was sent or given up
    group_key      TEXT NOT NULL DEFAULT '',  -- leaves in one message with the others of this group
    deferred       INTEGER NOT NULL DEFAULT 0,  -- whether it waits for the end of the initial scan of its run
    run            TEXT NOT NULL DEFAULT '',
    UNIQUE (key, sink)
) STRICT;
CREATE INDEX IF NOT EXISTS outbox_due ON outbox (sink, incident, number) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS outbox_failed ON outbox (sink, incident) WHERE state = 'failed';
CREATE INDEX IF NOT EXISTS outbox_finished ON outbox (state, finished_at) WHERE state != 'pending';

CREATE TABLE IF NOT EXISTS sink_backoff (            -- sinks whose receiver did not take the last notification
    sink         TEXT PRIMARY KEY,
    failures     INTEGER NOT NULL,       -- in a row
    next_attempt REAL NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS notification_log (        -- the last notification of each kind, for as long as its incident
    incident TEXT NOT NULL,
    sink     TEXT NOT NULL,
    event    TEXT NOT NULL,
    at       REAL NOT NULL,
    severity INTEGER NOT NULL,
    findings INTEGER NOT NULL,
    number   INTEGER NOT NULL DEFAULT 0, -- the order in which they were decided
    PRIMARY KEY (incident, sink, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS notification_log_flapping ON notification_log (incident) WHERE event = 'flapping';

CREATE TABLE IF NOT EXISTS pages (                   -- the first page of a day to a sink, for as long as its incident
    incident TEXT NOT NULL,
    sink     TEXT NOT NULL,
    day      INTEGER NOT NULL,           -- since the epoch, in UTC
    at       REAL NOT NULL,
    PRIMARY KEY (incident, sink, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS receipts (                -- what a receiver holds of an incident
    incident TEXT NOT NULL,
    sink     TEXT NOT NULL,
    at       REAL NOT NULL,
    thread   TEXT NOT NULL,              -- where its first message stands, if the receiver says so
    body     TEXT,                       -- its last notification as JSON; NULL once the incident is over
    PRIMARY KEY (incident, sink)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS decisions (
    number   INTEGER PRIMARY KEY,
    at       REAL NOT NULL,
    run      TEXT NOT NULL,
    incident TEXT NOT NULL,
    detector TEXT NOT NULL,
    sink     TEXT NOT NULL,
    event    TEXT NOT NULL,
    reason   TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS decisions_by_time ON decisions (at);

CREATE TABLE IF NOT EXISTS silences (
    id         TEXT PRIMARY KEY,
    run        TEXT NOT NULL,
    detector   TEXT NOT NULL,
    until      REAL NOT NULL,
    reason     TEXT NOT NULL,
    created_at REAL NOT NULL,
    incident   TEXT NOT NULL DEFAULT ''  -- the only one that it is about
) STRICT;

CREATE TABLE IF NOT EXISTS feedback (
    incident TEXT PRIMARY KEY,
    detector TEXT NOT NULL,
    verdict  TEXT NOT NULL CHECK (verdict IN ('useful', 'false-alarm')),
    note     TEXT NOT NULL,
    at       REAL NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS health (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL              -- JSON
) STRICT;
