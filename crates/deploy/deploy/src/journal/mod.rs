//! The journal of deployments: a `SQLite` database that is written before the outside is changed.
//!
//! Each change is one transaction that is on disk when the method returns, so a command can be
//! killed at any time: the journal then has everything needed to delete what exists. Several
//! commands may use it at the same time. A command that creates, waits for or deletes a deployment
//! holds a lock on its run, which the kernel releases when the command ends in whatever way; so
//! other commands can distinguish a deployment in progress from one whose command died.

mod billed_time;
mod error;
mod private_file;
mod read;
mod record;
mod schema;
mod state_id;
mod write;

use std::fs::{self, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use cudock_base::files::FileLock;
use cudock_base::{Environment, FileError, files};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

pub use self::billed_time::BilledTime;
pub use self::error::JournalError;
use self::private_file::open_private;
pub use self::record::{DeploymentRecord, NewDeployment, PhaseRecord, StepRecord, StepRole, StepState};
pub(crate) use self::state_id::known_state_id;

const FILE_NAME: &str = "deployments.db";

/// Maximum time to wait for another command that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The journal in one directory.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    state_id: String,
    connection: Mutex<Connection>,
}

/// The right to work on one deployment, which ends when it is dropped.
#[derive(Debug)]
pub struct RunLock {
    _lock: FileLock,
}

/// The directory of the user's journal.
pub fn journal_directory(environment: &Environment) -> Result<PathBuf, JournalError> {
    environment.state_directory().ok_or(JournalError::NoDirectory)
}

impl Journal {
    /// Opens the journal in a directory, creates it if there is none, and checks that it is intact.
    pub fn open(directory: &Path) -> Result<Self, JournalError> {
        Self::open_within(directory, BUSY_TIMEOUT)
    }

    /// Opens the journal in a directory if there is one.
    pub fn open_existing(directory: &Path) -> Result<Option<Self>, JournalError> {
        let path = directory.join(FILE_NAME);
        match path.try_exists() {
            Ok(false) => Ok(None),
            Ok(true) => Self::connect(path, BUSY_TIMEOUT).map(Some),
            Err(source) => Err(FileError::at("read", &path)(source).into()),
        }
    }

    fn open_within(directory: &Path, busy_timeout: Duration) -> Result<Self, JournalError> {
        let runs = directory.join("runs");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&runs)
            .map_err(FileError::at("create directory", &runs))?;
        let path = directory.join(FILE_NAME);
        // SQLite gives its other files the mode of this one.
        open_private(&path)?;
        let journal = Self::connect(path, busy_timeout)?;
        journal.check()?;
        Ok(journal)
    }

    fn connect(path: PathBuf, busy_timeout: Duration) -> Result<Self, JournalError> {
        // Two processes cannot switch a new database to write-ahead logging at the same time.
        let lock_path = path.with_extension("lock");
        let lock = open_private(&lock_path)?;
        files::lock(&lock, &|| {}).map_err(FileError::at("lock", &lock_path))?;
        let state_id = state_id::state_id(path.parent().unwrap_or(Path::new(".")))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(&path, flags).map_err(|error| JournalError::new(&path, error))?;
        let prepared = prepare(&connection, busy_timeout);
        match prepared.map_err(|error| JournalError::new(&path, error))? {
            version if version > schema::VERSION => {
                Err(JournalError::TooNew { path, version, supported: schema::VERSION })
            }
            _ => Ok(Self { path, state_id, connection: Mutex::new(connection) }),
        }
    }

    /// The id of its directory, as in the tag `cudock-state`.
    pub fn state_id(&self) -> &str {
        &self.state_id
    }

    /// Fails if the file is damaged.
    fn check(&self) -> Result<(), JournalError> {
        let result: String =
            self.read(|connection| connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)))?;
        if result == "ok" { Ok(()) } else { Err(JournalError::damaged(&self.path, &result)) }
    }

    /// The right to work on a deployment; none if another command has it.
    pub fn lock(&self, run_id: &str) -> Result<Option<RunLock>, JournalError> {
        let runs = self.path.with_file_name("runs");
        let path = runs.join(format!("{run_id}.lock"));
        let file = open_private(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(RunLock { _lock: file.into() })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(FileError::at("lock", &path)(source).into()),
        }
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        cudock_base::lock(&self.connection)
    }

    fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, JournalError> {
        query(&self.connection()).map_err(|error| JournalError::new(&self.path, error))
    }

    /// Carries out a transaction that waits for other writers when it begins, not in the middle.
    fn write<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, JournalError> {
        let connection = self.connection();
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate);
        let result = transaction.and_then(|transaction| {
            let value = change(&transaction)?;
            transaction.commit()?;
            Ok(value)
        });
        result.map_err(|error| JournalError::new(&self.path, error))
    }
}

