//! The requests of one deployment to each service, for comparison with other clients.
//!
//! `deployments` prints the names of the jobs and the ids of their requests as JSON. `deployments send JOB` sends the requests
//! to the cloud of the environment; their secrets are made up. `deployments DIRECTORY` writes every deployment in every format
//! that can express it, to `DIRECTORY/NAME/FORMAT`.
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

use cudock_azure::{
    AzureClient, ClientSettings, Deployment, ExportError, ExportFormat, SignInOptions, deployment, export,
};
use cudock_base::Environment;
use cudock_facts::Facts;
use serde_json::Value;

use self::jobs::jobs;

fn main() {
    let deployments = jobs().map(|(name, spec)| (name, deployment(&Facts::embedded(), &spec).unwrap()));
    match env::args_os().nth(1) {
        None => {
            let ids = |deployment: &Deployment| -> Value {
                deployment.steps.iter().map(|step| step.id.as_str()).collect()
            };
            let all: serde_json::Map<String, Value> =
                deployments.iter().map(|(name, deployment)| ((*name).to_owned(), ids(deployment))).collect();
            println!("{:#}", Value::Object(all));
        }
        Some(word) if word == "send" => {
            let wanted = env::args().nth(2).unwrap();
            let (_, deployment) = deployments.iter().find(|(name, _)| *name == wanted).unwrap();
            send(deployment);
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

/// Sends every request as `cudock up` does.
fn send(deployment: &Deployment) {
    let environment = Environment::of_process();
    let client =
        AzureClient::from_environment(&environment, &SignInOptions::default(), ClientSettings::default());
    let client = client.unwrap();
    for step in &deployment.steps {
        client.run(step).unwrap_or_else(|error| panic!("{}: {error}", step.id));
    }
}
