//! Checks of a workload that hold for all services.

pub(super) mod losses;
pub(crate) mod machine;

use crate::run_names::is_run_id;
use crate::services::backend::Keeping;
use crate::services::backend::lookup::backend;
use crate::services::bodies::names::is_name;
use crate::services::error::TranslationError;
use crate::spec::{DeploymentSpec, RegistryAccess, SpecVariable, WorkKind};

/// Azure's limit for the value of a tag.
const LONGEST_TAG: usize = 256;

/// Checks that the checkpoints can be kept.
pub(super) fn checkpoints(spec: &DeploymentSpec) -> Result<(), TranslationError> {
    let Some(checkpoints) = &spec.checkpoints else { return Ok(()) };
    let directory = &checkpoints.directory;
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    if directory.len() < 2
        || !directory.starts_with('/')
        || directory.contains("..")
        || !directory.chars().all(is_path)
    {
        return Err(TranslationError::new(format!(
            "`{directory}` is not the path of a directory, such as /checkpoints"
        )));
    }
    let reason = match backend(spec.service).keeps_directory(spec) {
        Ok(Keeping::InStorage) if checkpoints.storage.is_none() => {
            return Err(TranslationError::new("checkpoints need a place in blob storage")
                .hint("set CUDOCK_CHECKPOINTS to the URL of a blob container with its signature"));
        }
        Ok(_) => return Ok(()),
        Err(reason) => reason,
    };
    Err(TranslationError::new(format!("--checkpoints cannot be kept here: {reason}")))
}

/// Checks that the outputs can be kept.
pub(super) fn outputs(spec: &DeploymentSpec) -> Result<(), TranslationError> {
    let Some(outputs) = &spec.outputs else { return Ok(()) };
    if !backend(spec.service).uploads_outputs() {
        return Err(TranslationError::new("--outputs is for batch: other services upload no files")
            .hint("--checkpoints DIR keeps a directory on vm and ml"));
    }
    match outputs.pattern.as_deref() {
        Some(pattern) if pattern.is_empty() || pattern.contains(char::is_control) => {
            Err(TranslationError::new(format!("`{pattern}` is not a pattern of files, such as results/**/*")))
        }
        _ => Ok(()),
    }
}

/// Everything that becomes a part of a path, a tag or a template.
pub(super) fn names(spec: &DeploymentSpec) -> Result<(), TranslationError> {
    let fault = if !is_run_id(&spec.run_id) {
        Some(format!("`{}` is not a run id of 12 hexadecimal digits", spec.run_id))
    } else if !is_name(&spec.subscription) {
        Some(format!("`{}` is not the id of a subscription", spec.subscription))
    } else if spec.region.is_empty() || !spec.region.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        Some(format!("`{}` is not the name of a region, such as westeurope", spec.region))
    } else if spec.image.is_empty() || spec.image.contains(char::is_whitespace) {
        Some(format!("`{}` is not the reference of an image", spec.image))
    } else if !(spec.cpus.is_finite()
        && spec.cpus > 0.0
        && spec.memory_gib.is_finite()
        && spec.memory_gib > 0.0)
    {
        Some("the number of processors and the memory must be greater than 0".to_owned())
    } else if spec.instances == 0 {
        Some("the number of instances must be greater than 0".to_owned())
    } else {
        [&spec.name, &spec.owner].into_iter().chain(&spec.state).find_map(|value| tag_fault(value))
    };
    if let Some(fault) = fault {
        return Err(TranslationError::new(fault));
    }
    variables(spec)?;
    registry(spec)?;
    match &spec.work {
        WorkKind::Serve { port: 0, .. } => Err(TranslationError::new("port 0 cannot be served")),
        WorkKind::Serve { ready_path: Some(path), .. } if !path.starts_with('/') => {
            Err(TranslationError::new(format!("the readiness path `{path}` does not begin with `/`")))
        }
        WorkKind::MultiNode { nodes, processes_per_node, .. } if *nodes == 0 || *processes_per_node == 0 => {
            Err(TranslationError::new("a multi-node job needs at least one node and one process"))
        }
        WorkKind::Job { concurrent: 0, .. } => {
            Err(TranslationError::new("a job must run at least one task at a time"))
        }
        WorkKind::Job { items, .. } if !items.is_empty() && spec.command.is_empty() => {
            Err(TranslationError::new("items are arguments of a command, and there is none"))
        }
        WorkKind::MultiNode { nodes, .. } if *nodes != spec.instances => Err(TranslationError::new(format!(
            "a job of {nodes} nodes needs {nodes} instances, not {}",
            spec.instances
        ))),
        _ => Ok(()),
    }
}

/// A text in brackets would be an expression in a template.
fn tag_fault(value: &str) -> Option<String> {
    let is_fine = !value.is_empty()
        && value.chars().count() <= LONGEST_TAG
        && !value.starts_with('[')
        && !value.chars().any(char::is_control);
    (!is_fine).then(|| format!("`{}` cannot be the value of a tag", cudock_base::text::truncate(value, 40)))
}

fn variables(spec: &DeploymentSpec) -> Result<(), TranslationError> {
    let mut seen = std::collections::BTreeSet::new();
    for variable in &spec.variables {
        let name = variable.name();
        let is_valid = !name.is_empty()
            && !name.starts_with(|letter: char| letter.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if !is_valid {
            return Err(TranslationError::new(format!("`{name}` is not the name of a variable")));
        }
        if !seen.insert(name) {
            return Err(TranslationError::new(format!("the variable `{name}` is given twice")));
        }
    }
    Ok(())
}

fn registry(spec: &DeploymentSpec) -> Result<(), TranslationError> {
    let Some(registry) = &spec.registry else { return Ok(()) };
    let server = match registry {
        RegistryAccess::Identity { server, .. } | RegistryAccess::Password { server, .. } => server,
    };
    let is_server = !server.is_empty()
        && server.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte));
    if !is_server {
        return Err(TranslationError::new(format!("`{server}` is not the host of a registry")));
    }
    if let RegistryAccess::Identity { identity, .. } = registry
        && !is_resource_id(identity)
    {
        return Err(TranslationError::new(format!("`{identity}` is not the resource id of an identity")));
    }
    Ok(())
}

fn is_resource_id(text: &str) -> bool {
    text.strip_prefix("/subscriptions/").is_some_and(|rest| rest.split('/').all(is_name))
}

impl SpecVariable {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Plain { name, .. } | Self::Secret { name, .. } => name,
        }
    }
}
