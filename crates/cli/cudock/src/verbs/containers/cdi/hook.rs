//! The hidden verb that engines call while they create a container.

use cudock_cli::{CdiHookArgs, CdiHookVerb};
use cudock_inject::cdi::hook::{self, HookCall, Stage};

use crate::failure::{Failure, Outcome};

pub(crate) fn run(args: &CdiHookArgs) -> Result<Outcome, Failure> {
    let call = call(&args.what)?;
    let called_at = if args.join { Stage::Runtime } else { Stage::Container };
    hook::run(&call, called_at, std::io::stdin().lock())?;
    Ok(Outcome::Yes)
}

fn call(what: &CdiHookVerb) -> Result<HookCall, cudock_inject::InjectError> {
    Ok(match what {
        CdiHookVerb::CreateSymlinks { links } => HookCall::CreateSymlinks(
            links.iter().map(|text| hook::parse_link(text)).collect::<Result<_, _>>()?,
        ),
        CdiHookVerb::UpdateLdcache { libraries, driver } => HookCall::UpdateLdcache(
            libraries.iter().map(|text| hook::parse_library(text)).collect::<Result<_, _>>()?,
            *driver,
        ),
        CdiHookVerb::DisableDeviceNodeModification => HookCall::DisableDeviceNodeModification,
        CdiHookVerb::UpdateApplicationProfile => HookCall::UpdateApplicationProfile,
    })
}
