//! The verbs, one module each, and their dispatch.

mod bench;
mod build;
mod cdi;
mod check;
mod completion;
mod containers;
mod deploy;
mod doctor;
mod explain;
mod facts;
mod gateway;
mod groups;
mod init;
mod inspect;
mod lint;
mod lock;
mod lsp;
mod man;
mod migrate;
mod models;
mod nvml;
mod plan;
mod pointer;
mod prices;
mod progress;
mod runtime;
mod schema;
mod serve;
mod sign;
mod slim;
mod sweep;
mod transfer;

use cudock_cli::{Cli, GlobalArgs, JoinArgs, LspArgs, MonitorArgs, PruneArgs, Verb, WatchdogArgs};

pub(crate) use self::containers::unknown_flag_of_run;
pub(crate) use self::pointer::other_verb;
use self::prices::tables;
use crate::failure::{Failure, Outcome};
use crate::formats;
use crate::output;

/// Runs a verb. Fact tables are only loaded for verbs that use them, because others must start fast.
pub(crate) fn run(cli: Cli) -> Result<Outcome, Failure> {
    let Cli { global, verb } = cli;
    let GlobalArgs { facts: directory, format, quiet, verbose, color } = global;
    anstream::ColorChoice::from(color).write_global();
    if quiet {
        output::set_quiet();
    }
    if verbose {
        cudock_http::observe_requests(|request| output::status(request));
    }
    let directory = directory.as_deref();
    let facts = || tables(directory);
    let plain = formats::plain(format);
    match verb {
        Verb::Check(args) => check::run(&facts()?, &args, formats::findings(format)?),
        Verb::Lint(args) => lint::run(&facts()?, &args, formats::findings(format)?),
        Verb::Lsp(LspArgs {}) => plain.and_then(|_| lsp::run(&facts()?)),
        Verb::Migrate(args) => migrate::run(&facts()?, &args, formats::findings(format)?),
        Verb::Plan(args) => plan::run(&facts()?, &args, formats::plan(format)?),
        Verb::Sweep(args) => sweep::run(facts, &args, formats::plan(format)?, verbose),
        Verb::Cdi(args) => cdi::run(&args, format),

        Verb::Facts(args) => facts::run(&facts()?, &args, plain?),
        Verb::Explain(args) => explain::run(&facts()?, &args, plain?),
        Verb::Doctor(args) => doctor::run(&facts()?, &args, formats::doctor(format)?),
        Verb::Slim(args) => slim::run(&facts()?, &args, plain?),
        Verb::Build(args) => build::run(&facts()?, &args, plain?),
        Verb::Lock(args) => lock::run(&facts()?, &args, plain?),
        Verb::Runtime(args) => runtime::run(&facts()?, &args, plain?),
        Verb::Prices(args) => prices::run(directory, &args, plain?),
        Verb::Inspect(args) => inspect::run(&args, plain?),
        Verb::Bench(args) => bench::run(&args, plain?),
        Verb::Models(args) => models::run(&args, plain?),
        Verb::Schema(args) => plain.and_then(|_| schema::run(&args)),
        Verb::Gateway(args) => plain.and_then(|_| gateway::run(&args)),
        Verb::Serve(args) => plain.and_then(|_| serve::run(&args)),

        Verb::Run(args) => plain.and_then(|_| containers::run(&args)),
        Verb::Ps(args) => containers::ps(&args, plain?),
        Verb::Logs(args) => plain.and_then(|_| containers::logs(&args)),
        Verb::Exec(args) => plain.and_then(|_| containers::exec(&args)),
        Verb::Stop(args) => plain.and_then(|_| containers::stop(&args)),
        Verb::Kill(args) => plain.and_then(|_| containers::kill(&args)),
        Verb::Start(args) => plain.and_then(|_| containers::start(&args)),
        Verb::Restart(args) => plain.and_then(|_| containers::restart(&args)),
        Verb::Rm(args) => plain.and_then(|_| containers::rm(&args)),
        Verb::Cp(args) => plain.and_then(|_| containers::cp(&args)),
        Verb::Stats(args) => containers::stats(&args, plain?),
        Verb::Top(args) => containers::top(&args, plain?),
        Verb::Images(args) => containers::images(&args, plain?),
        Verb::Pull(args) => containers::pull(&args, plain?),
        Verb::Push(args) => transfer::push(&args, plain?),
        Verb::Copy(args) => transfer::copy(&args, plain?),
        Verb::Volume(args) => containers::volume(&args, plain?),
        Verb::Prune(PruneArgs {}) => containers::prune(plain?),
        Verb::Wait(args) => containers::wait(&args, plain?),
        Verb::InspectContainer(args) => plain.and_then(|_| containers::inspect(&args)),
        Verb::Up(args) => plain.and_then(|_| groups::up(&args, facts)),
        Verb::Down(args) => plain.and_then(|_| groups::down(&args)),
        Verb::Groups(args) => groups::groups(&args, plain?),
        Verb::Export(args) => plain.and_then(|_| deploy::export(&facts()?, &args)),
        Verb::Gc(args) => deploy::gc(&args, plain?),
        Verb::Resume(args) => plain.and_then(|_| deploy::resume(&args)),
        Verb::Cost(args) => deploy::cost(&facts()?, &args, plain?),
        Verb::Verify(args) => match &args.key {
            Some(key) => sign::verify(&args.name, key, plain?),
            None => deploy::verify(&facts()?, &args, plain?),
        },
        Verb::Sign(args) => sign::run(&args, plain?),

        Verb::Init(args) => init::run(facts, &args, plain?),
        Verb::Completion(args) => plain.map(|_| completion::run(&args)),
        Verb::Man(args) => plain.and_then(|_| man::run(&args)),

        Verb::CdiHook(args) => cdi::run_hook(&args),
        Verb::Monitor(args) => monitor(&args),
        Verb::Supervise(args) => groups::supervise(&args),
        Verb::Enter(args) => enter(&args),
        Verb::Join(args) => Ok(Outcome::Program(containers::join(&args)?)),
        Verb::Forward { handover } => Ok(Outcome::Program(containers::forward(&handover)?)),
        Verb::Watchdog(args) => watchdog(&args),
        Verb::Engine => Ok(serve::run_engine()),
        Verb::EngineOwner { command } => Ok(serve::run_engine_owner(command)),
        Verb::SweepWorker { lock } => sweep::run_worker(&lock),
        Verb::Nvml { library, processes } => Ok(nvml::run(library.as_deref(), processes)),
    }
}

