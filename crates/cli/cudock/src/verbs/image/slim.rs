//! `cudock slim`.

use cudock_cli::SlimArgs;
use cudock_facts::Facts;

use crate::failure::{Failure, Outcome};
use crate::output::Format;
use crate::steps::slim::{SlimRequest, slim};

pub(crate) fn run(facts: &Facts, args: SlimArgs, format: Format) -> Result<Outcome, Failure> {
    let request = SlimRequest {
        input: args.input,
        output: args.output,
        targets: args.targets,
        compact: args.compact,
        compression: args.compression,
        remove_unused: args.remove_unused,
        in_place: args.in_place,
        dry_run: args.dry_run,
    };
    slim(facts, &request, format)
}
