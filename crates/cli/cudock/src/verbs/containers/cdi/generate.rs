//! `cudock cdi`: writes a specification.

use std::path::Path;

use cudock_cli::{CdiExtra, CdiGenerateArgs};
use cudock_inject::cdi::{CdiOptions, specification, write};
use cudock_inject::{Capabilities, DriverRoots, Extras};

use super::{driver, root};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line, status};

pub(crate) fn run(args: &CdiGenerateArgs, format: Format) -> Result<Outcome, Failure> {
    let devices = args.dev_root.as_deref().map(|path| root(Some(path))).transpose()?;
    let driver = driver(&DriverRoots::locate(root(args.root.as_deref())?, devices))?;
    let capabilities = Capabilities::parse(&args.capabilities, "--capabilities")?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::outside(format!("cannot locate the cudock executable: {error}")))?;
    let has = |extra| args.extras.contains(&extra);
    let options = CdiOptions {
        vendor: args.vendor.clone(),
        class: args.class.clone(),
        capabilities,
        extras: Extras {
            gds: has(CdiExtra::Gds),
            gdrcopy: has(CdiExtra::Gdrcopy),
            mofed: has(CdiExtra::Mofed),
            nvswitch: has(CdiExtra::Nvswitch),
            ..Extras::default()
        },
        program,
    };
    let (spec, warnings) = specification(&driver, &options)?;
    for warning in warnings {
        output::warning(warning);
    }
    let json = format == Format::Json || args.output.extension().is_some_and(|extension| extension == "json");
    let text = if json { spec.to_json() } else { spec.to_yaml() }?;
    if args.output == Path::new("-") {
        line(text.trim_end());
        return Ok(Outcome::Yes);
    }
    write(&args.output, &text).map_err(|error| {
        Failure::outside(format!("cannot write {}: {error}", args.output.display()))
            .hint("run as root to write to /etc/cdi or /var/run/cdi")
    })?;
    let names: Vec<&str> = spec.devices.iter().map(|device| device.name.as_str()).collect();
    status(format!("{}: {} for {}", args.output.display(), spec.kind, names.join(", ")));
    Ok(Outcome::Yes)
}
