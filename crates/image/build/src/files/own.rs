//! The project's own files in an image: model, program, other files, and cudock itself where it serves the model.

use cudock_base::bug::Parts;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};
use std::sync::Arc;

use cudock_base::{Algorithm, FileError, Hasher};
use cudock_image::FileKind;
use cudock_lock::LayerGroup;
use cudock_project::{FILE_NAME, ImageBuild, Project};

use crate::config::{APP, SERVE_PORT};
use crate::error::BuildError;
use crate::files::file::{FileOrigin, FileSource, ImageFile};

/// The program that an image starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) command: Vec<String>,
    /// Whether it is cudock that serves the model, and nothing else.
    pub(crate) serves: bool,
    /// The operators of that model.
    pub(crate) operators: Option<BTreeSet<String>>,
}

const CUDOCK: &str = "usr/local/bin/cudock";
const MAX_FILES: usize = 200_000;

/// The program that the image starts, and the project's files in it.
pub(crate) fn files(
    project: &Project,
    image: &ImageBuild,
    program: &Path,
) -> Result<(Entry, Vec<ImageFile>), BuildError> {
    let mut own = Vec::new();
    let model = image.model.as_ref().map(|model| project.directory.join(model)).or_else(|| project.model());
    let serves = image.entrypoint.is_empty() && image.program.is_none();
    let mut operators = None;
    if let Some(model) = &model {
        let origin = FileOrigin::new(LayerGroup::Model, shown(model), "the model");
        operators = cudock_model::onnx::open(model).map(|graph| graph.operators);
        let relative = model.strip_prefix(&project.directory).unwrap_or(model);
        if !relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            let message = format!("{} is outside of the project", model.display());
            return Err(BuildError::usage(message, "copy the model into the project's directory"));
        }
        tree(model, &format!("{APP}/{}", clean(relative)), &origin, &mut own)?;
        for external in cudock_model::onnx::external_files(model) {
            let relative = external.strip_prefix(&project.directory).unwrap_or(&external);
            tree(&external, &format!("{APP}/{}", clean(relative)), &origin, &mut own)?;
        }
    } else if serves {
        let message = "[image] has neither a model, a program nor an entrypoint";
        return Err(BuildError::usage(
            message,
            "set `entrypoint`, `program` or `model` in [image] of cudock.toml",
        ));
    }
    let mut command = image.entrypoint.clone();
    if let Some(path) = &image.program {
        let path = project.directory.join(path);
        let name = shown(&path);
        let origin = FileOrigin::new(LayerGroup::Program, &name, "the program");
        let at = format!("usr/local/bin/{name}");
        tree(&path, &at, &origin, &mut own)?;
        if let Some(file) = own.last_mut() {
            file.mode = 0o755;
        }
        if command.is_empty() {
            command.push(format!("/{at}"));
        }
    }
    if serves {
        let origin = FileOrigin::new(LayerGroup::Program, "cudock", "serves the model");
        tree(program, CUDOCK, &origin, &mut own)?;
        if let Some(file) = own.last_mut() {
            file.mode = 0o755;
        }
        let origin = FileOrigin::new(LayerGroup::Program, FILE_NAME, "how the model is served");
        tree(&project.directory.join(FILE_NAME), &format!("{APP}/{FILE_NAME}"), &origin, &mut own)?;
        let listen = format!("0.0.0.0:{SERVE_PORT}");
        command = ["/usr/local/bin/cudock", "serve", "/app", "--listen", &listen].map(str::to_owned).to_vec();
    }
    for (to, from) in &image.files {
        let origin = FileOrigin::new(LayerGroup::Program, from.display().to_string(), "[image.files]");
        let to = to.trim_matches('/');
        crate::unpack::check_path(to).map_err(|reason| {
            BuildError::usage(format!("[image.files]: {reason}"), "name an absolute path")
        })?;
        tree(&project.directory.join(from), to, &origin, &mut own)?;
    }
    Ok((Entry { command, serves, operators: operators.filter(|_| serves) }, own))
}

fn shown(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn clean(path: &Path) -> String {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Adds a file, or everything in a directory. Modes are normalized, because checkouts and umasks differ; links are kept.
fn tree(from: &Path, to: &str, origin: &Arc<FileOrigin>, own: &mut Vec<ImageFile>) -> Result<(), BuildError> {
    let unreadable = FileError::at("read", from);
    let metadata = fs::symlink_metadata(from).map_err(unreadable)?;
    if own.len() > MAX_FILES {
        return Err(BuildError::usage(
            format!("more than {MAX_FILES} files in {}", origin.name),
            "name a smaller directory in [image.files]",
        ));
    }
    if metadata.is_symlink() {
        let target = fs::read_link(from).map_err(FileError::at("read", from))?;
        own.push(ImageFile::symlink(to, target.to_string_lossy(), origin));
    } else if metadata.is_dir() {
        let entries = fs::read_dir(from).map_err(FileError::at("read", from))?;
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.retain(|name| !matches!(name.as_str(), ".git" | "__pycache__" | ".venv"));
        names.sort();
        for name in names {
            tree(&from.join(&name), &format!("{to}/{name}"), origin, own)?;
        }
    } else if metadata.is_file() {
        let mode = if metadata.permissions().mode() & 0o111 != 0 { 0o755 } else { 0o644 };
        let identity = digest(from)?;
        let kind = FileKind::File(FileSource::Disk { path: from.to_owned(), size: metadata.len(), identity });
        own.push(ImageFile { path: to.to_owned(), mode, kind, origin: origin.clone() });
    }
    Ok(())
}

fn digest(path: &Path) -> Result<String, BuildError> {
    let mut file = File::open(path).map_err(FileError::at("read", path))?;
    let (mut hasher, mut buffer) = (Hasher::new(Algorithm::Sha256), vec![0; 1 << 20]);
    loop {
        let count = file.read(&mut buffer).map_err(FileError::at("read", path))?;
        if count == 0 {
            return Ok(hasher.digest().to_string());
        }
        hasher.update(buffer.part(..count));
    }
}
