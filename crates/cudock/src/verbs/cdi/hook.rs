//! The hidden verb that engines call while they make a container.

use clap::{Args, Subcommand};
use cudock_facts::version::DriverVersion;
use cudock_inject::cdi::hook::{self, Call, Stage};

use crate::failure::{Failure, Outcome};

/// What specifications written by `cudock cdi` call; reads the container's state from standard input
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
    /// Make links
    CreateSymlinks {
        /// What the link says and where it is made
        #[arg(long = "link", value_name = "TARGET::PATH")]
        links: Vec<String>,
    },
    /// Tell the loader of libraries
    UpdateLdcache {
        /// Bits, name and place
        #[arg(long = "library", value_name = "BITS::NAME::PATH")]
        libraries: Vec<String>,

        /// The driver they are of
        #[arg(long, value_name = "VERSION")]
        driver: Option<DriverVersion>,
    },
    /// Keep the driver in the container from making device nodes
    DisableDeviceNodeModification,
    /// Tell EGL and Vulkan which GPUs the container has
    UpdateApplicationProfile,
}

pub(super) fn run(words: &CdiHookArgs) -> Result<Outcome, Failure> {
    let call = call(&words.what)?;
    let called_at = if words.join { Stage::Runtime } else { Stage::Container };
    hook::run(&call, called_at, std::io::stdin().lock())?;
    Ok(Outcome::Yes)
}

fn call(what: &HookVerb) -> Result<Call, cudock_inject::InjectError> {
    Ok(match what {
        HookVerb::CreateSymlinks { links } => {
            Call::CreateSymlinks(links.iter().map(|word| hook::read_link(word)).collect::<Result<_, _>>()?)
        }
        HookVerb::UpdateLdcache { libraries, driver } => Call::UpdateLdcache(
            libraries.iter().map(|word| hook::read_library(word)).collect::<Result<_, _>>()?,
            *driver,
        ),
        HookVerb::DisableDeviceNodeModification => Call::DisableDeviceNodeModification,
        HookVerb::UpdateApplicationProfile => Call::UpdateApplicationProfile,
    })
}
