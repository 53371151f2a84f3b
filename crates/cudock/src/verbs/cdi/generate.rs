use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cudock_host::has_driver_files;
use cudock_inject::cdi::{Options, specification};
use cudock_inject::{Capabilities, Extras, Places};

use super::{Extra, GenerateArgs, driver, root};
use crate::failure::{Failure, Outcome};
use crate::output::{Format, YELLOW, line, styled};

pub(super) fn run(words: &GenerateArgs, format: Format) -> Result<Outcome, Failure> {
    let driver = driver(&places(words)?)?;
    let capabilities = Capabilities::parse(&words.capabilities, "--capabilities")?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::outside(format!("cudock does not find itself: {error}")))?;
    let has = |extra| words.extras.contains(&extra);
    let options = Options {
        vendor: words.vendor.clone(),
        class: words.class.clone(),
        capabilities,
        extras: Extras {
            gds: has(Extra::Gds),
            gdrcopy: has(Extra::Gdrcopy),
            mofed: has(Extra::Mofed),
            nvswitch: has(Extra::Nvswitch),
            ..Extras::default()
        },
        program,
    };
    let (spec, warnings) = specification(&driver, &options)?;
    for warning in warnings {
        anstream::eprintln!("{}: {warning}", styled(YELLOW, "warning"));
    }
    let json = format == Format::Json || words.output.extension().is_some_and(|ending| ending == "json");
    let text = if json { spec.to_json() } else { spec.to_yaml() }?;
    if words.output == Path::new("-") {
        line(text.trim_end());
        return Ok(Outcome::Yes);
    }
    write(&words.output, &text).map_err(|error| {
        Failure::outside(format!("cannot write {}: {error}", words.output.display()))
            .hint("/etc/cdi and /var/run/cdi are root's")
    })?;
    let names: Vec<&str> = spec.devices.iter().map(|device| device.name.as_str()).collect();
    anstream::eprintln!("{}: {} for {}", words.output.display(), spec.kind, names.join(", "));
    Ok(Outcome::Yes)
}

/// Devices are where the files are, unless that root has none: a driver container's files lie beside the machine's.
fn places(words: &GenerateArgs) -> Result<Places, Failure> {
    let files = root(words.root.as_deref())?;
    if words.dev_root.is_some() {
        return Ok(Places::two(files, root(words.dev_root.as_deref())?));
    }
    if files.is_live() || has_driver_files(files.base()) {
        return Ok(Places::one(files));
    }
    Ok(Places::two(files, root(None)?))
}

/// Engines watch these directories: the file is there whole or not at all.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory)?;
    }
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_os_string();
    // Engines read only names that end in .yaml and .json.
    name.push(format!(".{}.new", std::process::id()));
    let beside: PathBuf = path.with_file_name(name);
    fs::write(&beside, text)?;
    fs::rename(&beside, path).inspect_err(|_| {
        fs::remove_file(&beside).ok();
    })
}
