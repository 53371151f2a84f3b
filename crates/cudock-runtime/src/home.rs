//! The data directory, and the directories of containers in it.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{OnError, RuntimeError};
use crate::plan::Plan;

/// Where directories of containers are moved before they are removed.
const TRASH: &str = "trash";

#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

#[derive(Debug, Clone)]
pub struct ContainerDir {
    path: PathBuf,
}

/// All containers, and those whose plan cannot be read.
type ContainerScan = (Vec<(ContainerDir, Plan)>, Vec<ContainerDir>);

impl Home {
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    pub fn groups(&self) -> PathBuf {
        self.root.join("groups")
    }

    fn containers(&self) -> PathBuf {
        self.root.join("containers")
    }

    /// Creates a container's directory and writes its plan. The name must not be in use.
    pub fn create(&self, plan: &Plan) -> Result<ContainerDir, RuntimeError> {
        let containers = self.containers();
        fs::create_dir_all(&containers).on("cannot create", &containers)?;
        private(&self.root)?;
        let lock = self.lock()?;
        if let Some((_, taken)) = self.all()?.into_iter().find(|(_, known)| known.name == plan.name) {
            return Err(RuntimeError::NameTaken {
                name: plan.name.clone(),
                id: short_id(&taken.id).to_owned(),
            });
        }
        let dir = ContainerDir { path: containers.join(&plan.id) };
        fs::create_dir(&dir.path).on("cannot create", &dir.path)?;
        // Created now, so that removing the container later needs no disk space.
        for directory in [dir.upper(), dir.work(), dir.run(), self.root.join(TRASH)] {
            fs::create_dir_all(&directory).on("cannot create", &directory)?;
        }
        // The container's root has the mode of this directory, independent of the umask.
        let everyone = fs::Permissions::from_mode(0o755);
        fs::set_permissions(dir.upper(), everyone).on("cannot set the permissions of", &dir.upper())?;
        // The plan is written last: a directory without one is a leftover of an interrupted creation.
        write_json(&dir.plan_file(), plan)?;
        drop(lock);
        Ok(dir)
    }

    /// All containers and their plans, the oldest first.
    pub fn all(&self) -> Result<Vec<(ContainerDir, Plan)>, RuntimeError> {
        Ok(self.read_all()?.0)
    }

    /// The directories of containers whose plan cannot be read, such as after a power cut. Each is named by the id.
    pub fn damaged(&self) -> Result<Vec<ContainerDir>, RuntimeError> {
        Ok(self.read_all()?.1)
    }

