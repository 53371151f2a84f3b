//! `cudock models`: the models of a running server.

use cudock_base::text::table::TextTable;
use cudock_cli::{ModelsArgs, ModelsVerb};
use cudock_loadgen::{ModelRepository, ModelsReport};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};

pub(crate) fn run(args: &ModelsArgs, format: Format) -> Result<Outcome, Failure> {
    let mut server = ModelRepository::connect(&args.url, &args.header)?;
    let report = match &args.verb {
        None | Some(ModelsVerb::List) => server.list(),
        Some(ModelsVerb::Load { name }) => server.load(name),
        Some(ModelsVerb::Unload { name }) => server.unload(name),
    };
    let report = report?;
    match format {
        Format::Json => output::json(&report),
        Format::Text => output::table(&TextTable::list(&ModelsReport::TITLES, report.rows())),
    }
    Ok(Outcome::Yes)
}
