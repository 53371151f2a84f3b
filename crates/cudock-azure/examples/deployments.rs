//! The requests of one deployment to each service, for comparison with other clients.
//!
//! `deployments` prints them as JSON, secrets included: they are made up. `deployments DIRECTORY` writes every deployment
//! in every format that can express it, to `DIRECTORY/NAME/FORMAT`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a program of the tests fails by panicking"
)]

#[path = "../tests/it/export/jobs.rs"]
mod jobs;

use std::path::Path;
use std::{env, fs};

use cudock_azure::{Deployment, ExportError, ExportFormat, Plane, deployment, export};
use serde_json::{Value, json};

use self::jobs::jobs;

fn main() {
    let deployments = jobs().map(|(name, spec)| (name, deployment(&spec).unwrap()));
    match env::args_os().nth(1) {
        None => {
            let all: serde_json::Map<String, Value> = deployments
                .iter()
                .map(|(name, deployment)| ((*name).to_owned(), requests(deployment)))
                .collect();
            println!("{:#}", Value::Object(all));
        }
        Some(directory) => {
            for (name, deployment) in &deployments {
                write(&Path::new(&directory).join(name), deployment);
            }
        }
    }
}

fn write(directory: &Path, deployment: &Deployment) {
    for (name, format) in ExportFormat::ALL {
        let files = match export(deployment, format) {
            Ok(files) => files,
            Err(ExportError::NotMachineLearning { .. }) => continue,
            Err(error) => panic!("{}: {error}", directory.display()),
        };
        fs::create_dir_all(directory.join(name)).unwrap();
        for (file, text) in files {
            fs::write(directory.join(name).join(file), text).unwrap();
        }
    }
}

fn requests(deployment: &Deployment) -> Value {
    let step = |step: &cudock_azure::Step| {
        let plane = match &step.call.plane {
            Plane::ResourceManager => "resource-manager",
            Plane::Batch { .. } => "batch",
            Plane::MlHistory { .. } => "ml-history",
        };
        json!({
            "id": step.id,
            "method": step.call.method.as_str(),
            "plane": plane,
            "path": step.call.path,
            "body": step.call.body.as_ref().map(cudock_azure::Body::expose),
        })
    };
    deployment.steps.iter().map(step).collect()
}
