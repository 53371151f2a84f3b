//! The verbs for containers, images and volumes, and the hidden ones that they need.

pub(super) mod cdi;
mod docker_flags;
mod hidden;
mod life;
pub(super) mod reports;
mod request;
mod stats;
mod text;
mod volume;

use std::collections::BTreeMap;
use std::io::IsTerminal;

use cudock_base::text::format::fixed_bytes;
use cudock_cli::{
    EngineChoice, ExecArgs, InspectContainerArgs, LogsArgs, PsArgs, RmArgs, RunArgs, StopArgs, WaitArgs,
};
use cudock_image::write::WriteOptions;
use cudock_image::{Access, ImageSource};
use cudock_runtime::RuntimeError;
use cudock_runtime::cgroup::warmup;
use cudock_runtime::container::exec::ExecRequest;
use cudock_runtime::engine::{Engine, LogRequest, RunImage, RunRequest};
use cudock_runtime::flags;
use cudock_runtime::namespace::rootless;
use cudock_trust::{ImageSigner, PublicKey, SignReport, TrustedImage};

pub(crate) use self::docker_flags::unknown_flag_of_run;
pub(crate) use self::hidden::{enter, forward, join, monitor};
pub(crate) use self::life::{cp, images, kill, pull, restart, start, top};
use self::reports::{PruneReport, PsReport, WaitReport};
pub(crate) use self::stats::stats;
pub(crate) use self::volume::volume;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line, status, table};
use crate::steps::cloud;
use crate::steps::engine::{builtin, engine, engine_of, engine_of_all, find_group, home, plain_engine};
use crate::steps::images::{access, platform, progress};

/// `cudock run`.
pub(crate) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    let platform = platform(args.platform.as_deref())?;
    if matches!(args.engine.engine, EngineChoice::Auto | EngineChoice::Cudock) && rootless::is_root() {
        warmup::start();
    }
    let access = Access { platform, offline: args.offline, pull: args.pull, progress: progress() };
    let engine = engine(args.engine.engine, access.clone())?;
    let mut request = request::request(args)?;
    let key = args.require_proof.as_deref().map(PublicKey::read).transpose()?;
    let signer = args.sign_proof.as_deref().map(ImageSigner::read).transpose()?;
    let mut image = engine.find_image(&request.config.image)?;
    if let Some(key) = key {
        image = proven(&access, &request.config.image, image, &key)?;
    }
    if let Some(signer) = signer {
        let report = prove(engine.as_ref(), &request, &image, &signer)?;
        status(format!("proof attached to {}", report.digest));
        request.config.verify_gpu = false;
    }
    Ok(Outcome::Program(engine.run(request, &image)?))
}

/// The image, if a key signed a proof for it.
fn proven(access: &Access, name: &str, image: RunImage, key: &PublicKey) -> Result<RunImage, Failure> {
    match image {
        RunImage::Found(found) => Ok(RunImage::Found(TrustedImage::of(found)?.proven(key)?)),
        RunImage::Rootfs(_) => Err(Failure::input("--require-proof with --rootfs: only images have proofs")),
        RunImage::Named => {
            let source = ImageSource::parse(name)?;
            if source.is_local() {
                return Err(Failure::input(format!("--require-proof: another engine opens {name} again"))
                    .hint("leave --engine out, or use an image of a registry by its digest"));
            }
            // The engine looks it up again, by the digest that was verified.
            TrustedImage::of(access.find_source(source)?)?.proven(key)?;
            Ok(RunImage::Named)
        }
    }
}

/// Computes on the GPUs from inside the image, and signs the result.
fn prove(
    engine: &dyn Engine,
    request: &RunRequest,
    image: &RunImage,
    signer: &ImageSigner,
) -> Result<SignReport, Failure> {
    let RunImage::Found(found) = image else {
        return Err(Failure::input("--sign-proof needs an image that cudock's own engine starts"));
    };
    let trusted = TrustedImage::of(found.clone())?;
    trusted.check_provable()?;
    let report = engine.verify_gpus(request, image)?;
    status(report.text().trim_end());
    Ok(trusted.prove(signer, &report, &WriteOptions::from_environment(progress())?)?)
}

/// `cudock ps`.
pub(crate) fn ps(args: &PsArgs, format: Format, is_quiet: bool) -> Result<Outcome, Failure> {
    let containers = plain_engine(&args.engine)?.list(args.all)?;
    if is_quiet && format == Format::Text {
        for container in &containers {
            line(&container.id);
        }
        return Ok(Outcome::Yes);
    }
    let deployments = cloud::deployments(args.all, args.offline)?;
    match format {
        Format::Text => {
            if !deployments.is_empty() {
                table(&cudock_deploy::text::ps(&deployments));
                line("");
            }
            text::list(&containers);
        }
        Format::Json => output::report(&PsReport { deployments: &deployments, containers: &containers }),
    }
    Ok(Outcome::Yes)
}