    fn read_all(&self) -> Result<ContainerScan, RuntimeError> {
        let containers = self.containers();
        let (mut all, mut damaged) = (Vec::new(), Vec::new());
        for entry in entries(&containers)? {
            let dir = ContainerDir { path: entry.on("cannot read", &containers)?.path() };
            match read_json::<Plan>(&dir.plan_file()) {
                Ok(plan) => all.push((dir, plan)),
                // Being created or removed, or a leftover.
                Err(error) if error.is_missing() => {}
                Err(RuntimeError::File { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => {}
                Err(_) => damaged.push(dir),
            }
        }
        all.sort_by(|(_, a), (_, b)| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok((all, damaged))
    }

    /// The container with this name, id or prefix of an id.
    pub fn find(&self, name: &str) -> Result<(ContainerDir, Plan), RuntimeError> {
        let mut all = self.all()?;
        // A group's container is also GROUP/NAME.
        let in_group = name.replacen('/', ".", 1);
        if let Some(index) = all.iter().position(|(_, plan)| {
            plan.name == name || plan.id == name || (plan.group.is_some() && plan.name == in_group)
        }) {
            return Ok(all.swap_remove(index));
        }
        let mut begins: Vec<_> =
            all.into_iter().filter(|(_, plan)| !name.is_empty() && plan.id.starts_with(name)).collect();
        match begins.len() {
            1 => begins.pop().ok_or_else(|| RuntimeError::Unknown(name.to_owned())),
            0 => match self.find_damaged(name)? {
                // Returns the error of reading it.
                Some(dir) => dir.plan().map(|plan| (dir, plan)),
                None => Err(RuntimeError::Unknown(name.to_owned())),
            },
            _ => Err(RuntimeError::Ambiguous(name.to_owned())),
        }
    }

    /// The container with a damaged plan and this id or prefix of an id.
    pub fn find_damaged(&self, name: &str) -> Result<Option<ContainerDir>, RuntimeError> {
        let mut begins: Vec<_> = self
            .damaged()?
            .into_iter()
            .filter(|dir| !name.is_empty() && dir.id().starts_with(name))
            .collect();
        match begins.len() {
            0 => Ok(None),
            1 => Ok(begins.pop()),
            _ => Err(RuntimeError::Ambiguous(name.to_owned())),
        }
    }

    /// Removes leftovers of interrupted creations and removals.
    pub fn remove_leftovers(&self) -> Result<(), RuntimeError> {
        if !self.containers().exists() {
            return Ok(());
        }
        let lock = self.lock()?;
        for entry in fs::read_dir(self.containers()).into_iter().flatten().flatten() {
            let dir = ContainerDir { path: entry.path() };
            if !dir.plan_file().exists() {
                // One that cannot be removed must not block the others.
                let _ = remove_tree(&dir.path);
            }
        }
        for entry in fs::read_dir(self.root.join(TRASH)).into_iter().flatten().flatten() {
            let _ = remove_tree(&entry.path());
        }
        drop(lock);
        Ok(())
    }

    pub(crate) fn lock(&self) -> Result<fs::File, RuntimeError> {
        let path = self.root.join("lock");
        let file = fs::File::options().create(true).append(true).open(&path).on("cannot open", &path)?;
        file.lock().on("cannot lock", &path)?;
        Ok(file)
    }
}

impl ContainerDir {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The container's id, which is the name of the directory.
    pub fn id(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    pub(crate) fn plan_file(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    pub(crate) fn status_file(&self) -> PathBuf {
        self.path.join("status.json")
    }

    /// Locked by the watcher while it runs.
    pub(crate) fn watch_lock(&self) -> PathBuf {
        self.path.join("watched")
    }

    /// Exists while the container is being stopped.
    pub(crate) fn stop_mark(&self) -> PathBuf {
        self.path.join("stopping")
    }

    pub fn log(&self) -> PathBuf {
        self.path.join("log.jsonl")
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.path.join("upper")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// Files that live as long as the watcher: a tmpfs in its mount namespace.
    pub(crate) fn run(&self) -> PathBuf {
        self.path.join("run")
    }

    pub(crate) fn rootfs(&self) -> PathBuf {
        self.run().join("rootfs")
    }

    pub(crate) fn bundle(&self) -> PathBuf {
        self.run().join("bundle")
    }

    pub(crate) fn oci(&self) -> PathBuf {
        self.run().join("oci")
    }

    pub fn plan(&self) -> Result<Plan, RuntimeError> {
        read_json(&self.plan_file())
    }

    pub(crate) fn remove(&self) -> Result<(), RuntimeError> {
        match self.discard()? {
            Some(trash) => remove_tree(&trash),
            None => Ok(()),
        }
    }

    /// Takes the directory out of the list of containers, so that it can be removed later. `None` if it is gone already.
    pub(crate) fn discard(&self) -> Result<Option<PathBuf>, RuntimeError> {
        let (Some(name), Some(root)) = (self.path.file_name(), self.path.parent().and_then(Path::parent))
        else {
            return Ok(None);
        };
        let directory = root.join(TRASH);
        let trash = directory.join(name);
        match fs::create_dir_all(&directory).and_then(|()| fs::rename(&self.path, &trash)) {
            Ok(()) => Ok(Some(trash)),
            Err(_) if !self.path.exists() => Ok(None),
            // On a full disk it may not be moved. Without its plan it is not in the list, either.
            Err(_) => match fs::remove_file(self.plan_file()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(RuntimeError::file("cannot remove", &self.path, error))
                }
                _ => Ok(Some(self.path.clone())),
            },
        }
    }
}

/// The first twelve digits of an id, for printing.
pub fn short_id(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

pub fn new_id() -> Result<String, RuntimeError> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .when("cannot get random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Other users must not have access: the directory contains programs that run with privileges.
fn private(root: &Path) -> Result<(), RuntimeError> {
    fs::set_permissions(root, fs::Permissions::from_mode(0o700)).on("cannot protect", root)
}

/// The entries of a directory; none if it does not exist.
pub(crate) fn entries(
    directory: &Path,
) -> Result<impl Iterator<Item = io::Result<fs::DirEntry>> + use<>, RuntimeError> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        entries => Ok(Some(entries.on("cannot read", directory)?).into_iter().flatten()),
    }
}

pub(crate) fn remove_tree(path: &Path) -> Result<(), RuntimeError> {
    crate::remove::remove_tree(path).on("cannot remove", path)
}

/// Replaces a file atomically; on a full disk, overwrites it in place.
pub(crate) fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), RuntimeError> {
    let text = serde_json::to_vec(value)
        .map_err(|source| RuntimeError::Damaged { path: path.to_owned(), source })?;
    let temporary = path.with_extension("new");
    match fs::write(&temporary, &text) {
        Ok(()) => fs::rename(&temporary, path).on("cannot write", path),
        Err(error) if is_full(&error) => {
            let _ = fs::remove_file(&temporary);
            overwrite(path, text).on("cannot write", path)
        }
        Err(error) => Err(RuntimeError::file("cannot write", temporary, error)),
    }
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Overwrites an existing file within its allocated space. Readers may see it half written, so [`read_json`] retries.
fn overwrite(path: &Path, mut text: Vec<u8>) -> io::Result<()> {
    let file = fs::File::options().write(true).open(path)?;
    let about = file.metadata()?;
    let old = usize::try_from(about.len()).unwrap_or(usize::MAX);
    if text.len() as u64 > about.blocks().saturating_mul(512).max(about.len()) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    // Padded with blanks, since truncating the file afterwards would not be atomic.
    text.resize(text.len().max(old), b' ');
    file.write_all_at(&text, 0)
}

/// Syncs a container's files to disk, in the background, since it may take long.
pub(crate) fn persist(dir: &ContainerDir) {
    let path = dir.path.clone();
    crate::sys::orphaned(move || {
        let files = [path.join("plan.json"), path.join("status.json"), path.clone()];
        for file in files.iter().chain(path.parent().map(Path::to_owned).iter()) {
            if let Ok(file) = fs::File::open(file) {
                let _ = file.sync_all();
            }
        }
    });
}

pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, RuntimeError> {
    let mut tries = 0;
    loop {
        let text = fs::read(path).on("cannot read", path)?;
        match serde_json::from_slice(&text) {
            Ok(value) => return Ok(value),
            // On a full disk it may be half written.
            Err(_) if tries < 3 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(source) => return Err(RuntimeError::Damaged { path: path.to_owned(), source }),
        }
    }
}
