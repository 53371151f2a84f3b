//! The engine that runs containers, and where it keeps them and unpacked images.

use cudock_cli::{ContainersArgs, EngineArgs, EngineChoice, env};
use cudock_image::Access;
use cudock_runtime::container::home::Home;
use cudock_runtime::engine::builtin::Builtin;
use cudock_runtime::engine::{Engine, external};
use cudock_runtime::flags::locate_home;
use cudock_runtime::group::GroupDir;
use cudock_runtime::namespace::rootless;

use crate::failure::Failure;
use crate::steps::images::{access, announce_fetch, progress};

/// The directory that `CUDOCK_DATA` names, or the default one.
pub(crate) fn home() -> Result<Home, Failure> {
    Ok(locate_home(env::DATA)?)
}

/// The chosen engine.
pub(crate) fn engine(choice: EngineChoice, access: Access) -> Result<Box<dyn Engine>, Failure> {
    match choice {
        EngineChoice::Docker => Ok(external::find("docker")?),
        EngineChoice::Podman => Ok(external::find("podman")?),
        EngineChoice::Auto | EngineChoice::Cudock => Ok(Box::new(builtin(access)?)),
    }
}

pub(crate) fn builtin(access: Access) -> Result<Builtin, Failure> {
    rootless::become_root()?;
    Ok(own_engine(home()?, access))
}

/// cudock's own engine, with images from where `access` finds them.
pub(crate) fn own_engine(home: Home, access: Access) -> Builtin {
    let find = Box::new(move |name: &str| access.find(name));
    Builtin { home, find, on_open: announce_fetch, progress: progress() }
}

pub(crate) fn plain_engine(args: &EngineArgs) -> Result<Box<dyn Engine>, Failure> {
    engine(args.engine, access(None, false))
}

/// The group of this name, if cudock's own engine is used and no container has the name.
pub(crate) fn find_group(args: &EngineArgs, name: &str) -> Result<Option<GroupDir>, Failure> {
    if matches!(args.engine, EngineChoice::Docker | EngineChoice::Podman) {
        return Ok(None);
    }
    let group = cudock_runtime::group::find(&home()?, name)?;
    if group.is_some() {
        rootless::become_root()?;
    }
    Ok(group)
}

/// The engine of a container. Users other than root join the user namespace of its watcher.
pub(crate) fn engine_of(args: &EngineArgs, container: Option<&String>) -> Result<Box<dyn Engine>, Failure> {
    if let Some(name) = container
        && find_group(args, name)?.is_some()
    {
        return Err(Failure::input(format!("{name} is a group, not a container"))
            .hint(format!("`cudock groups {name}` lists its containers, `cudock down {name}` stops it")));
    }
    let builtin = matches!(args.engine, EngineChoice::Auto | EngineChoice::Cudock);
    if let (Some(container), true, false) = (container, builtin, rootless::is_root()) {
        let watcher = home()?.find(container).and_then(|(dir, _)| dir.status()).map(|status| status.watcher);
        if let Ok(Some(watcher)) = watcher {
            rootless::join_watcher(watcher);
        }
    }
    plain_engine(args)
}

pub(crate) fn engine_of_all(args: &ContainersArgs) -> Result<Box<dyn Engine>, Failure> {
    engine_of(&args.engine, args.containers.first())
}
