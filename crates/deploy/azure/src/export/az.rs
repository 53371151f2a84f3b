//! A script of `az` commands that sends the same requests.
//!
//! Commands whose defaults would add to the body of a request are replaced by `az rest`.

use std::fmt::Write as _;

use cudock_base::shell::quote;
use cudock_http::Method;
use serde_json::Value;

use super::body_value::{BodyValue, Piece};
use super::error::ExportError;
use super::header::{DELETE_BY_SCRIPT, comment, header};
use super::outline::{Outline, ResourcePath, SecretNames};
use super::template::{self, DEPLOYMENTS};
use crate::call::{Call, Plane};
use crate::deployment::{Deployment, Step, Wait};

pub(super) fn files(
    deployment: &Deployment,
    outline: &Outline<'_>,
) -> Result<Vec<(String, String)>, ExportError> {
    let mut script = Script::new(deployment, outline);
    for step in &deployment.steps {
        script.step(step)?;
    }
    Ok(script.finish("up.sh", "Create: bash up.sh", &outline.secrets.used_by(&deployment.steps)))
}

/// The requests that a template cannot make, if there are any.
pub(super) fn finish_script(
    deployment: &Deployment,
    outline: &Outline<'_>,
) -> Result<Vec<(String, String)>, ExportError> {
    if outline.rest.is_empty() {
        return Ok(Vec::new());
    }
    let mut script = Script::new(deployment, outline);
    for step in outline.rest {
        script.step(step)?;
    }
    let about = "Run it after the template: these requests are not about resources of a template.";
    Ok(script.finish("finish.sh", about, &outline.secrets.used_by(outline.rest)))
}

/// Deletes everything, whether or not it exists.
pub(super) fn delete_script(
    deployment: &Deployment,
    outline: &Outline<'_>,
) -> Result<(String, String), ExportError> {
    let mut script = Script::new(deployment, outline);
    script.line(DELETE_FUNCTION);
    for step in &deployment.cleanup {
        script.delete(step)?;
    }
    let about = "It is safe to run it again: what no longer exists is left out.";
    Ok(script.finish("down.sh", about, &[]).pop().unwrap_or_default())
}

