//! Where containers are kept, and how one is found.
//!
//! Each container has a directory of its own below `containers`. What is in it is read and written by name only through
//! [`ContainerDir`].

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{OnFile, RuntimeError};
use crate::plan::Plan;

/// Where directories of containers wait to be removed.
const TRASH: &str = "trash";

/// The directory of all containers.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

/// The directory of one container.
#[derive(Debug, Clone)]
pub struct ContainerDir {
    path: PathBuf,
}

/// What was read of all containers.
#[derive(Default)]
struct Read {
    whole: Vec<(ContainerDir, Plan)>,
    /// Those whose plan cannot be read.
    damaged: Vec<ContainerDir>,
}

impl Home {
    /// Containers below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where unpacked images are.
    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Where groups are.
    pub fn groups(&self) -> PathBuf {
        self.root.join("groups")
    }

    fn containers(&self) -> PathBuf {
        self.root.join("containers")
    }

    /// Makes a container's directory and writes its plan. The name must be free.
    pub fn create(&self, plan: &Plan) -> Result<ContainerDir, RuntimeError> {
        let containers = self.containers();
        fs::create_dir_all(&containers).on("cannot make", &containers)?;
        private(&self.root)?;
        let lock = self.lock()?;
        if let Some((_, taken)) = self.all()?.into_iter().find(|(_, known)| known.name == plan.name) {
            return Err(RuntimeError::NameTaken { name: plan.name.clone(), id: short(&taken.id).to_owned() });
        }
        let dir = ContainerDir { path: containers.join(&plan.id) };
        fs::create_dir(&dir.path).on("cannot make", &dir.path)?;
        // Made now, so that removing the container later does not need to write.
        for directory in [dir.upper(), dir.work(), dir.run(), self.root.join(TRASH)] {
            fs::create_dir_all(&directory).on("cannot make", &directory)?;
        }
        // The container's root has this directory's mode, whatever mask this process has.
        let everyone = fs::Permissions::from_mode(0o755);
        fs::set_permissions(dir.upper(), everyone).on("cannot open up", &dir.upper())?;
        // The plan comes last: a directory without one is the leftover of a process that was killed here.
        write_json(&dir.plan_file(), plan)?;
        drop(lock);
        Ok(dir)
    }

    /// All containers with their plans, the oldest first.
    pub fn all(&self) -> Result<Vec<(ContainerDir, Plan)>, RuntimeError> {
        Ok(self.read_all()?.whole)
    }

    /// The directories of containers whose plan cannot be read, such as after a power cut. Each is named by the id.
    pub fn damaged(&self) -> Result<Vec<ContainerDir>, RuntimeError> {
        Ok(self.read_all()?.damaged)
    }

