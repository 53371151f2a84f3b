//! Machine Learning's v2 YAML, and a script of `az ml` commands that uses it.

mod duration;
mod files;

use cudock_base::shell::quote;
use cudock_facts::services::AzureService;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::files::{ClusterRequest, EndpointRequest, EnvironmentRequest, JobRequest, OnlineDeploymentRequest};
use super::az::{Script, variable};
use super::body_value::BodyValue;
use super::outline::{Outline, ResourcePath};
use super::{DELETE_BY_SCRIPT, ExportError, comment, header};
use crate::deployment::{Deployment, Step};

const WORKSPACES: &str = "Microsoft.MachineLearningServices/workspaces";

pub(super) fn files(
    deployment: &Deployment,
    outline: &Outline<'_>,
) -> Result<Vec<(String, String)>, ExportError> {
    if deployment.service != AzureService::Ml {
        return Err(ExportError::NotMachineLearning { service: deployment.service });
    }
    let mut writer =
        AmlWriter { deployment, outline, script: Script::new(deployment, outline), files: Vec::new() };
    for step in &deployment.steps {
        writer.step(step)?;
    }
    let secrets = outline.secrets.used_by(&deployment.steps);
    let mut files = writer.files;
    files.extend(writer.script.finish(
        "up.sh",
        "Create: bash up.sh. It needs the extension `az extension add -n ml`.",
        &secrets,
    ));
    Ok(files)
}

struct AmlWriter<'o> {
    deployment: &'o Deployment,
    outline: &'o Outline<'o>,
    script: Script<'o>,
    files: Vec<(String, String)>,
}

impl AmlWriter<'_> {
    /// Machine Learning's resources become files, everything else stays a request.
    fn step(&mut self, step: &Step) -> Result<(), ExportError> {
        let path = ResourcePath::parse(&step.call.path);
        let kind = path.as_ref().and_then(|path| path.kind.strip_prefix(WORKSPACES));
        let (Some(path), Some(kind)) = (&path, kind) else { return self.script.step(step) };
        let body = self.outline.secrets.body(step);
        let is_repeated = self.files.iter().any(|(name, _)| name == "endpoint.yml");
        match kind {
            "/environments/versions" => {
                let file = read::<EnvironmentRequest>(step, &body)?.into_file(path);
                self.add(path, "environment", "environment.yml", &file, &body)
            }
            "/jobs" => {
                let file = read::<JobRequest>(step, &body)?.into_file(path);
                let file = file.map_err(|reason| ExportError::unsupported(&step.id, reason))?;
                self.add(path, "job", &format!("{}.yml", step.id), &file, &body)
            }
            "/computes" => {
                let file = read::<ClusterRequest>(step, &body)?.into_file(path);
                let file = file.map_err(|reason| ExportError::unsupported(&step.id, reason))?;
                self.add(path, "compute", "compute.yml", &file, &body)
            }
            "/onlineEndpoints" if is_repeated => {
                let traffic = read::<EndpointRequest>(step, &body)?.traffic();
                let name = quote(path.names.last().copied().unwrap_or_default()).into_owned();
                let place = place(path);
                self.script.line(&format!(
                    "az ml online-endpoint update --name {name} \\\n  {place} --traffic {}\n",
                    quote(&traffic)
                ));
                Ok(())
            }
            "/onlineEndpoints" => {
                let file = read::<EndpointRequest>(step, &body)?.into_file(path);
                self.add(path, "online-endpoint", "endpoint.yml", &file, &body)
            }
            "/onlineEndpoints/deployments" => {
                let file = read::<OnlineDeploymentRequest>(step, &body)?.into_file(path);
                let file = file.map_err(|reason| ExportError::unsupported(&step.id, reason))?;
                self.add(path, "online-deployment", "deployment.yml", &file, &body)
            }
            _ => self.script.step(step),
        }
    }

    fn add(
        &mut self,
        path: &ResourcePath<'_>,
        command: &str,
        name: &str,
        file: &impl Serialize,
        body: &BodyValue,
    ) -> Result<(), ExportError> {
        let yaml = cudock_yaml::to_string(file)
            .map_err(|error| ExportError::unsupported(command, error.to_string()))?;
        let mut lines = header(self.deployment, "Create: bash up.sh", DELETE_BY_SCRIPT);
        let secrets = environment_secrets(body);
        if !secrets.is_empty() {
            let names: Vec<&str> = secrets.iter().map(|(name, _)| *name).collect();
            lines.push(format!("Secrets are set by up.sh: {}", names.join(", ")));
        }
        self.files.push((name.to_owned(), comment("#", &lines) + &yaml));
        let sets = secrets.iter().map(|(name, secret)| {
            format!(
                " \\\n  --set {}\"${}\"",
                quote(&format!("environment_variables.{name}=")),
                variable(secret)
            )
        });
        let line = format!(
            "az ml {command} create --file {name} \\\n  {}{}\n",
            place(path),
            sets.collect::<String>()
        );
        self.script.line(&line);
        Ok(())
    }
}

/// The environment variables of a body that are secrets: each with the secret's name.
fn environment_secrets(body: &BodyValue) -> Vec<(&str, &str)> {
    let properties = body.get("properties");
    let variables = properties.and_then(|properties| properties.get("environmentVariables"));
    let variables = variables.map(BodyValue::members).unwrap_or_default();
    let secrets = variables.iter().filter_map(|(name, value)| match value {
        BodyValue::Secret(secret) => Some((name.as_str(), secret.as_str())),
        _ => None,
    });
    secrets.collect()
}

/// The scope of a resource, as flags.
fn place(path: &ResourcePath<'_>) -> String {
    format!(
        "--subscription {} --resource-group {} --workspace-name {}",
        quote(path.subscription),
        quote(path.group.unwrap_or_default()),
        quote(path.names.first().copied().unwrap_or_default()),
    )
}

/// Reads a body without its secrets.
fn read<T: DeserializeOwned>(step: &Step, body: &BodyValue) -> Result<T, ExportError> {
    let mut json = body.to_json(&str::to_owned, &|_| String::new());
    for (name, _) in environment_secrets(body) {
        if let Some(Value::Object(variables)) = json.pointer_mut("/properties/environmentVariables") {
            variables.remove(name);
        }
    }
    serde_json::from_value(json).map_err(|error| ExportError::unsupported(&step.id, error.to_string()))
}