/// Says that an argument names a file, where it could also be meant as the name of an image. An error if the file has the name of
/// an image with a digest.
fn note_local(text: &str) -> Result<(), Failure> {
    let Some(path) = cudock_image::local_path(text)?.filter(|_| !cudock_compat::is_file_name(text)) else {
        return Ok(());
    };
    // Few images have a name with an extension.
    let last = text.rsplit('/').next().unwrap_or_default();
    let has_extension = last.split(':').next().is_some_and(|name| name.contains('.'));
    if !has_extension && cudock_image::ImageSource::reference(text).is_ok() {
        let what = if path.is_dir() { "directory" } else { "file" };
        output::note(format!(
            "{text} is a {what} here, which is taken; the image of that name is docker://{text}"
        ));
    }
    Ok(())
}

/// An error if the argument of a verb that only takes files is a file with the name of an image with a digest.
fn refuse_digest(path: &std::path::Path) -> Result<(), Failure> {
    path.to_str().map(cudock_image::local_path).transpose()?;
    Ok(())
}

/// Enters a container on behalf of the process that joins it.
fn enter(args: &JoinArgs) -> Result<Outcome, Failure> {
    Ok(Outcome::Program(containers::enter(args)?))
}

/// Watches the deployment that this runs in, and deletes it.
fn watchdog(args: &WatchdogArgs) -> Result<Outcome, Failure> {
    cudock_watchdog::run(&args.options(), &cudock_base::Environment::of_process(), |line| {
        output::status(line)
    })?;
    Ok(Outcome::Yes)
}

/// Watches a container.
fn monitor(args: &MonitorArgs) -> Result<Outcome, Failure> {
    Ok(Outcome::Program(containers::monitor(args)?))
}
