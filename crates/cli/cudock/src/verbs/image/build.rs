//! `cudock build`: the image of a project, from its lock or from its Dockerfile.

use std::path::PathBuf;

use cudock_base::Environment;
use cudock_build::{BuildRequest, Built, build};
use cudock_cli::BuildArgs;
use cudock_facts::Facts;
use cudock_image::write::Destination;

use crate::failure::{Failure, Outcome};
use crate::output::Format;
use crate::steps::build::{report, request};
use crate::steps::project::project;
use crate::steps::slim::{SlimRequest, slim};

pub(crate) fn run(facts: &Facts, args: &BuildArgs, format: Format) -> Result<Outcome, Failure> {
    let destination = args.output.as_deref().map(Destination::parse).transpose()?;
    let environment = Environment::of_process();
    if let Some(file) = &args.dockerfile {
        let archive = cudock_build::build_dockerfile(&args.path, file, &environment)?;
        let request = SlimRequest {
            input: format!("oci-archive:{}", archive.path().display()).into(),
            output: args.output.as_ref().map(PathBuf::from),
            targets: args.targets.clone(),
            compression: args.compression,
            ..SlimRequest::default()
        };
        return slim(facts, &request, format);
    }
    let project = project(&args.path)?;
    let lock = cudock_lock::locked(&project, facts)?;
    let request = BuildRequest {
        lock: &lock,
        targets: &args.targets,
        destination: destination.as_ref(),
        compression: args.compression,
        explain: args.explain_size,
        ..request(&project, &lock, facts, &environment)?
    };
    let Built { report: built, .. } = build(&request)?;
    Ok(report(&built, args.explain_size, format))
}
