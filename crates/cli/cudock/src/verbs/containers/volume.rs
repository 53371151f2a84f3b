//! `cudock volume`: named volumes.

use cudock_base::text::table::TextTable;
use cudock_cli::{VolumeArgs, VolumeVerb};
use cudock_runtime::namespace::rootless;

use super::reports::VolumeReport;
use super::text::{age_of, joined_or_dash};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line, table};
use crate::steps::engine::home;

/// `cudock volume`.
pub(crate) fn volume(args: &VolumeArgs, format: Format) -> Result<Outcome, Failure> {
    rootless::become_root()?;
    let home = home()?;
    match &args.verb {
        VolumeVerb::Ls { quiet } => {
            let volumes = home.named_volumes()?;
            match format {
                Format::Text if *quiet => volumes.iter().for_each(|volume| line(&volume.name)),
                Format::Text => {
                    let rows = volumes.iter().map(|volume| {
                        let age = age_of(volume.created);
                        vec![volume.name.clone(), joined_or_dash(&volume.used_by), age]
                    });
                    table(&TextTable::list(&["NAME", "USED BY", "AGE"], rows.collect()));
                }
                Format::Json => output::report(&VolumeReport { volumes: volumes.iter().collect() }),
            }
        }
        VolumeVerb::Create { name } => {
            home.create_volume(name)?;
            line(name);
        }
        VolumeVerb::Inspect { names } => {
            let all = home.named_volumes()?;
            let found: Result<Vec<_>, Failure> = names
                .iter()
                .map(|name| {
                    all.iter().find(|volume| volume.name == *name).ok_or_else(|| {
                        Failure::input(format!("no volume `{name}`")).hint("`cudock volume ls` lists them")
                    })
                })
                .collect();
            output::report(&VolumeReport { volumes: found? });
        }
        VolumeVerb::Rm { names } => {
            for name in names {
                home.remove_volume(name)?;
                line(name);
            }
        }
        VolumeVerb::Prune { all } => {
            let unused = home.named_volumes()?.into_iter().filter(|volume| volume.used_by.is_empty());
            let unused: Vec<String> = unused.map(|volume| volume.name).collect();
            if !*all && !unused.is_empty() {
                return Err(Failure::input(format!("would remove {}", unused.join(", ")))
                    .hint("`cudock volume prune --all` removes them and everything in them"));
            }
            for name in &unused {
                home.remove_volume(name)?;
                line(name);
            }
        }
    }
    Ok(Outcome::Yes)
}