    fn read_all(&self) -> Result<Read, RuntimeError> {
        let containers = self.containers();
        let entries = match fs::read_dir(&containers) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Read::default());
            }
            Err(error) => return Err(RuntimeError::file("cannot read", containers, error)),
        };
        let (mut all, mut damaged) = (Vec::new(), Vec::new());
        for entry in entries {
            let dir = ContainerDir { path: entry.on("cannot read", &containers)?.path() };
            match read_json::<Plan>(&dir.plan_file()) {
                Ok(plan) => all.push((dir, plan)),
                // Being made, being removed, or left by a process that was killed between the two.
                Err(RuntimeError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(RuntimeError::File { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => {}
                Err(_) => damaged.push(dir),
            }
        }
        all.sort_by(|(_, a), (_, b)| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(Read { whole: all, damaged })
    }

    /// The container with that name, id, or beginning of an id.
    pub fn find(&self, word: &str) -> Result<(ContainerDir, Plan), RuntimeError> {
        let mut all = self.all()?;
        // A group's container, as people say it: GROUP/NAME.
        let in_group = word.replacen('/', ".", 1);
        if let Some(index) = all.iter().position(|(_, plan)| {
            plan.name == word || plan.id == word || (plan.group.is_some() && plan.name == in_group)
        }) {
            return Ok(all.swap_remove(index));
        }
        let mut begins: Vec<_> =
            all.into_iter().filter(|(_, plan)| !word.is_empty() && plan.id.starts_with(word)).collect();
        match begins.len() {
            1 => begins.pop().ok_or_else(|| RuntimeError::Unknown(word.to_owned())),
            0 => match self.find_damaged(word)? {
                // Says what is wrong with it.
                Some(dir) => dir.plan().map(|plan| (dir, plan)),
                None => Err(RuntimeError::Unknown(word.to_owned())),
            },
            _ => Err(RuntimeError::Ambiguous(word.to_owned())),
        }
    }

    /// The container with a damaged plan that has that id, or beginning of an id.
    pub fn find_damaged(&self, word: &str) -> Result<Option<ContainerDir>, RuntimeError> {
        let mut begins: Vec<_> = self
            .damaged()?
            .into_iter()
            .filter(|dir| !word.is_empty() && dir.id().starts_with(word))
            .collect();
        match begins.len() {
            0 => Ok(None),
            1 => Ok(begins.pop()),
            _ => Err(RuntimeError::Ambiguous(word.to_owned())),
        }
    }

    /// Removes the directories of containers that were never made whole.
    pub fn sweep(&self) -> Result<(), RuntimeError> {
        if !self.containers().exists() {
            return Ok(());
        }
        let lock = self.lock()?;
        for entry in fs::read_dir(self.containers()).into_iter().flatten().flatten() {
            let dir = ContainerDir { path: entry.path() };
            if !dir.plan_file().exists() {
                // One that cannot be removed must not be in the way of the others.
                let _ = remove_tree(&dir.path);
            }
        }
        for entry in fs::read_dir(self.root.join(TRASH)).into_iter().flatten().flatten() {
            let _ = remove_tree(&entry.path());
        }
        drop(lock);
        Ok(())
    }

    /// Held while names are compared and directories come and go.
    pub(crate) fn lock(&self) -> Result<fs::File, RuntimeError> {
        let path = self.root.join("lock");
        let file = fs::File::options().create(true).append(true).open(&path).on("cannot open", &path)?;
        file.lock().on("cannot lock", &path)?;
        Ok(file)
    }
}

impl ContainerDir {
    /// The directory of a container that is known by it.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The container's id, by which its directory is named.
    pub fn id(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    pub(crate) fn plan_file(&self) -> PathBuf {
        self.path.join("plan.json")
    }

    pub(crate) fn status_file(&self) -> PathBuf {
        self.path.join("status.json")
    }

    /// Held by the process that watches the container, for as long as it does.
    pub(crate) fn watch_lock(&self) -> PathBuf {
        self.path.join("watched")
    }

    /// There when someone asked for the container to end.
    pub(crate) fn stop_mark(&self) -> PathBuf {
        self.path.join("stopping")
    }

    /// What the container wrote.
    pub fn log(&self) -> PathBuf {
        self.path.join("log.jsonl")
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.path.join("upper")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// What lives as long as the watcher, and only it and those it lets in see: a directory in memory, in its mount
    /// namespace.
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

    /// The plan the container was made by.
    pub fn plan(&self) -> Result<Plan, RuntimeError> {
        read_json(&self.plan_file())
    }

    /// Removes the directory.
    pub(crate) fn remove(&self) -> Result<(), RuntimeError> {
        match self.discard()? {
            Some(trash) => remove_tree(&trash),
            None => Ok(()),
        }
    }

    /// Takes the directory out of the list of containers at once, to a place from which it can be removed later, or by
    /// whoever looks next. None where it is gone already.
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
            // On a full disk nothing may be moved. Without its plan it is in no list, either.
            Err(_) => match fs::remove_file(self.plan_file()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(RuntimeError::file("cannot remove", &self.path, error))
                }
                _ => Ok(Some(self.path.clone())),
            },
        }
    }
}

/// The first twelve digits of an id, which is what people are shown.
pub fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// An id for a new container.
pub fn new_id() -> Result<String, RuntimeError> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| RuntimeError::system("cannot get random bytes", error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Nobody else may look into the directory: it holds programs that run with rights.
fn private(root: &Path) -> Result<(), RuntimeError> {
    fs::set_permissions(root, fs::Permissions::from_mode(0o700)).on("cannot protect", root)
}

pub(crate) fn remove_tree(path: &Path) -> Result<(), RuntimeError> {
    crate::remove::remove_tree(path).on("cannot remove", path)
}

/// Writes a file so that it is there whole, the old one or the new one.
pub(crate) fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), RuntimeError> {
    let text = serde_json::to_vec(value)
        .map_err(|source| RuntimeError::Damaged { path: path.to_owned(), source })?;
    let fresh = path.with_extension("new");
    match fs::write(&fresh, &text) {
        Ok(()) => fs::rename(&fresh, path).on("cannot write", path),
        Err(error) if is_full(&error) => {
            let _ = fs::remove_file(&fresh);
            overwrite(path, text).on("cannot write", path)
        }
        Err(error) => Err(RuntimeError::file("cannot write", fresh, error)),
    }
}

/// Whether a disk, or what a user may have of it, is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Writes over a file that exists, in the space that it has. Readers may see a half of it ([`read_json`] looks again).
fn overwrite(path: &Path, mut text: Vec<u8>) -> io::Result<()> {
    let file = fs::File::options().write(true).open(path)?;
    let about = file.metadata()?;
    let old = usize::try_from(about.len()).unwrap_or(usize::MAX);
    if text.len() as u64 > about.blocks().saturating_mul(512).max(about.len()) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    // Blanks in place of the rest of the old text: shortening the file afterwards would leave a moment between the two.
    text.resize(text.len().max(old), b' ');
    file.write_all_at(&text, 0)
}

/// Has the disk keep what was written, even through a power cut. Done behind the caller's back, since it may take long
/// and nothing of this run depends on it.
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
            // On a full disk it may be half written at this moment.
            Err(_) if tries < 3 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(source) => return Err(RuntimeError::Damaged { path: path.to_owned(), source }),
        }
    }
}
