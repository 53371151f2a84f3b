//! One module a verb.

mod bench;
mod cdi;
mod check;
mod containers;
mod doctor;
mod explain;
mod facts;
mod groups;
mod inspect;
mod migrate;
mod nvml;
mod opened;
mod plan;
mod pointer;
mod prices;
mod progress;
mod runtime;
mod sarif;
mod serve;
mod slim;

use clap::Parser;

pub(crate) use self::bench::BenchArgs;
pub(crate) use self::cdi::{CdiArgs, CdiHookArgs};
pub(crate) use self::containers::{
    CpArgs, EnterCli, ExecArgs, ImagesArgs, InspectContainerArgs, JoinArgs, KillArgs, LogsArgs, MonitorArgs,
    MonitorCli, PruneArgs, PsArgs, PullArgs, RestartArgs, RmArgs, RunArgs, StartArgs, StatsArgs, StopArgs,
    TopArgs, VolumeArgs, WaitArgs,
};
pub(crate) use self::groups::{DownArgs, GroupsArgs, SuperviseArgs, UpArgs};
pub(crate) use self::migrate::MigrateArgs;
pub(crate) use self::plan::PlanArgs;
pub(crate) use self::pointer::other_verb;
pub(crate) use self::prices::PricesArgs;
use self::prices::tables;
pub(crate) use self::runtime::RuntimeArgs;
pub(crate) use self::serve::ServeArgs;
use crate::cli::{Cli, FormatWord, Verb};
use crate::failure::{Failure, Outcome};

/// Runs a watcher or a process that enters a container, if that is what this process was started for.
pub(crate) fn run_watcher() -> Option<Result<Outcome, Failure>> {
    let words = || std::env::args_os().skip(1);
    let verb = words().next()?;
    let code = match verb.to_str()? {
        "monitor" => containers::monitor(&MonitorCli::parse_from(words()).words),
        "enter" => containers::enter(&EnterCli::parse_from(words()).words),
        _ => return None,
    };
    Some(code.map(Outcome::Program))
}

/// Runs the verb that was asked for.
pub(crate) fn run(arguments: Cli) -> Result<Outcome, Failure> {
    let finds = matches!(arguments.verb, Verb::Check(_) | Verb::Migrate(_));
    if arguments.format == FormatWord::Sarif && !finds {
        return Err(Failure::input("--format sarif is for `check` and `migrate`").hint("use --format json"));
    }
    let verb = match arguments.verb {
        Verb::Plan(words) => {
            return plan::run(&tables(arguments.facts.as_deref())?, &words, arguments.format);
        }
        other => other,
    };
    let Some(format) = arguments.format.format() else {
        return Err(Failure::input("--format csv is for `plan`").hint("use --format json"));
    };
    // These need no tables, and some must start at once.
    let verb = match verb {
        Verb::Nvml { library, processes } => return Ok(nvml::run(library.as_deref(), processes)),
        Verb::Prices(words) => return prices::run(arguments.facts.as_deref(), &words, format),
        Verb::Inspect(words) => return inspect::run(&words, format),
        Verb::Serve(words) => return serve::run(&words),
        Verb::Bench(words) => return bench::run(&words, format),
        Verb::Engine => return Ok(serve::run_engine()),
        Verb::Run(words) => return containers::run(&words),
        Verb::Cdi(words) => return cdi::run(&words, format),
        Verb::CdiHook(words) => return cdi::run_hook(&words),
        Verb::Ps(words) => return containers::ps(&words, format),
        Verb::Logs(words) => return containers::logs(&words),
        Verb::Exec(words) => return containers::exec(&words),
        Verb::Stop(words) => return containers::stop(&words),
        Verb::Kill(args) => return containers::kill(&args),
        Verb::Start(args) => return containers::start(&args),
        Verb::Restart(args) => return containers::restart(&args),
        Verb::Cp(args) => return containers::cp(&args),
        Verb::Stats(args) => return containers::stats(&args, format),
        Verb::Top(args) => return containers::top(&args, format),
        Verb::Images(args) => return containers::images(&args, format),
        Verb::Pull(args) => return containers::pull(&args, format),
        Verb::Volume(args) => return containers::volume(&args, format),
        Verb::Rm(words) => return containers::rm(&words),
        Verb::Prune(_) => return containers::prune(format),
        Verb::Wait(words) => return containers::wait(&words, format),
        Verb::InspectContainer(words) => return containers::inspect(&words),
        Verb::Up(words) => return groups::up(&words),
        Verb::Down(words) => return groups::down(&words),
        Verb::Groups(words) => return groups::groups(&words, format),
        Verb::Supervise(words) => return groups::supervise(&words),
        Verb::Monitor(words) => return Ok(Outcome::Program(containers::monitor(&words)?)),
        Verb::Join(words) => return Ok(Outcome::Program(containers::join(&words)?)),
        Verb::Forward { handover } => return Ok(Outcome::Program(containers::forward(&handover)?)),
        other => other,
    };
    let facts = tables(arguments.facts.as_deref())?;
    match verb {
        Verb::Facts(words) => facts::run(&facts, &words, format),
        Verb::Explain(words) => explain::run(&facts, &words, format),
        Verb::Check(words) => check::run(&facts, &words, format),
        Verb::Migrate(words) => migrate::run(&facts, &words, format),
        Verb::Doctor(words) => doctor::run(&facts, &words, format),
        Verb::Slim(words) => slim::run(&facts, &words, format),
        Verb::Runtime(words) => runtime::run(&facts, &words, format),
        _ => unreachable!("answered above, without tables"),
    }
}