/// `cudock logs`.
pub(crate) fn logs(args: &LogsArgs) -> Result<Outcome, Failure> {
    if let Some(record) = cloud::deployment_named(&args.container)? {
        return cloud::logs(&record, args.follow);
    }
    let tail = match args.tail.as_deref() {
        None | Some("all") => None,
        Some(text) => Some(text.parse().map_err(|_| {
            Failure::input(format!("--tail {text} is not a number of lines"))
                .hint("--tail 100, or --tail all")
        })?),
    };
    let moment = |flag, text: &Option<String>| {
        text.as_deref()
            .map(|text| flags::point_in_time(flag, text, cudock_runtime::container::status::now()))
            .transpose()
    };
    let request = LogRequest {
        follow: args.follow,
        tail,
        timestamps: args.timestamps,
        since: moment("--since", &args.since)?,
        until: moment("--until", &args.until)?,
    };
    if let Some(group) = find_group(&args.engine, &args.container)? {
        cudock_runtime::group::logs(&home()?, &group, request)?;
        return Ok(Outcome::Yes);
    }
    engine_of(&args.engine, Some(&args.container))?.logs(&args.container, request)?;
    Ok(Outcome::Yes)
}

/// `cudock exec`.
pub(crate) fn exec(args: &ExecArgs) -> Result<Outcome, Failure> {
    let request = ExecRequest {
        args: args.command.clone(),
        environment: flags::variables(&args.env, &[])?,
        user: args.user.clone(),
        cwd: args.workdir.clone(),
        tty: args.tty,
        stdin: args.interactive,
    };
    if let Some(record) = cloud::deployment_named(&args.container)? {
        return cloud::exec(&record, &request);
    }
    if args.interactive && args.tty && !std::io::stdin().is_terminal() {
        return Err(request::not_a_terminal());
    }
    let container = match find_group(&args.engine, &args.container)? {
        Some(group) => group.only_container()?,
        None => args.container.clone(),
    };
    Ok(Outcome::Program(engine_of(&args.engine, Some(&container))?.exec(&container, &request)?))
}

/// `cudock stop`.
pub(crate) fn stop(args: &StopArgs) -> Result<Outcome, Failure> {
    let containers = &args.targets.containers;
    each(containers, engine_of_all(&args.targets)?.stop_all(containers, args.time))
}

/// `cudock rm`.
pub(crate) fn rm(args: &RmArgs) -> Result<Outcome, Failure> {
    let engine = engine_of(&args.engine, args.containers.first())?;
    let containers = if args.all {
        engine.list(true)?.into_iter().map(|container| container.name).collect()
    } else {
        args.containers.clone()
    };
    let removed = containers.iter().map(|container| engine.remove(container, args.force)).collect();
    each(&containers, removed)
}

/// Prints the containers that succeeded. The first error is returned, after all others were printed.
fn each(containers: &[String], results: Vec<Result<(), RuntimeError>>) -> Result<Outcome, Failure> {
    let mut failures = Vec::new();
    for (container, result) in containers.iter().zip(results) {
        match result {
            Ok(()) => line(container),
            Err(error) => failures.push(Failure::from(error)),
        }
    }
    let mut failures = failures.into_iter();
    let Some(first) = failures.next() else { return Ok(Outcome::Yes) };
    failures.for_each(|failure| failure.print());
    Err(first)
}

/// `cudock prune`.
pub(crate) fn prune(format: Format) -> Result<Outcome, Failure> {
    let engine = builtin(access(None, false))?;
    let pruned = engine.prune()?;
    let groups = engine.home.prune_groups()?;
    match format {
        Format::Text => {
            line(format!("removed {} layers, {}", pruned.layers, fixed_bytes(pruned.bytes)));
            if groups > 0 {
                line(format!("removed control groups of {groups} containers"));
            }
        }
        Format::Json => {
            let (layers, bytes) = (pruned.layers, pruned.bytes);
            output::report(&PruneReport { layers, bytes, control_groups: groups });
        }
    }
    Ok(Outcome::Yes)
}

/// `cudock wait`.
pub(crate) fn wait(args: &WaitArgs, format: Format) -> Result<Outcome, Failure> {
    let engine = plain_engine(&args.engine)?;
    let mut exit_codes = BTreeMap::new();
    for container in &args.containers {
        let code = match find_group(&args.engine, container)? {
            Some(group) => cudock_runtime::group::wait(&home()?, &group)?,
            None => engine.wait(container)?,
        };
        if format == Format::Text {
            line(code.to_string());
        }
        exit_codes.insert(container.as_str(), code);
    }
    if format != Format::Text {
        output::report(&WaitReport { exit_codes });
    }
    Ok(Outcome::Yes)
}

/// `cudock inspect-container`.
pub(crate) fn inspect(args: &InspectContainerArgs) -> Result<Outcome, Failure> {
    let engine = engine_of_all(&args.targets)?;
    let known: Result<Vec<_>, _> = args.targets.containers.iter().map(|name| engine.inspect(name)).collect();
    match <[_; 1]>::try_from(known?) {
        Ok([only]) => output::report(&only),
        Err(several) => output::report(&serde_json::json!({ "containers": several })),
    }
    Ok(Outcome::Yes)
}
