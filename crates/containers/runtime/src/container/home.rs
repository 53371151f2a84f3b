//! The data directory, and the containers in it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::container::config::ContainerConfig;
pub use crate::container::container_dir::{ContainerDir, NewContainer};
use crate::container::state_file::{read_json, write_json};
use crate::error::{OnError, RuntimeError};
use crate::files::trash::trash_of;

#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

/// All containers, and those whose config cannot be read.
type ContainerScan = (Vec<(ContainerDir, ContainerConfig)>, Vec<ContainerDir>);

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

    /// Creates a container, locked so that no other process starts or removes it. The name must not
    /// be in use.
    pub fn create(&self, config: &ContainerConfig) -> Result<NewContainer, RuntimeError> {
        let containers = self.containers();
        fs::create_dir_all(&containers).on("cannot create", &containers)?;
        private(&self.root)?;
        let lock = self.lock()?;
        for (dir, taken) in self.all()?.into_iter().filter(|(_, known)| known.name == config.name) {
            if !dir.remove_abandoned(&taken)? {
                return Err(RuntimeError::NameTaken { name: taken.name, id: short_id(&taken.id).to_owned() });
            }
        }
        let dir = ContainerDir::at(containers.join(&config.id));
        fs::create_dir(dir.path()).on("cannot create", dir.path())?;
        let created = self.fill(&dir, config);
        drop(lock);
        if created.is_err() {
            // The first error is the one to report.
            let _ = remove_tree(dir.path());
        }
        created
    }

    fn fill(&self, dir: &ContainerDir, config: &ContainerConfig) -> Result<NewContainer, RuntimeError> {
        // Created now, so that removing the container later needs no disk space.
        for directory in [dir.upper(), dir.work(), dir.run(), trash_of(&self.root)] {
            fs::create_dir_all(&directory).on("cannot create", &directory)?;
        }
        // The container's root has the mode of this directory, independent of the umask.
        let everyone = fs::Permissions::from_mode(0o755);
        fs::set_permissions(dir.upper(), everyone).on("cannot set the permissions of", &dir.upper())?;
        let Some(watch) = dir.watch()? else {
            return Err(RuntimeError::state(&config.name, &"being started", "stopped"));
        };
        // The config is written last: a directory without one is a leftover of an interrupted creation.
        write_json(&dir.config_file(), config)?;
        Ok(NewContainer::new(dir.clone(), watch))
    }

    /// All containers and their configs, the oldest first.
    pub fn all(&self) -> Result<Vec<(ContainerDir, ContainerConfig)>, RuntimeError> {
        Ok(self.read_all()?.0)
    }

    /// The directories of containers whose config cannot be read, such as after a power cut. Each is named by the id.
    pub fn damaged(&self) -> Result<Vec<ContainerDir>, RuntimeError> {
        Ok(self.read_all()?.1)
    }

    /// Whether a container has the layer in this directory. One whose config is damaged and that runs may have any.
    pub(crate) fn uses_layer(&self, layer: &Path) -> Result<bool, RuntimeError> {
        let (all, damaged) = self.read_all()?;
        let is_used = all.iter().flat_map(|(_, config)| &config.layers).any(|used| used == layer);
        Ok(is_used || damaged.iter().any(|dir| dir.is_watched().unwrap_or(true)))
    }

    fn read_all(&self) -> Result<ContainerScan, RuntimeError> {
        let containers = self.containers();
        let (mut all, mut damaged) = (Vec::new(), Vec::new());
        for entry in entries(&containers)? {
            let dir = ContainerDir::at(entry.on("cannot read", &containers)?.path());
            match read_json::<ContainerConfig>(&dir.config_file()) {
                Ok(config) => all.push((dir, config)),
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
    pub fn find(&self, name: &str) -> Result<(ContainerDir, ContainerConfig), RuntimeError> {
        let mut all = self.all()?;
        // A group's container is also GROUP/NAME.
        let in_group = name.replacen('/', ".", 1);
        if let Some(index) = all.iter().position(|(_, config)| {
            config.name == name || config.id == name || (config.group.is_some() && config.name == in_group)
        }) {
            return Ok(all.swap_remove(index));
        }
        let mut begins: Vec<_> =
            all.into_iter().filter(|(_, config)| !name.is_empty() && config.id.starts_with(name)).collect();
        match begins.len() {
            1 => begins.pop().ok_or_else(|| RuntimeError::Unknown(name.to_owned())),
            0 => match self.find_damaged(name)? {
                // Returns the error of reading it.
                Some(dir) => dir.config().map(|config| (dir, config)),
                None => Err(RuntimeError::Unknown(name.to_owned())),
            },
            _ => Err(RuntimeError::Ambiguous(name.to_owned())),
        }
    }

    /// The container with a damaged config and this id or prefix of an id.
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

    /// Removes leftovers of commands that were interrupted. One that cannot be removed does not block the others.
    pub fn remove_leftovers(&self) -> Result<(), RuntimeError> {
        if !self.root.exists() {
            return Ok(());
        }
        let lock = self.lock()?;
        let unfinished = directories(&self.containers()).map(ContainerDir::at);
        let unfinished = unfinished.filter(|dir| !dir.config_file().exists());
        let mut discarded: Vec<PathBuf> = unfinished.filter_map(|dir| dir.discard().ok().flatten()).collect();
        discarded.extend(self.discard_unfinished_volumes());
        drop(lock);
        for (dir, config) in self.all()? {
            let _ = dir.remove_abandoned(&config);
        }
        for directory in discarded.into_iter().chain(directories(&trash_of(&self.root))) {
            let _ = remove_tree(&directory);
        }
        Ok(())
    }

    pub(crate) fn lock(&self) -> Result<fs::File, RuntimeError> {
        let path = self.root.join("lock");
        let file = fs::File::options().create(true).append(true).open(&path).on("cannot open", &path)?;
        file.lock().on("cannot lock", &path)?;
        Ok(file)
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

/// The paths in a directory; none if it cannot be read.
pub(crate) fn directories(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
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
    crate::files::remove::remove_tree(path).on("cannot remove", path)
}