/// Sends a request that deletes or ends something. 404 means that it is gone.
const DELETE_FUNCTION: &str = "\
request() {
  local answer
  answer=$(az rest \"$@\" 2>&1) && return
  [[ $answer == *'Not Found('* || $answer == *NotFound* ]] || { printf '%s\\n' \"$answer\" >&2; return 1; }
}
";

/// Writes a text as a string of JSON.
const JSON_FUNCTION: &str = "\
json() {
  local text=$1
  text=${text//\\\\/\\\\\\\\}
  text=${text//\\\"/\\\\\\\"}
  text=${text//$'\\n'/\\\\n}
  text=${text//$'\\r'/\\\\r}
  text=${text//$'\\t'/\\\\t}
  printf '\"%s\"' \"$text\"
}
";

/// A script under construction.
pub(super) struct Script<'o> {
    deployment: &'o Deployment,
    secrets: &'o SecretNames<'o>,
    text: String,
    /// Templates that it deploys.
    files: Vec<(String, String)>,
}

impl<'o> Script<'o> {
    pub(super) fn new(deployment: &'o Deployment, outline: &'o Outline<'o>) -> Self {
        Self { deployment, secrets: &outline.secrets, text: String::new(), files: Vec::new() }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The script, after the files that it uses.
    pub(super) fn finish(self, name: &str, about: &str, secrets: &[&str]) -> Vec<(String, String)> {
        let header = comment("#", &header(self.deployment, about, DELETE_BY_SCRIPT));
        let mut text = format!("#!/usr/bin/env bash\n{header}");
        text.push_str("set -euo pipefail\ncd \"$(dirname \"$0\")\"\n");
        for secret in secrets {
            let variable = variable(secret);
            let _ = writeln!(text, ": \"${{{variable}:?export it with the secret}}\"");
        }
        if !secrets.is_empty() {
            text.push_str(JSON_FUNCTION);
        }
        text.push('\n');
        text.push_str(&self.text);
        let mut files = self.files;
        files.push((name.to_owned(), text));
        files
    }

    /// Sends the request of a step and waits for its end.
    pub(super) fn step(&mut self, step: &Step) -> Result<(), ExportError> {
        self.line(&format!("# {}{}", step.id, if step.is_billed { " (billed from here on)" } else { "" }));
        let path = ResourcePath::parse(&step.call.path).filter(|_| step.call.plane == Plane::ResourceManager);
        let body = self.secrets.body(step);
        if let Some(path) = path.as_ref().filter(|path| path.is_kind(DEPLOYMENTS))
            && self.deploy(step, path, &body)
        {
            return Ok(());
        }
        let arguments = arguments(&step.call, &step.id)?;
        if step.call.body.is_some() {
            let pieces: Vec<String> = body.to_pieces().iter().map(piece).collect();
            self.line(&format!("printf '%s' {} |", pieces.join(" ")));
            self.line(&format!("  az rest {arguments} --body @- --output none"));
        } else {
            self.line(&format!("az rest {arguments} --output none"));
        }
        if let (Some(path), Wait::Operation) = (path, step.wait) {
            self.wait(step, path.id, path.api_version, "created");
        }
        self.line("");
        Ok(())
    }

    /// Deploys a template, which goes to a file of its own, and waits for it.
    fn deploy(&mut self, step: &Step, path: &ResourcePath<'_>, body: &BodyValue) -> bool {
        let properties = body.get("properties").map(BodyValue::members).unwrap_or_default();
        let template = properties.iter().find(|(key, _)| key == "template").map(|(_, template)| template);
        let is_plain = properties.iter().all(|(key, _)| ["mode", "template"].contains(&key.as_str()));
        let (Some(template), true) = (template, is_plain && body.secrets().is_empty()) else { return false };
        let place = match (path.group, body.get("location").and_then(BodyValue::as_text)) {
            (Some(group), _) => format!("group create --resource-group {}", quote(group)),
            (None, Some(location)) => format!("sub create --location {}", quote(location)),
            (None, None) => return false,
        };
        let file = format!("{}.json", step.id);
        let mut text = template.to_json(&str::to_owned, &str::to_owned);
        if let Value::Object(members) = &mut text {
            members.insert("metadata".to_owned(), template::metadata(self.deployment, "Deployed by up.sh."));
        }
        self.files.push((file.clone(), format!("{text:#}\n")));
        let name = quote(path.names.last().copied().unwrap_or_default()).into_owned();
        self.line(&format!(
            "az deployment {place} --subscription {} --name {name} \\\n  --template-file {} --output none\n",
            quote(path.subscription),
            quote(&file),
        ));
        true
    }

    fn wait(&mut self, step: &Step, id: &str, api_version: &str, state: &str) {
        self.line(&format!(
            "az resource wait --{state} --ids {} \\\n  --api-version {} --interval 10 --timeout {}",
            quote(id),
            quote(api_version),
            step.timeout.as_secs().max(1),
        ));
    }

    fn delete(&mut self, step: &Step) -> Result<(), ExportError> {
        self.line(&format!("# {}", step.id));
        let arguments = arguments(&step.call, &step.id)?;
        // Work that has ended is not canceled; if it has not, it cannot be deleted either.
        let rest = if step.call.method == Method::POST { " || true" } else { "" };
        self.line(&format!("request {arguments}{rest}"));
        let id = step.call.path.split('?').next().unwrap_or_default();
        if step.call.plane == Plane::ResourceManager && step.wait != Wait::Response {
            match ResourcePath::parse(&format!("{id}?api-version=")) {
                Some(path) if path.is_kind("Microsoft.Resources/resourceGroups") => {
                    let name = quote(path.names.last().copied().unwrap_or_default()).into_owned();
                    self.line(&format!(
                        "az group wait --deleted --subscription {} --name {name} --timeout {}",
                        quote(path.subscription),
                        step.timeout.as_secs().max(1),
                    ));
                }
                Some(_) => {
                    let version = step.call.path.split_once("api-version=").map_or("", |(_, rest)| rest);
                    let version = version.split('&').next().unwrap_or_default();
                    self.wait(step, id, version, "deleted");
                }
                None => {}
            }
        }
        self.line("");
        Ok(())
    }
}

/// The name of a secret as a variable of the environment.
pub(super) fn variable(secret: &str) -> String {
    secret.to_ascii_uppercase()
}

fn piece(piece: &Piece) -> String {
    match piece {
        Piece::Literal(text) => quote(text).into_owned(),
        Piece::Secret(name) => format!("\"$(json \"${}\")\"", variable(name)),
    }
}

fn is_host_part(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Method, URL and audience of a request.
fn arguments(call: &Call, step: &str) -> Result<String, ExportError> {
    let method = call.method.as_str().to_ascii_lowercase();
    let target = match &call.plane {
        // The address of the cloud that `az` is signed in to comes before it.
        Plane::ResourceManager => format!("--url {}", quote(&call.path)),
        Plane::Batch { account, region, endpoint } => {
            let host = endpoint.clone().unwrap_or_else(|| format!("{account}.{region}.batch.azure.com"));
            if !host.split('.').all(is_host_part) {
                return Err(ExportError::unsupported(
                    step,
                    format!("`{host}` is not a Batch account's host"),
                ));
            }
            format!(
                "--url \"${{CUDOCK_AZURE_BATCH:-https://{host}}}\"{} \\\n  \
             --resource https://batch.core.windows.net/{}",
                quote(&call.path),
                if call.body.is_some() {
                    " --headers 'Content-Type=application/json; odata=minimalmetadata'"
                } else {
                    ""
                }
            )
        }
        Plane::MlHistory { .. } => return Err(ExportError::unsupported(step, "a request for logs")),
    };
    Ok(format!("--method {method} {target}"))
}
