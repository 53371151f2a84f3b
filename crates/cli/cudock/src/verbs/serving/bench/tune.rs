//! Searches the settings with which a model is served fastest.

use std::path::Path;
use std::process::Command;

use clap::ValueEnum;
use cudock_cli::BenchArgs;
use cudock_project::DeviceChoice;
use cudock_server::API_KEYS;

use super::runs::{progress, write_plot};
use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, Format, line, note, styled, width};

pub(crate) fn run(args: &BenchArgs, path: &Path, format: Format) -> Result<Outcome, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::outside(format!("cannot locate the cudock executable: {error}")))?;
    let serve = |device: DeviceChoice| {
        let mut command = Command::new(&program);
        command.arg("serve").arg(path).args(["--port", "0"]);
        command.args(device.to_possible_value().iter().flat_map(|name| ["--device", name.get_name()]));
        command.args(device.is_gpu().then_some("--require-gpu")).args(args.offline.then_some("--offline"));
        command.args(args.tuning.trust.then_some("--trust"));
        command.env("NO_COLOR", "1").env("OTEL_SDK_DISABLED", "true").env_remove(API_KEYS);
        command
    };
    let report = cudock_tune::tune(&args.tune(path), &serve, &progress)?;
    if let Some(file) = &args.plot {
        write_plot(file, &report.svg())?;
    }
    match format {
        Format::Json => output::json(&report),
        Format::Text => {
            for (index, text) in report.lines(width()).iter().enumerate() {
                line(if index == 0 { styled(BOLD, text) } else { text.clone() });
            }
            output::diff(report.diff());
            if !args.tuning.write && !report.diff().is_empty() {
                note("--write changes cudock.toml as shown");
            }
        }
    }
    Ok(if report.is_success() { Outcome::Yes } else { Outcome::No })
}
