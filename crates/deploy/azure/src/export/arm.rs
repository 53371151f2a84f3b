//! One ARM template, and a script for the requests that it cannot make.

use super::error::ExportError;
use super::outline::Outline;
use super::{az, template};
use crate::deployment::Deployment;

pub(super) fn files(
    deployment: &Deployment,
    outline: &Outline<'_>,
) -> Result<Vec<(String, String)>, ExportError> {
    let template = template::template(deployment, outline);
    let mut files = vec![("main.json".to_owned(), format!("{template:#}\n"))];
    files.extend(az::finish_script(deployment, outline)?);
    Ok(files)
}
