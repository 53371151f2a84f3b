//! Which places were asked about.

use cudock_compat::{StartPath, Target};
use cudock_facts::Facts;
use cudock_host::{Root, examine, probe};

use crate::cli::{CheckArgs, Start};
use crate::failure::Failure;
use crate::output;
use crate::verbs::doctor::ask_nvml;

pub(super) fn chosen(facts: &Facts, words: &CheckArgs) -> Result<Vec<Target>, Failure> {
    let today = output::today();
    let mut targets = Vec::new();
    for name in &words.gpu {
        targets.push(Target::of_gpu(facts, name, words.driver)?);
    }
    for name in &words.size {
        targets.push(Target::of_size(facts, name, words.driver, today)?);
    }
    if words.all_sizes {
        targets.extend(Target::all_sizes(facts, words.driver, today));
    }
    let named = !targets.is_empty();
    if words.host || !named {
        let host = probe::read(&Root::live(), &ask_nvml);
        let diagnosis = examine(&host, facts, today);
        if !words.host && diagnosis.gpus.is_empty() {
            return Err(Failure::input("no target was named, and this machine has no GPU")
                .hint("name one: --gpu T4, --size Standard_NC4as_T4_v3, --all-sizes, or --host"));
        }
        targets.extend(Target::of_host(facts, &host, &diagnosis));
    }
    let start = match words.start {
        Start::Hook => StartPath::Hook,
        Start::Cdi => StartPath::Cdi,
    };
    for target in &mut targets {
        target.traits.start = start;
    }
    Ok(targets)
}
