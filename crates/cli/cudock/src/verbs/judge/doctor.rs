//! `cudock doctor`: diagnoses the GPU stack of this machine.

use cudock_base::text::format::count;
use cudock_cli::DoctorArgs;
use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_facts::formats::{ReportedFinding, ServiceFormat};
use cudock_host::{Check, Diagnosis, Host, Root, checks, examine, probe};
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::{Failure, Outcome, chain};
use crate::finding_text::{self, FindingText, severity_label};
use crate::output::{
    self, Annotations, BOLD, DIM, DoctorFormat, GREEN, RED, TableUsed, YELLOW, line, styled,
};
use crate::steps::nvml::ask_nvml;

const TABLES: [&str; 5] = ["gpus", "drivers", "toolkits", "forward_compat", "frameworks"];

#[derive(Serialize, JsonSchema)]
pub(crate) struct DoctorReport<'a> {
    schema: u8,
    /// The highest severity of its checks.
    #[serde(rename = "status", serialize_with = "checks::status::serialize")]
    #[schemars(schema_with = "checks::status::json_schema")]
    severity: Option<Severity>,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
    host: &'a Host,
    tables: &'a [TableUsed],
}

pub(crate) fn run(
    facts: &Facts,
    args: &DoctorArgs,
    format: DoctorFormat,
    is_verbose: bool,
) -> Result<Outcome, Failure> {
    let root = match &args.root {
        Some(directory) => Root::tree(directory).map_err(|error| {
            Failure::input(chain(&error)).hint("pass the directory of a root file system to --root")
        })?,
        None => Root::live(),
    };
    let host = probe::read(&root, &ask_nvml);
    let diagnosis = examine(&host, facts, output::today());
    let tables = output::tables_used(facts, &TABLES);
    match format {
        DoctorFormat::Json => {
            output::json(&DoctorReport {
                schema: 1,
                severity: diagnosis.worst(),
                diagnosis: &diagnosis,
                host: &host,
                tables: &tables,
            });
        }
        DoctorFormat::Other(Annotations) => {
            let findings = diagnosis.checks.iter().filter_map(Check::finding);
            let findings: Vec<_> = findings.map(ReportedFinding::new).collect();
            output::findings(facts, ServiceFormat::Github, &findings);
        }
        DoctorFormat::Text => print(&host, &diagnosis, is_verbose),
    }
    output::warn_if_stale(&tables);
    Ok(if diagnosis.worst() == Some(Severity::Error) { Outcome::No } else { Outcome::Yes })
}

fn print(host: &Host, diagnosis: &Diagnosis, verbose: bool) {
    let about = &host.system;
    let mut system = vec![about.os.clone().unwrap_or_else(|| "unknown system".to_owned())];
    system.push(about.cpu_arch.to_string());
    system.extend(about.kernel.as_ref().map(|kernel| format!("kernel {kernel}")));
    if about.wsl {
        system.push("WSL2".to_owned());
    }
    if about.container.is_some() {
        system.push("inside a container".to_owned());
    }
    line(styled(BOLD, &system.join(", ")));
    if let Some(python) = &host.python {
        line(styled(DIM, &format!("Python environment {} (by {})", python.prefix, python.found_by)));
    }
    line("");
    for check in &diagnosis.checks {
        finding_text::print(
            0,
            &FindingText {
                label: check.severity.map_or((GREEN, "ok"), severity_label),
                position: None,
                message: &check.message,
                code: check.code,
                excerpt: None,
                evidence: if verbose { &check.evidence } else { &[] },
                fix: check.fix.as_deref().filter(|_| check.severity.is_some()),
            },
        );
    }
    print_summary(&diagnosis.checks);
}

fn print_summary(checks: &[Check]) {
    let number = |severity| checks.iter().filter(|check| check.severity == Some(severity)).count();
    let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
    let summary = match (errors, warnings) {
        (0, 0) => styled(GREEN, "No problems found."),
        (0, warnings) => styled(YELLOW, &format!("{}.", count(warnings, "warning"))),
        (errors, 0) => styled(RED, &format!("{}.", count(errors, "error"))),
        (errors, warnings) => {
            styled(RED, &format!("{}, {}.", count(errors, "error"), count(warnings, "warning")))
        }
    };
    let worst = if errors > 0 { Severity::Error } else { Severity::Warning };
    let code = checks.iter().filter(|check| check.severity == Some(worst)).find_map(|check| check.code);
    let details = code.map_or_else(String::new, |code| format!(" Details: cudock explain {code}"));
    line(format!("\n{summary}{details}"));
}
