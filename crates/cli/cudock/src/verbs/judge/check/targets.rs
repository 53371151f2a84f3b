//! The targets that were named on the command line.

use cudock_cli::{CheckArgs, Start};
use cudock_compat::{StartPath, Target};
use cudock_facts::Facts;
use cudock_host::{Root, examine, probe};

use crate::failure::Failure;
use crate::output;
use crate::steps::nvml::ask_nvml;

pub(crate) fn chosen(facts: &Facts, args: &CheckArgs) -> Result<Vec<Target>, Failure> {
    let today = output::today();
    let mut targets = Vec::new();
    for name in &args.gpu {
        targets.push(Target::of_gpu(facts, name, args.driver)?);
    }
    for name in &args.size {
        targets.push(Target::of_size(facts, name, args.driver, today)?);
    }
    if args.all_sizes {
        targets.extend(Target::all_sizes(facts, args.driver, today));
    }
    let named = !targets.is_empty();
    if args.host || !named {
        let host = probe::read(&Root::live(), &ask_nvml);
        let diagnosis = examine(&host, facts, today);
        if !args.host && diagnosis.gpus.is_empty() {
            return Err(Failure::input("no target was named, and this machine has no GPU")
                .hint("name one: --gpu T4, --size Standard_NC4as_T4_v3, --all-sizes, or --host"));
        }
        targets.extend(Target::of_host(facts, &host, &diagnosis));
    }
    let start = match args.start {
        Start::Hook => StartPath::Hook,
        Start::Cdi => StartPath::Cdi,
    };
    for target in &mut targets {
        target.traits.start = start;
    }
    Ok(targets)
}
