//! The project that a verb is for.

use std::path::Path;

use cudock_project::{FILE_NAME, Project};

use crate::failure::Failure;

/// The project of a directory or file.
pub(crate) fn project(path: &Path) -> Result<Project, Failure> {
    let file = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
    Ok(Project::read(&file)?)
}
