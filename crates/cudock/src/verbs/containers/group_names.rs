//! Groups by their names, where a container could be named.

use cudock_runtime::RuntimeError;
use cudock_runtime::group::GroupDir;
use cudock_runtime::rootless;

use super::args::{EngineArgs, EngineChoice};
use super::home;
use crate::failure::Failure;

/// The group of that name, where no container has it.
pub(super) fn find(engine: &EngineArgs, name: &str) -> Result<Option<GroupDir>, Failure> {
    if matches!(engine.engine, EngineChoice::Docker | EngineChoice::Podman) || name.contains(['/', '.']) {
        return Ok(None);
    }
    let home = home()?;
    if !matches!(home.find(name), Err(RuntimeError::Unknown(_))) {
        return Ok(None);
    }
    let group = GroupDir::of(&home, name);
    if name.is_empty() || !group.path().is_dir() {
        return Ok(None);
    }
    rootless::become_root()?;
    Ok(Some(group))
}

/// The container that is meant: the one of that name, or the only one of the group of that name.
pub(super) fn only_container(engine: &EngineArgs, name: &str) -> Result<String, Failure> {
    let Some(group) = find(engine, name)? else { return Ok(name.to_owned()) };
    let status = group.status()?;
    let names: Vec<String> = status
        .iter()
        .flat_map(|status| &status.containers)
        .filter(|container| !container.init)
        .map(|container| format!("{name}/{}", container.name))
        .collect();
    match names.as_slice() {
        [only] => Ok(only.clone()),
        _ => Err(Failure::input(format!("group {name} has {} containers: name one of them", names.len()))
            .hint(names.join(", "))),
    }
}
