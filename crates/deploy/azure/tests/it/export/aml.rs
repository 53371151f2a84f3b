//! Machine Learning's files: accepted by the schemas of its own client, with what the requests say.

use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use std::path::Path;

use boon::{Compiler, Schemas};
use cudock_azure::{ExportFormat, deployment};
use serde_json::{Value, json};

use super::{deployments, exported, jobs};
use crate::specs::{checkpoints, specifications};

const SCHEMAS: [(&str, &str); 7] = [
    ("environment.yml", "environment"),
    ("compute.yml", "amlCompute"),
    ("job.yml", "commandJob"),
    ("job-0.yml", "commandJob"),
    ("job-1.yml", "commandJob"),
    ("endpoint.yml", "managedOnlineEndpoint"),
    ("deployment.yml", "managedOnlineDeployment"),
];

fn validate(specs: &Path, schema: &str, value: &Value) -> Result<(), String> {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    let path = specs.join(format!("aml-yaml/{schema}.schema.json"));
    let index = compiler.compile(path.to_str().unwrap(), &mut schemas).unwrap();
    schemas.validate(value, index).map_err(|error| error.to_string())
}

#[test]
fn checkpoints_are_an_output_of_the_job() {
    let (_, mut spec) = jobs::jobs().into_iter().find(|(name, _)| *name == "ml-job").unwrap();
    spec.checkpoints = Some(checkpoints("/checkpoints"));
    let files = exported(&deployment(&Facts::embedded(), &spec).unwrap(), ExportFormat::Aml);
    let job: Value = cudock_yaml::from_str(super::file(&files, "job.yml")).unwrap();
    let path = "azureml://datastores/workspaceblobstore/paths/cudock/digits/";
    let output = json!({"type": "uri_folder", "mode": "rw_mount", "path": path});
    assert_eq!(job["outputs"]["checkpoints"], output);
    assert!(job["command"].as_str().unwrap().contains("ln -s \"${{outputs.checkpoints}}\" /checkpoints && "));
    let Some(specs) = specifications() else { return };
    assert_eq!(validate(&specs, "commandJob", &job), Ok(()));
}

#[test]
fn the_files_are_valid() {
    let Some(specs) = specifications() else { return };
    let mut validated = Vec::new();
    for (name, deployment) in
        deployments().into_iter().filter(|(_, deployment)| deployment.service == AzureService::Ml)
    {
        for (file, text) in exported(&deployment, ExportFormat::Aml) {
            let Some((_, schema)) = SCHEMAS.iter().find(|(own, _)| *own == file) else { continue };
            let value: Value = cudock_yaml::from_str(&text).unwrap();
            validate(&specs, schema, &value).unwrap_or_else(|error| panic!("{name} {file}: {error}\n{text}"));
            validated.push(file);
        }
    }
    for (file, _) in SCHEMAS {
        assert!(validated.iter().any(|own| own == file), "no {file}");
    }
}

#[test]
fn the_job_says_what_the_request_says() {
    let (_, deployment) = deployments().into_iter().find(|(name, _)| *name == "ml-job").unwrap();
    let files = exported(&deployment, ExportFormat::Aml);
    let job: Value = cudock_yaml::from_str(super::file(&files, "job.yml")).unwrap();
    let step = deployment.steps.iter().find(|step| step.call.path.contains("/jobs/")).unwrap();
    let body = step.call.body.as_ref().unwrap().expose();
    let properties = &body["properties"];
    assert_eq!(job["command"], properties["command"]);
    assert_eq!(job["resources"]["instance_type"], properties["resources"]["instanceType"]);
    assert_eq!(job["environment_variables"]["EPOCHS"], "3");
    assert_eq!(job["limits"]["timeout"], json!(3600));
    assert_eq!(job["tags"]["cudock-run"], "0123456789ab");
    assert!(job["environment_variables"]["HF_TOKEN"].is_null());
    let script = super::file(&files, "up.sh");
    assert!(
        script.contains("--set environment_variables.HF_TOKEN=\"$HF_TOKEN\"")
            || script.contains("--set 'environment_variables.HF_TOKEN='\"$HF_TOKEN\"")
    );
}
