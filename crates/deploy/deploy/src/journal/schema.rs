//! The tables of the journal.

/// The version of the tables, in the database's `user_version`.
pub(super) const VERSION: i64 = 3;

/// The tables of version 1. Times are milliseconds since 1970, and prices are decimal text so that no digit is lost. A name is free again when its
/// deployment is gone.
pub(super) const TABLES: &str = "
CREATE TABLE deployments (
    run_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    identity TEXT NOT NULL,
    cleanup TEXT NOT NULL,
    target TEXT NOT NULL,
    region TEXT NOT NULL,
    size TEXT,
    gpus INTEGER NOT NULL,
    instances INTEGER NOT NULL,
    price_per_hour TEXT NOT NULL,
    is_attached INTEGER NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    state TEXT NOT NULL,
    detail TEXT,
    url TEXT,
    exit_code INTEGER,
    billed_from INTEGER,
    billed_until INTEGER,
    lost_seconds INTEGER NOT NULL DEFAULT 0,
    replaces TEXT
) STRICT;
CREATE UNIQUE INDEX deployments_in_use ON deployments (name) WHERE state <> 'gone';
CREATE INDEX deployments_by_time ON deployments (created);
CREATE TABLE steps (
    run_id TEXT NOT NULL REFERENCES deployments (run_id),
    role TEXT NOT NULL,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    request TEXT NOT NULL,
    resource TEXT,
    is_billed INTEGER NOT NULL,
    has_secrets INTEGER NOT NULL,
    state TEXT NOT NULL,
    intended INTEGER,
    ended INTEGER,
    error TEXT,
    PRIMARY KEY (run_id, role, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE phases (
    run_id TEXT NOT NULL REFERENCES deployments (run_id),
    phase TEXT NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER,
    is_billed INTEGER NOT NULL
) STRICT;
CREATE INDEX phases_by_run ON phases (run_id);
";

/// Added by version 2: when each job on a deployment's own cluster ran.
pub(super) const JOBS: &str = "
CREATE TABLE jobs (
    run_id TEXT NOT NULL REFERENCES deployments (run_id),
    name TEXT NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER,
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;
";

/// Added by version 3: whether less than the known time may have been billed.
pub(super) const BILLED_AT_MOST: &str = "
ALTER TABLE deployments ADD COLUMN billed_at_most INTEGER NOT NULL DEFAULT 0;
";
