//! `cudock build`: the image of a project, from its lock or from its Dockerfile.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_base::Environment;
use cudock_build::{BuildRequest, Built, build, text};
use cudock_cli::{BuildArgs, RunArgs, UpArgs};
use cudock_facts::Facts;
use cudock_image::Pull;
use cudock_image::write::Destination;
use cudock_lock::{LockError, PackageFetcher, Upgrade};
use cudock_project::Project;

use super::containers::{self, reports};
use super::lock::project;
use super::progress::Lines;
use super::slim;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line};
use cudock_cli::SlimArgs;

pub(super) fn run(facts: &Facts, args: &BuildArgs, format: Format) -> Result<Outcome, Failure> {
    let destination = args.output.as_deref().map(Destination::parse).transpose()?;
    let environment = Environment::of_process();
    if let Some(file) = &args.dockerfile {
        let archive = cudock_build::build_dockerfile(&args.path, file, &environment)?;
        let slim = SlimArgs {
            input: format!("oci-archive:{}", archive.path().display()).into(),
            output: args.output.as_ref().map(PathBuf::from),
            targets: args.targets.clone(),
            compact: false,
            compression: args.compression,
            remove_unused: false,
            in_place: false,
            dry_run: false,
        };
        return slim::run(facts, &slim, format);
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

fn report(built: &cudock_build::BuildReport, explain: bool, format: Format) -> Outcome {
    match format {
        Format::Json => reports::print(built),
        Format::Text => text::lines(built, explain).iter().for_each(line),
    }
    if built.runs() { Outcome::Yes } else { Outcome::No }
}

fn request<'a>(
    project: &'a Project,
    lock: &'a cudock_lock::LockFile,
    facts: &'a Facts,
    environment: &'a Environment,
) -> Result<BuildRequest<'a>, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::outside(format!("cannot find cudock itself: {error}")))?;
    let (today, progress) = (output::today(), Arc::new(Lines::default()));
    let (targets, destination, compression) = (&[] as &[String], None, None);
    Ok(BuildRequest {
        project,
        lock,
        facts,
        environment,
        targets,
        destination,
        compression,
        program,
        explain: false,
        today,
        progress,
    })
}

/// `cudock up` of a project with an `[image]`: locks it if it never was, builds the image and runs it.
pub(super) fn up(directory: &Path, args: &UpArgs, facts: &Facts) -> Result<Outcome, Failure> {
    let (project, environment) = (Project::open(directory)?, Environment::of_process());
    let lock = match cudock_lock::locked(&project, facts) {
        Err(LockError::Missing { .. }) => {
            let fetcher = PackageFetcher::new(&environment, Arc::new(Lines::default()))?;
            cudock_lock::lock(&project, facts, &environment, &fetcher, &Upgrade::No)?;
            cudock_lock::locked(&project, facts)?
        }
        known => known?,
    };
    let name = format!("localhost/{}:latest", project.name().to_ascii_lowercase());
    let destination = Destination::parse(&format!("cache:{name}"))?;
    let request =
        BuildRequest { destination: Some(&destination), ..request(&project, &lock, facts, &environment)? };
    let built = build(&request)?.report;
    if !built.runs() {
        return Ok(report(&built, false, Format::Text));
    }
    text::lines(&built, false).into_iter().for_each(output::status);
    let mut run = RunArgs::of_image(&name);
    // The image is in the cache, and nowhere else.
    (run.pull, run.rm) = (Some(Pull::Never), true);
    (run.detach, run.name) = (args.detach, args.name.clone());
    run.network.publish = cudock_build::published_ports(&project, args.port);
    containers::run(&run)
}
