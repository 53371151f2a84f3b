//! Runs a program under a seccomp filter: `confined PROFILE CAPABILITIES PROGRAM [ARGUMENT...]`.
//!
//! The profile is `builtin`, `unconfined` or a file, the capabilities are separated by blanks.

use std::env;
use std::error::Error;
use std::os::unix::process::CommandExt;
use std::process::Command;

use cudock_confine::Capability;
use cudock_confine::seccomp::{Filter, FilterContext, Profile};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(profile), Some(capabilities), Some(program)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: confined PROFILE CAPABILITIES PROGRAM [ARGUMENT...]".into());
    };
    let capabilities: Vec<Capability> =
        capabilities.split_whitespace().map(Capability::from_name).collect::<Result<_, _>>()?;
    let filter = match profile.as_str() {
        "unconfined" => None,
        "builtin" => Some(Filter::for_capabilities(&capabilities)?),
        path => {
            let profile = Profile::from_json(&std::fs::read(path)?)?;
            Some(Filter::new(&profile, &FilterContext::here(&capabilities))?)
        }
    };
    rustix::thread::set_no_new_privs(true)?;
    if let Some(filter) = filter {
        filter.install()?;
    }
    Err(Command::new(program).args(arguments).exec().into())
}
