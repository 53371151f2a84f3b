//! The hidden verbs: processes that a container needs beside its own. Each has one thread.

use std::fs::File;
use std::path::PathBuf;

use clap::{Args, Parser};
use cudock_runtime::exec::Handover;
use cudock_runtime::home::ContainerDir;
use cudock_runtime::plan::Private;
use cudock_runtime::reexec;

use crate::failure::Failure;

/// What a watcher is told.
#[derive(Debug, Args)]
pub(crate) struct MonitorArgs {
    /// The container's directory.
    container: PathBuf,
    /// The descriptor of what is not in any file.
    #[arg(long)]
    handed: i32,
    /// Whether our input and outputs are the container's.
    #[arg(long)]
    attached: bool,
    /// The descriptor to say on how the start went.
    #[arg(long)]
    ready: Option<i32>,
    /// Whether we end with the process that started us.
    #[arg(long)]
    tied: bool,
}

/// The command line of a watcher. It is read apart from all the others: a container's start waits for it.
#[derive(Debug, Parser)]
pub(crate) struct MonitorCli {
    #[command(flatten)]
    pub(crate) args: MonitorArgs,
}

/// The command line of a process that enters a container, which its start waits for, too.
#[derive(Debug, Parser)]
pub(crate) struct EnterCli {
    #[command(flatten)]
    pub(crate) args: JoinArgs,
}

/// What a joining process is told.
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// The descriptor of the request.
    #[arg(long)]
    handed: i32,
}

/// The hidden verb that watches a container.
pub(crate) fn monitor(words: &MonitorArgs) -> Result<i32, Failure> {
    let dir = ContainerDir::at(&words.container);
    let private: Private = reexec::inherited(words.handed)?;
    let ready: Option<File> = words.ready.map(reexec::take_over);
    if words.tied {
        reexec::end_with_parent();
    } else if !words.attached {
        reexec::leave_session();
    }
    let connection = cudock_runtime::Connection { attached: words.attached, ready };
    match cudock_runtime::watch(&dir, &private, connection) {
        Ok(code) => Ok(code),
        // Whoever waits for `ready` prints it.
        Err(error) if words.ready.is_some() => Ok(cudock_runtime::exit_code(&error)),
        Err(error) => Err(Failure::from(error)),
    }
}

/// The hidden verb that joins a container.
pub(crate) fn join(words: &JoinArgs) -> Result<i32, Failure> {
    let handover: Handover = reexec::inherited(words.handed)?;
    let dir = ContainerDir::at(&handover.container);
    let plan = dir.plan()?;
    Ok(cudock_runtime::exec::exec(&dir, &plan, &handover.request)?)
}

/// The hidden verb that enters a container on behalf of the one that joins it.
pub(crate) fn enter(args: &JoinArgs) -> Result<i32, Failure> {
    cudock_runtime::enter(args.handed)?;
    Ok(0)
}

/// The hidden verb that carries connections into a container's network.
pub(crate) fn forward(handover: &str) -> Result<i32, Failure> {
    // One that takes the place of another is started by a process that blocks signals.
    reexec::unblock_signals();
    let handover = cudock_netns::forward::Handover::decode(handover)?;
    cudock_netns::forward::serve(&handover)?;
    Ok(0)
}
