//! The volumes of a group: where each is on this machine, and creating those that belong to the group.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cudock_group::{Container, Group, Volume, VolumeKind};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::dir::GroupDir;
use crate::container::config::{MountConfig, Propagation};
use crate::error::{OnError, RuntimeError};

/// Directories of this machine in place of volumes, by the names of the volumes.
pub(super) type VolumeDirectories = BTreeMap<String, PathBuf>;

pub(super) fn mounts(
    group: &Group,
    container: &Container,
    dir: &GroupDir,
    directories: &VolumeDirectories,
) -> Result<Vec<MountConfig>, RuntimeError> {
    container
        .mounts
        .iter()
        .map(|mount| {
            let volume = group.volume(&mount.volume).ok_or_else(|| {
                RuntimeError::Request(format!("unknown volume `{}` in `volumeMounts`", mount.volume))
            })?;
            let read_only_share = matches!(volume.kind, VolumeKind::AzureFile { read_only: true, .. });
            Ok(MountConfig::Bind {
                source: source(volume, dir, directories)?,
                target: PathBuf::from(&mount.path),
                read_only: mount.read_only || read_only_share,
                create: false,
                propagation: Propagation::Private,
            })
        })
        .collect()
}

fn source(volume: &Volume, dir: &GroupDir, directories: &VolumeDirectories) -> Result<PathBuf, RuntimeError> {
    if let Some(directory) = directories.get(&volume.name) {
        return Ok(directory.clone());
    }
    match volume.kind {
        VolumeKind::EmptyDir => Ok(dir.volumes().join(&volume.name)),
        VolumeKind::Secret(_) => Ok(dir.secrets().join(&volume.name)),
        _ => Err(RuntimeError::Request(format!(
            "volume `{name}` of kind {} is not supported here: use a directory with --volume {name}=DIR",
            volume.kind.name(),
            name = volume.name,
        ))),
    }
}

/// Creates the volumes that belong to the group. Must be called in a mount namespace of its own, so that secrets are on a
/// tmpfs that is invisible outside of the group and vanishes with its last process.
pub(super) fn create(
    group: &Group,
    dir: &GroupDir,
    directories: &VolumeDirectories,
) -> Result<(), RuntimeError> {
    let own = || group.volumes.iter().filter(|volume| !directories.contains_key(&volume.name));
    for volume in own().filter(|volume| volume.kind == VolumeKind::EmptyDir) {
        let directory = dir.volumes().join(&volume.name);
        fs::create_dir_all(&directory).on("cannot create", &directory)?;
        // Writable for containers of any user, as in Kubernetes.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777))
            .on("cannot set the permissions of", &directory)?;
    }
    let secrets: Vec<_> = own()
        .filter_map(|volume| match &volume.kind {
            VolumeKind::Secret(files) => Some((&volume.name, files)),
            _ => None,
        })
        .collect();
    if secrets.is_empty() {
        return Ok(());
    }
    let memory = dir.secrets();
    fs::create_dir_all(&memory).on("cannot create", &memory)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), &memory, Some("tmpfs"), flags, Some("mode=0711"))
        .on("cannot mount a tmpfs for secrets on", &memory)?;
    for (name, files) in secrets {
        let directory = memory.join(name);
        fs::DirBuilder::new().mode(0o755).create(&directory).on("cannot create", &directory)?;
        for (file, contents) in files {
            write(&directory.join(file), contents.expose())?;
        }
    }
    Ok(())
}

/// Unmounts everything in the group's directory, so that it can be removed.
pub(super) fn unmount(dir: &GroupDir) {
    for path in [dir.secrets(), dir.network()] {
        // Nothing may be mounted there.
        let _ = umount2(&path, MntFlags::MNT_DETACH);
    }
}

/// Readable for containers of any user, as in Kubernetes.
fn write(path: &Path, contents: &[u8]) -> Result<(), RuntimeError> {
    use std::io::Write;
    let mut file =
        fs::File::options().create_new(true).write(true).mode(0o644).open(path).on("cannot write", path)?;
    file.set_permissions(fs::Permissions::from_mode(0o644)).on("cannot set the permissions of", path)?;
    file.write_all(contents).on("cannot write", path)
}