/// Configures a connection, creates the tables that the database does not have, and returns the version.
fn prepare(connection: &Connection, busy_timeout: Duration) -> Result<i64, rusqlite::Error> {
    connection.busy_timeout(busy_timeout)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // An intent has to be on disk before its request is sent.
    connection.pragma_update(None, "synchronous", "FULL")?;
    let version = || connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    let found = version()?;
    if found >= schema::VERSION {
        return Ok(found);
    }
    if found == 0 {
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))?;
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let changes = [schema::TABLES, schema::JOBS, schema::BILLED_AT_MOST];
    for change in changes.iter().skip(usize::try_from(found).unwrap_or_default()) {
        transaction.execute_batch(change)?;
    }
    transaction.pragma_update(None, "user_version", schema::VERSION)?;
    transaction.commit()?;
    version()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_files_of_the_journal_are_the_users_alone() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let _journal = Journal::open(&state).unwrap();
        for file in fs::read_dir(&state).unwrap() {
            let file = file.unwrap();
            let mode = file.metadata().unwrap().permissions().mode() & 0o077;
            assert_eq!(mode, 0, "{}", file.path().display());
        }
    }

    #[test]
    fn a_journal_that_another_command_writes_is_reported_as_locked() {
        let directory = tempfile::tempdir().unwrap();
        let first = Journal::open(directory.path()).unwrap();
        let second = Journal::open_within(directory.path(), Duration::ZERO).unwrap();
        let connection = first.connection();
        let _writing = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate).unwrap();
        let error = second.write(|_| Ok(())).unwrap_err();
        assert!(matches!(error, JournalError::Locked { .. }), "{error}");
    }

    #[test]
    fn a_newer_version_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path()).unwrap();
        journal.write(|change| change.pragma_update(None, "user_version", schema::VERSION + 1)).unwrap();
        drop(journal);
        let error = Journal::open(directory.path()).unwrap_err();
        assert!(matches!(error, JournalError::TooNew { version: 4, supported: 3, .. }), "{error}");
    }

    #[test]
    fn an_older_version_gets_the_tables_that_it_lacks() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path()).unwrap();
        let first =
            "DROP TABLE jobs; ALTER TABLE deployments DROP COLUMN billed_at_most; PRAGMA user_version = 1";
        journal.write(|change| change.execute_batch(first)).unwrap();
        drop(journal);
        let journal = Journal::open(directory.path()).unwrap();
        for query in ["SELECT COUNT(*) FROM jobs", "SELECT COUNT(billed_at_most) FROM deployments"] {
            let count: i64 = journal.read(|all| all.query_row(query, [], |row| row.get(0))).unwrap();
            assert_eq!(count, 0, "{query}");
        }
    }

    #[test]
    fn a_damaged_file_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        fs::write(&path, "this is not a database, whatever its name says".repeat(100)).unwrap();
        let error = Journal::open(directory.path()).unwrap_err();
        assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
        let error = Journal::open_existing(directory.path()).unwrap_err();
        assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    }

    #[test]
    fn a_run_has_one_lock() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path()).unwrap();
        let lock = journal.lock("a").unwrap().unwrap();
        assert!(journal.lock("a").unwrap().is_none());
        assert!(journal.lock("b").unwrap().is_some());
        drop(lock);
        assert!(journal.lock("a").unwrap().is_some());
    }
}
