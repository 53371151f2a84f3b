//! The directory of a group: its status, and whether its supervisor runs.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cudock_base::UsageError;
use cudock_base::files::write_unsynced;
use cudock_group::restart::GroupState;
use rustix::io::{FdFlags, fcntl_setfd};

use super::status::{GroupStatus, MemberPhase};
use crate::container::config::ContainerConfig;
use crate::container::home::{ContainerDir, Home, entries, remove_tree};
use crate::container::recover::{DAMAGED, SUPERVISE, helper_process};
use crate::container::state_file::{read_json, write_json};
use crate::container::status::process_began;
use crate::engine::Summary;
use crate::error::{OnError, RuntimeError};

#[derive(Debug, Clone)]
pub struct GroupDir {
    path: PathBuf,
}

/// The lock that a supervisor holds on its group. Processes that inherit the descriptor hold it, too.
#[derive(Debug)]
pub struct GroupLock {
    file: fs::File,
}

impl GroupLock {
    /// Lets the next program inherit the lock, and returns its descriptor.
    pub fn hand_down(&self) -> Result<i32, RuntimeError> {
        fcntl_setfd(&self.file, FdFlags::empty()).when("cannot pass on the group's lock")?;
        Ok(self.file.as_raw_fd())
    }
}

impl From<fs::File> for GroupLock {
    fn from(file: fs::File) -> Self {
        Self { file }
    }
}

impl GroupDir {
    /// The directory of the group of this name, which need not exist.
    pub fn of(home: &Home, name: &str) -> Self {
        Self { path: home.groups().join(name) }
    }

    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The network namespace of all containers. Only the supervisor and its children see what is mounted there.
    pub fn network(&self) -> PathBuf {
        self.path.join("netns")
    }

    /// Where the directories of `emptyDir` volumes are.
    pub fn volumes(&self) -> PathBuf {
        self.path.join("volumes")
    }

    /// Where the files of secret volumes are, on a tmpfs that only the supervisor and its children see.
    pub fn secrets(&self) -> PathBuf {
        self.path.join("secrets")
    }

    fn status_file(&self) -> PathBuf {
        self.path.join("group.json")
    }

