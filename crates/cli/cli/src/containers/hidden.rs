//! The hidden verbs: helper processes of containers.

use std::path::PathBuf;

use clap::Args;

/// Arguments of a watcher.
#[derive(Debug, Args)]
pub struct MonitorArgs {
    /// The container's directory.
    pub container: PathBuf,
    /// The descriptor of the input.
    #[arg(long)]
    pub handed: i32,
    /// Whether it shares our input and outputs.
    #[arg(long)]
    pub attached: bool,
    /// The descriptor to report the start on.
    #[arg(long)]
    pub ready: Option<i32>,
    /// Whether it is killed with the process that started it.
    #[arg(long)]
    pub tied: bool,
    /// Whether it only verifies the GPUs.
    #[arg(long)]
    pub verify: bool,
    /// The descriptor of the lock on the container.
    #[arg(long)]
    pub lock: Option<i32>,
}

/// Arguments of a joining process.
#[derive(Debug, Args)]
pub struct JoinArgs {
    /// The descriptor of the input.
    #[arg(long)]
    pub handed: i32,
}
