//! The hidden verbs: helper processes of containers. Each has one thread.

use std::fs::File;

use cudock_cli::{JoinArgs, MonitorArgs};
use cudock_runtime::container::config::Private;
use cudock_runtime::container::exec::ExecHandover;
use cudock_runtime::container::home::ContainerDir;
use cudock_runtime::container::status::Watch;
use cudock_runtime::namespace::reexec;

use crate::failure::Failure;

/// The hidden verb that watches a container.
pub(crate) fn monitor(args: &MonitorArgs) -> Result<i32, Failure> {
    let dir = ContainerDir::at(&args.container);
    let private: Private = reexec::inherited(args.handed)?;
    let ready: Option<File> = args.ready.map(reexec::take_over);
    if args.tied {
        reexec::end_with_parent();
    } else if !args.attached {
        reexec::leave_session();
    }
    let lock = args.lock.map(|lock| Watch::inherited(reexec::take_over(lock)));
    let connection = cudock_runtime::Connection { attached: args.attached, ready, lock };
    let watch = if args.verify { cudock_runtime::verify_gpus } else { cudock_runtime::watch };
    match watch(&dir, &private, connection) {
        Ok(code) => Ok(code),
        // The process that reads `ready` prints it.
        Err(error) if args.ready.is_some() => Ok(cudock_runtime::exit_code(&error)),
        Err(error) => Err(Failure::from(error)),
    }
}

/// The hidden verb that joins a container.
pub(crate) fn join(args: &JoinArgs) -> Result<i32, Failure> {
    let handover: ExecHandover = reexec::inherited(args.handed)?;
    let dir = ContainerDir::at(&handover.container);
    let config = dir.config()?;
    Ok(cudock_runtime::container::exec::exec(&dir, &config, &handover.request)?)
}

/// The hidden verb that enters a container on behalf of the one that joins it.
pub(crate) fn enter(args: &JoinArgs) -> Result<i32, Failure> {
    cudock_runtime::enter(args.handed)?;
    Ok(0)
}

/// The hidden verb that carries connections into a container's network.
pub(crate) fn forward(handover: &str) -> Result<i32, Failure> {
    let handover = cudock_netns::forward::Handover::decode(handover)?;
    cudock_netns::forward::serve(&handover)?;
    Ok(0)
}
