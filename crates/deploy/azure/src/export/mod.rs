//! Files that create a deployment by other means: ARM, Bicep, Terraform, `az`, and Machine Learning's YAML.
//!
//! All of them are rendered from the requests of a [`Deployment`], so that they create the same
//! resources in the same order. Secrets become parameters or variables. Steps that a template
//! cannot express, such as requests to the data plane of Batch, are written to a script that runs
//! afterwards.

mod aml;
mod arm;
mod az;
mod bicep;
mod body_value;
mod error;
mod header;
mod outline;
mod template;
mod terraform;

use std::str::FromStr;

use cudock_base::UsageError;

pub use error::ExportError;
pub use header::is_exported;

use self::outline::Outline;
use crate::call::Body;
use crate::deployment::{Deployment, Step};

/// A language for deployments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    Arm,
    Bicep,
    Terraform,
    Az,
    Aml,
}

impl ExportFormat {
    /// All formats by name.
    pub const ALL: [(&str, Self); 5] = [
        ("bicep", Self::Bicep),
        ("arm", Self::Arm),
        ("terraform", Self::Terraform),
        ("az", Self::Az),
        ("aml", Self::Aml),
    ];
}

impl FromStr for ExportFormat {
    type Err = UsageError;

    fn from_str(name: &str) -> Result<Self, UsageError> {
        let found = Self::ALL.into_iter().find(|(own, _)| *own == name);
        found.map(|(_, format)| format).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name);
            UsageError::new(format!("`{name}` is not a format: expected one of {}", names.join(", ")))
        })
    }
}

/// Renders a deployment as files: name and text of each.
///
/// # Errors
///
/// If the format cannot express the deployment.
pub fn export(deployment: &Deployment, format: ExportFormat) -> Result<Vec<(String, String)>, ExportError> {
    if deployment.steps.iter().any(has_secrets_in_data) {
        return Err(ExportError::SecretsInData);
    }
    let outline = Outline::new(deployment);
    let mut files = match format {
        ExportFormat::Arm => arm::files(deployment, &outline)?,
        ExportFormat::Bicep => bicep::files(deployment, &outline)?,
        ExportFormat::Terraform => terraform::files(deployment, &outline)?,
        ExportFormat::Az => az::files(deployment, &outline)?,
        ExportFormat::Aml => aml::files(deployment, &outline)?,
    };
    files.push(az::delete_script(deployment, &outline)?);
    Ok(files)
}

/// Whether secrets are a part of the data that a machine starts with, which would have to be written as a whole.
fn has_secrets_in_data(step: &Step) -> bool {
    let mut secrets = step.call.body.iter().flat_map(Body::secrets);
    secrets.any(|(pointer, _)| pointer.contains("/customData"))
}
