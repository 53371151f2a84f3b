use cudock_cli::CdiCheckArgs;
use cudock_facts::finding::Severity;
use cudock_inject::DriverRoots;
use cudock_inject::cdi::{CheckTarget, SpecFinding, check_directories};
use schemars::JsonSchema;
use serde::Serialize;

use super::{driver, root};
use crate::failure::{Failure, Outcome};
use crate::finding_text::severity_label;
use crate::output::{self, BLUE, Format, GREEN, line, styled};

#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckReport<'a> {
    schema: u8,
    /// The driver they were checked against, if one was found.
    driver: Option<String>,
    specifications: &'a [String],
    findings: &'a [SpecFinding],
}

pub(crate) fn run(args: &CdiCheckArgs, format: Format) -> Result<Outcome, Failure> {
    let root = root(args.root.as_deref())?;
    // Without a driver, files and nodes can still be checked.
    let driver = driver(&DriverRoots::one(root.clone())).ok();
    let target = CheckTarget { root: &root, driver: driver.as_ref() };
    let directories: Vec<&str> = args.dir.iter().map(String::as_str).collect();
    let (paths, findings) = check_directories(&target, &directories);
    let version = driver.as_ref().map(|driver| driver.suffix.clone());
    match format {
        Format::Json => {
            let report =
                CheckReport { schema: 1, driver: version, specifications: &paths, findings: &findings };
            output::json(&report);
        }
        Format::Text => print(&paths, &findings, version.as_deref(), &directories),
    }
    let bad = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if bad { Outcome::No } else { Outcome::Yes })
}

fn print(paths: &[String], findings: &[SpecFinding], driver: Option<&str>, directories: &[&str]) {
    if paths.is_empty() {
        line(format!("no CDI specification in {}", directories.join(", ")));
        line(format!("{}: `cudock cdi --output /etc/cdi/nvidia.yaml` generates one", styled(BLUE, "hint")));
        return;
    }
    if driver.is_none() {
        line(format!("{}: no driver found: only files and nodes are checked", styled(BLUE, "note")));
    }
    for path in paths {
        let mine: Vec<&SpecFinding> = findings.iter().filter(|finding| finding.path == *path).collect();
        if mine.is_empty() {
            line(format!("{}  {path}", styled(GREEN, "ok")));
        }
        for finding in mine {
            let (style, word) = severity_label(finding.severity);
            line(format!("{}  {path}: {}", styled(style, word), finding.message));
            line(format!("  fix: {}", finding.fix));
        }
    }
}
