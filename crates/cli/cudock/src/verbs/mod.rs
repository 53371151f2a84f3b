//! The verbs, one module each, and their dispatch.

mod containers;
mod deploy;
mod image;
mod judge;
mod serving;
mod shell;
mod sweep;

use cudock_cli::{
    Cli, GlobalArgs, ImagesArgs, JoinArgs, LspArgs, MonitorArgs, PruneArgs, Verb, WatchdogArgs,
};

pub(crate) use self::containers::unknown_flag_of_run;
use crate::failure::{Failure, Outcome};
use crate::formats;
use crate::output;
use crate::steps::serve::{run_engine, run_engine_owner};
use crate::steps::tables::tables;
use crate::verbs::containers::cdi;
use crate::verbs::deploy::{deployments, groups, plan};
use crate::verbs::image::{build, lock, sign, slim, transfer};
use crate::verbs::judge::{check, doctor, explain, facts, init, inspect, lint, lsp, migrate, nvml, prices};
use crate::verbs::serving::{bench, gateway, models, runtime, serve};
use crate::verbs::shell::{completion, man, schema};

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
        Verb::Lint(args) => lint::run(&facts()?, &args, formats::findings(format)?, verbose),
        Verb::Lsp(LspArgs {}) => plain.and_then(|_| lsp::run(&facts()?)),
        Verb::Migrate(args) => migrate::run(&facts()?, &args, formats::findings(format)?, verbose),
        Verb::Plan(args) => plan::run(&facts()?, &args, formats::plan(format)?, verbose),
        Verb::Sweep(args) => sweep::run(facts, &args, formats::plan(format)?, verbose),
        Verb::Cdi(args) => cdi::run(&args, format),

        Verb::Facts(args) => facts::run(&facts()?, &args, plain?, verbose),
        Verb::Explain(args) => explain::run(&facts()?, &args, plain?, verbose),
        Verb::Doctor(args) => doctor::run(&facts()?, &args, formats::doctor(format)?, verbose),
        Verb::Slim(args) => slim::run(&facts()?, args, plain?),
        Verb::Build(args) => build::run(&facts()?, &args, plain?),
        Verb::Lock(args) => lock::run(&facts()?, &args, plain?),
        Verb::Runtime(args) => runtime::run(&facts()?, &args, plain?),
        Verb::Prices(args) => prices::run(directory, &args, plain?),
        Verb::Inspect(args) => inspect::run(&args, plain?),
        Verb::Bench(args) => bench::run(&args, plain?),
        Verb::Models(args) => models::run(&args, plain?),
        Verb::Schema(args) => plain.and_then(|_| schema::run(&args)),
        Verb::Gateway(args) => plain.and_then(|_| gateway::run(&args)),
        Verb::Serve(args) => plain.and_then(|_| serve::run(*args)),

        Verb::Run(args) => plain.and_then(|_| containers::run(&args)),
        Verb::Ps(args) => containers::ps(&args, plain?, quiet),
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
        Verb::Images(ImagesArgs {}) => containers::images(plain?, quiet),
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
        Verb::Export(args) => plain.and_then(|_| deployments::export(&facts()?, &args)),
        Verb::Gc(args) => deployments::gc(&args, plain?),
        Verb::Resume(args) => plain.and_then(|_| deployments::resume(&args)),
        Verb::Cost(args) => deployments::cost(&facts()?, &args, plain?),
        Verb::Verify(args) => match &args.key {
            Some(key) => sign::verify(&args.name, key, plain?),
            None => deployments::verify(&facts()?, &args, plain?),
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
        Verb::Engine => Ok(run_engine()),
        Verb::EngineOwner { command } => Ok(run_engine_owner(command)),
        Verb::SweepWorker { lock } => sweep::run_worker(&lock),
        Verb::Nvml { library, processes } => Ok(nvml::run(library.as_deref(), processes)),
    }
}

/// Enters a container on behalf of the process that joins it.
fn enter(args: &JoinArgs) -> Result<Outcome, Failure> {
    Ok(Outcome::Program(containers::enter(args)?))
}

/// Watches the deployment that this runs in, and deletes it.
fn watchdog(args: &WatchdogArgs) -> Result<Outcome, Failure> {
    cudock_watchdog::run(&args.options(), &cudock_base::Environment::of_process(), |line| {
        output::status(line);
    })?;
    Ok(Outcome::Yes)
}

/// Watches a container.
fn monitor(args: &MonitorArgs) -> Result<Outcome, Failure> {
    Ok(Outcome::Program(containers::monitor(args)?))
}
