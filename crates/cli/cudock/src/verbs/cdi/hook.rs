//! The hidden verb that engines call while they create a container.

use clap::{Args, Subcommand};
use cudock_facts::version::DriverVersion;
use cudock_inject::cdi::hook::{self, HookCall, Stage};

use crate::failure::{Failure, Outcome};

/// Run a hook of a specification; reads the container's state from standard input
#[derive(Debug, Args)]
pub(crate) struct CdiHookArgs {
    #[command(subcommand)]
    pub(crate) what: HookVerb,

    /// Join the container's mount namespace, as `createRuntime` hooks have to
    #[arg(long, global = true)]
    pub(crate) join: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HookVerb {
    /// Create links
    CreateSymlinks {
        /// Target and path of a link
        #[arg(long = "link", value_name = "TARGET::PATH")]
        links: Vec<String>,
    },
    /// Add libraries to the loader's cache
    UpdateLdcache {
        /// Bits, name and path of a library
        #[arg(long = "library", value_name = "BITS::NAME::PATH")]
        libraries: Vec<String>,

        /// The version of the driver
        #[arg(long, value_name = "VERSION")]
        driver: Option<DriverVersion>,
    },
    /// Keep the driver in the container from creating device nodes
    DisableDeviceNodeModification,
    /// Tell EGL and Vulkan which GPUs the container has
    UpdateApplicationProfile,
}

pub(super) fn run(args: &CdiHookArgs) -> Result<Outcome, Failure> {
    let call = call(&args.what)?;
    let called_at = if args.join { Stage::Runtime } else { Stage::Container };
    hook::run(&call, called_at, std::io::stdin().lock())?;
    Ok(Outcome::Yes)
}

fn call(what: &HookVerb) -> Result<HookCall, cudock_inject::InjectError> {
    Ok(match what {
        HookVerb::CreateSymlinks { links } => HookCall::CreateSymlinks(
            links.iter().map(|text| hook::parse_link(text)).collect::<Result<_, _>>()?,
        ),
        HookVerb::UpdateLdcache { libraries, driver } => HookCall::UpdateLdcache(
            libraries.iter().map(|text| hook::parse_library(text)).collect::<Result<_, _>>()?,
            *driver,
        ),
        HookVerb::DisableDeviceNodeModification => HookCall::DisableDeviceNodeModification,
        HookVerb::UpdateApplicationProfile => HookCall::UpdateApplicationProfile,
    })
}
