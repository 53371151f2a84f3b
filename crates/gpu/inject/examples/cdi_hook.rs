//! The hook of a CDI specification, as container engines call it. The tests put it in the place of `cudock`, which this
//! crate cannot build.

use std::env;
use std::error::Error;

use cudock_inject::cdi::hook::{self, HookCall, Stage};

fn main() -> Result<(), Box<dyn Error>> {
    // The first argument is the subcommand of `cudock`.
    let arguments: Vec<String> = env::args().skip(2).collect();
    let values = || arguments.iter().filter(|argument| argument.contains("::"));
    let call = match arguments.first().map(String::as_str) {
        Some("create-symlinks") => {
            HookCall::CreateSymlinks(values().map(|value| hook::parse_link(value)).collect::<Result<_, _>>()?)
        }
        Some("update-ldcache") => HookCall::UpdateLdcache(
            values().map(|value| hook::parse_library(value)).collect::<Result<_, _>>()?,
            None,
        ),
        Some("disable-device-node-modification") => HookCall::DisableDeviceNodeModification,
        Some("update-application-profile") => HookCall::UpdateApplicationProfile,
        other => return Err(format!("unknown hook {other:?}").into()),
    };
    if arguments.last().is_none_or(|argument| argument != "--join") {
        return Err("a hook is called with --join last".into());
    }
    hook::run(&call, Stage::Runtime, std::io::stdin().lock())?;
    Ok(())
}
