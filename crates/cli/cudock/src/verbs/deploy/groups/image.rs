//! `cudock up` of a project with an `[image]`.

use std::path::Path;
use std::sync::Arc;

use cudock_base::Environment;
use cudock_build::{BuildRequest, published_ports, text};
use cudock_cli::UpArgs;
use cudock_facts::Facts;
use cudock_image::write::Destination;
use cudock_image::{Access, Pull};
use cudock_lock::{LockError, PackageFetcher, Upgrade};
use cudock_project::Project;
use cudock_runtime::cgroup::warmup;
use cudock_runtime::engine::{Engine as _, RunRequest};
use cudock_runtime::flags;
use cudock_runtime::namespace::rootless;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, note};
use crate::steps::build;
use crate::steps::engine::builtin;
use crate::steps::images::access;
use crate::steps::progress::Lines;

/// Locks the project if it never was, builds the image and runs it.
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
    let request = BuildRequest {
        destination: Some(&destination),
        ..build::request(&project, &lock, facts, &environment)?
    };
    let built = cudock_build::build(&request)?.report;
    if !built.runs() {
        return Ok(build::report(&built, false, Format::Text));
    }
    text::lines(&built, false).into_iter().for_each(output::status);
    run(&name, &published_ports(&project, args.port), args)
}

/// Runs an image of the cache, as `cudock run --rm --pull never` does.
fn run(image: &str, ports: &[String], args: &UpArgs) -> Result<Outcome, Failure> {
    if rootless::is_root() {
        warmup::start();
    }
    let mut request = RunRequest::of_image(image)?;
    if let Some(name) = &args.name {
        flags::check_name(name)?;
        request.config.name.clone_from(name);
    }
    request.config.network.publish = flags::ports(ports, &request.config.network.mode, &|text| note(text))?;
    request.config.remove = true;
    request.detach = args.detach;
    // The image is in the cache, and nowhere else.
    request.pull = Some(Pull::Never);
    let engine = builtin(Access { pull: request.pull, ..access(None, false) })?;
    let image = engine.find_image(&request.config.image)?;
    Ok(Outcome::Program(engine.run(request, &image)?))
}
