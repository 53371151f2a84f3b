//! Machine Learning's v2 YAML, and a script of `az ml` commands that uses it.

mod duration;
mod files;

use cudock_base::shell::quote;
use cudock_facts::services::AzureService;

use self::files::FileFormat;
use super::az::{Script, variable};
use super::body_value::BodyValue;
use super::error::ExportError;
use super::header::{DELETE_BY_SCRIPT, comment, header};
use super::outline::{Outline, ResourcePath};
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
        let Some(format) = FileFormat::of(kind) else { return self.script.step(step) };
        let body = self.outline.secrets.body(step);
        let name = format.file.map_or_else(|| format!("{}.yml", step.id), str::to_owned);
        if format.command == "online-endpoint" && self.files.iter().any(|(earlier, _)| *earlier == name) {
            self.update_traffic(path, &body);
            return Ok(());
        }
        let file = format.write(&body, path).map_err(|reason| ExportError::unsupported(&step.id, reason))?;
        self.add(path, format.command, &name, &file, &body)
    }

    /// A second request for an endpoint changes what share of its requests each deployment gets.
    fn update_traffic(&mut self, path: &ResourcePath<'_>, body: &BodyValue) {
        let traffic = body.at_path("properties/traffic").map(BodyValue::members).unwrap_or_default();
        let shares = traffic.iter().filter_map(|(name, share)| match share {
            BodyValue::Scalar(percent) => Some(format!("{name}={percent}")),
            _ => None,
        });
        self.script.line(&format!(
            "az ml online-endpoint update --name {} \\\n  {} --traffic {}\n",
            quote(path.names.last().copied().unwrap_or_default()),
            place(path),
            quote(&shares.collect::<Vec<_>>().join(" "))
        ));
    }

    fn add(
        &mut self,
        path: &ResourcePath<'_>,
        command: &str,
        name: &str,
        file: &BodyValue,
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
    let variables = body.at_path("properties/environmentVariables");
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
