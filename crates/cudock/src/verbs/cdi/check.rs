use cudock_inject::Places;
use cudock_inject::cdi::{Finding, Level, Machine, check_directories};
use serde::Serialize;

use super::{CheckArgs, driver, root};
use crate::failure::{Failure, Outcome};
use crate::output::{self, BLUE, Format, GREEN, RED, line, styled};

#[derive(Serialize)]
struct Report<'a> {
    schema: u8,
    /// The driver they were held against; none if none was found.
    driver: Option<String>,
    specifications: &'a [String],
    findings: &'a [Finding],
}

pub(super) fn run(words: &CheckArgs, format: Format) -> Result<Outcome, Failure> {
    let root = root(words.root.as_deref())?;
    // Without a driver files and nodes can still be looked for.
    let driver = driver(&Places::one(root.clone())).ok();
    let machine = Machine { root: &root, driver: driver.as_ref() };
    let directories: Vec<&str> = words.dir.iter().map(String::as_str).collect();
    let (paths, findings) = check_directories(&machine, &directories);
    let version = driver.as_ref().map(|driver| driver.suffix.clone());
    match format {
        Format::Json => {
            let report = Report { schema: 1, driver: version, specifications: &paths, findings: &findings };
            output::json(&report);
        }
        Format::Text => print(&paths, &findings, version.as_deref(), &directories),
    }
    let bad = findings.iter().any(|finding| finding.level == Level::Problem);
    Ok(if bad { Outcome::No } else { Outcome::Yes })
}

fn print(paths: &[String], findings: &[Finding], driver: Option<&str>, directories: &[&str]) {
    if paths.is_empty() {
        line(format!("no CDI specification in {}", directories.join(", ")));
        line(format!("{}: `cudock cdi --output /etc/cdi/nvidia.yaml` writes one", styled(BLUE, "hint")));
        return;
    }
    if driver.is_none() {
        line(format!("{}: no driver found here: only files and nodes are looked for", styled(BLUE, "note")));
    }
    for path in paths {
        let mine: Vec<&Finding> = findings.iter().filter(|finding| finding.path == *path).collect();
        if mine.is_empty() {
            line(format!("{}  {path}", styled(GREEN, "ok")));
        }
        for finding in mine {
            let (style, word) = match finding.level {
                Level::Problem => (RED, "problem"),
                Level::Note => (BLUE, "note"),
            };
            line(format!("{}  {path}: {}", styled(style, word), finding.message));
            line(format!("  fix: {}", finding.fix));
        }
    }
}