    fn lock_file(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// How long containers may take to stop, as `cudock down` requested.
    fn grace_file(&self) -> PathBuf {
        self.path.join("grace")
    }

    /// Locks the group, and creates its directory if necessary. `None` if its supervisor runs.
    pub fn lock(&self) -> Result<Option<GroupLock>, RuntimeError> {
        fs::create_dir_all(&self.path).on("cannot create", &self.path)?;
        let path = self.lock_file();
        let mut tries = 0;
        loop {
            let file = fs::File::options().create(true).append(true).open(&path).on("cannot open", &path)?;
            match file.try_lock() {
                Ok(()) => {}
                // A process that only checks the lock holds it briefly, too.
                Err(fs::TryLockError::WouldBlock) if tries < 10 => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
                Err(fs::TryLockError::WouldBlock) => return Ok(None),
                Err(fs::TryLockError::Error(error)) => {
                    return Err(RuntimeError::file("cannot lock", path, error));
                }
            }
            // The previous owner may have removed the group, and with it the locked file.
            if path.exists() {
                return Ok(Some(GroupLock { file }));
            }
            fs::create_dir_all(&self.path).on("cannot create", &self.path)?;
        }
    }

    pub fn is_supervised(&self) -> Result<bool, RuntimeError> {
        let path = self.lock_file();
        let file = match fs::File::options().append(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(RuntimeError::file("cannot open", path, error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(fs::TryLockError::WouldBlock) => Ok(true),
            Err(fs::TryLockError::Error(error)) => Err(RuntimeError::file("cannot lock", path, error)),
        }
    }

    /// Its status; `None` if none was ever written.
    pub fn status(&self) -> Result<Option<GroupStatus>, RuntimeError> {
        let status = match read_json::<GroupStatus>(&self.status_file()) {
            Err(error) if error.is_missing() => return Ok(None),
            Err(RuntimeError::Damaged { .. }) => return Ok(Some(self.status_without_file()?)),
            status => status?,
        };
        if !status.state.is_alive() || self.is_supervised()? {
            return Ok(Some(status));
        }
        // It may have ended regularly between the two checks.
        let mut status: GroupStatus = read_json(&self.status_file())?;
        if status.state.is_alive() {
            status.state = GroupState::Lost;
            status.error = Some("the supervisor was killed, and its containers with it".to_owned());
        }
        Ok(Some(status))
    }

    /// The status of a group whose status file is damaged, such as after a power cut.
    fn status_without_file(&self) -> Result<GroupStatus, RuntimeError> {
        let state = if self.is_supervised()? { GroupState::Running } else { GroupState::Lost };
        let supervisor = helper_process(SUPERVISE, &self.path).unwrap_or_default();
        Ok(GroupStatus {
            name: self.name(),
            state,
            created: last_changed(&self.path),
            supervisor,
            supervisor_began: i32::try_from(supervisor).ok().and_then(process_began),
            ports: Vec::new(),
            error: Some(DAMAGED.to_owned()),
            containers: Vec::new(),
        })
    }

    pub(super) fn set_status(&self, status: &GroupStatus) -> Result<(), RuntimeError> {
        write_json(&self.status_file(), status)
    }

    pub(super) fn set_grace(&self, seconds: u32) -> Result<(), RuntimeError> {
        let path = self.grace_file();
        write_unsynced(&path, seconds.to_string().as_bytes()).on("cannot write", &path)
    }

    pub(super) fn grace(&self) -> Option<u32> {
        fs::read_to_string(self.grace_file()).ok()?.trim().parse().ok()
    }

    pub fn containers(&self, home: &Home) -> Result<Vec<(ContainerDir, ContainerConfig)>, RuntimeError> {
        let name = self.name();
        Ok(home.all()?.into_iter().filter(|(_, config)| config.group.as_deref() == Some(&name)).collect())
    }

    /// Its only container that is not an init container, as `GROUP/NAME`.
    pub fn only_container(&self) -> Result<String, RuntimeError> {
        let (group, status) = (self.name(), self.status()?);
        let containers = status.iter().flat_map(|status| &status.containers);
        let names: Vec<String> = containers
            .filter(|container| !container.init)
            .map(|container| format!("{group}/{}", container.name))
            .collect();
        match names.as_slice() {
            [only] => Ok(only.clone()),
            _ => Err(UsageError::new(format!("group {group} has {} containers: choose one", names.len()))
                .hint(names.join(", "))
                .into()),
        }
    }

    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Removes the containers and everything in the directory except the lock, which the caller holds.
    pub(super) fn clear(&self, home: &Home, _held: &GroupLock) -> Result<(), RuntimeError> {
        for (dir, config) in self.containers(home)? {
            dir.delete(&config, true)?;
        }
        for entry in fs::read_dir(&self.path).on("cannot read", &self.path)?.flatten() {
            let path = entry.path();
            if path == self.lock_file() {
                continue;
            }
            remove_tree(&path)?;
        }
        Ok(())
    }

    pub(super) fn remove(&self, home: &Home, held: GroupLock) -> Result<(), RuntimeError> {
        self.clear(home, &held)?;
        fs::remove_file(self.lock_file()).on("cannot remove", &self.lock_file())?;
        drop(held);
        match fs::remove_dir(&self.path) {
            // A group of the same name is being created.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.on("cannot remove", &self.path),
        }
    }
}

/// When something was last created in or removed from a directory, in milliseconds since 1970.
fn last_changed(directory: &Path) -> u64 {
    let changed = directory.metadata().and_then(|about| about.modified()).ok();
    let since = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

/// The group of this name, unless a container has it.
pub fn find(home: &Home, name: &str) -> Result<Option<GroupDir>, RuntimeError> {
    let possible = !name.is_empty() && !name.contains(['/', '.']);
    if !possible || !matches!(home.find(name), Err(RuntimeError::Unknown(_))) {
        return Ok(None);
    }
    Ok(Some(GroupDir::of(home, name)).filter(|group| group.path().is_dir()))
}

/// All groups, the oldest first.
pub fn list(home: &Home) -> Result<Vec<GroupStatus>, RuntimeError> {
    let directory = home.groups();
    let mut all = Vec::new();
    for entry in entries(&directory)? {
        let dir = GroupDir::at(entry.on("cannot read", &directory)?.path());
        // A status that cannot be read, such as after a power cut, hides only that group.
        all.extend(dir.status().ok().flatten());
    }
    all.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
    Ok(all)
}

/// Adds what only the group knows to the summary of a container. Returns whether the container is alive; `None` if it is not
/// in a group.
pub(crate) fn apply_group_status(groups: &[GroupStatus], container: &mut Summary) -> Option<bool> {
    let name = container.group.as_ref()?;
    let group = groups.iter().find(|group| group.name == *name);
    let known = group.and_then(|group| group.containers.iter().find(|known| known.id == container.id));
    let alive = group.is_some_and(|group| group.state.is_alive());
    if let Some(known) = known {
        container.restarts = u32::try_from(known.restarts).unwrap_or(u32::MAX);
        container.ready = alive.then_some(known.ready);
        if alive && known.phase == MemberPhase::Restarting {
            "restarting".clone_into(&mut container.state);
        }
    }
    Some(alive && matches!(container.state.as_str(), "created" | "running" | "restarting"))
}
