//! The volumes of a group: where each is on this machine, and making those that begin with it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cudock_group::{Container, Group, Volume, VolumeKind};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::dir::GroupDir;
use crate::error::{OnFile, RuntimeError};
use crate::plan::MountPlan;

/// Directories of this machine that were given in the place of volumes.
pub(super) type Given = BTreeMap<String, PathBuf>;

/// What is mounted in a container.
pub(super) fn mounts(
    group: &Group,
    container: &Container,
    dir: &GroupDir,
    given: &Given,
) -> Result<Vec<MountPlan>, RuntimeError> {
    container
        .mounts
        .iter()
        .map(|mount| {
            let volume = group.volume(&mount.volume).ok_or_else(|| {
                RuntimeError::Request(format!("there is no volume `{}` to mount", mount.volume))
            })?;
            let never = matches!(volume.kind, VolumeKind::AzureFile { read_only: true, .. });
            Ok(MountPlan::Bind {
                source: source(volume, dir, given)?,
                target: PathBuf::from(&mount.path),
                read_only: mount.read_only || never,
            })
        })
        .collect()
}

fn source(volume: &Volume, dir: &GroupDir, given: &Given) -> Result<PathBuf, RuntimeError> {
    if let Some(directory) = given.get(&volume.name) {
        return Ok(directory.clone());
    }
    match volume.kind {
        VolumeKind::EmptyDir => Ok(dir.volumes().join(&volume.name)),
        VolumeKind::Secret(_) => Ok(dir.secrets().join(&volume.name)),
        _ => Err(RuntimeError::Request(format!(
            "volume `{name}` ({}) cannot be made here: give a directory with --volume {name}=DIR",
            volume.kind.name(),
            name = volume.name,
        ))),
    }
}

/// Makes the volumes that are ours to make. To be called in a mount namespace of our own, so that secrets are in memory
/// that nobody outside of the group can see, and gone when its last process is.
pub(super) fn make(group: &Group, dir: &GroupDir, given: &Given) -> Result<(), RuntimeError> {
    let ours = || group.volumes.iter().filter(|volume| !given.contains_key(&volume.name));
    for volume in ours().filter(|volume| volume.kind == VolumeKind::EmptyDir) {
        let directory = dir.volumes().join(&volume.name);
        fs::create_dir_all(&directory).on("cannot make", &directory)?;
        // Containers of any user may write to it, as in Kubernetes.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777))
            .on("cannot open up", &directory)?;
    }
    let secrets: Vec<_> = ours()
        .filter_map(|volume| match &volume.kind {
            VolumeKind::Secret(files) => Some((&volume.name, files)),
            _ => None,
        })
        .collect();
    if secrets.is_empty() {
        return Ok(());
    }
    let memory = dir.secrets();
    fs::create_dir_all(&memory).on("cannot make", &memory)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), &memory, Some("tmpfs"), flags, Some("mode=0711"))
        .on("cannot mount memory for secrets on", &memory)?;
    for (name, files) in secrets {
        let directory = memory.join(name);
        fs::DirBuilder::new().mode(0o755).create(&directory).on("cannot make", &directory)?;
        for (file, contents) in files {
            write(&directory.join(file), contents.expose())?;
        }
    }
    Ok(())
}

/// Takes away what is mounted in the group's directory, so that this process can remove it.
pub(super) fn forget(dir: &GroupDir) {
    for path in [dir.secrets(), dir.network()] {
        // There may be nothing there, which is what is wanted.
        let _ = umount2(&path, MntFlags::MNT_DETACH);
    }
}

/// Readable for whatever user a container runs as, as in Kubernetes.
fn write(path: &Path, contents: &[u8]) -> Result<(), RuntimeError> {
    use std::io::Write;
    let mut file =
        fs::File::options().create_new(true).write(true).mode(0o644).open(path).on("cannot write", path)?;
    file.set_permissions(fs::Permissions::from_mode(0o644)).on("cannot open up", path)?;
    file.write_all(contents).on("cannot write", path)
}
