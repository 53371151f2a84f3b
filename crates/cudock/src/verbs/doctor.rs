use std::ffi::OsStr;
use std::path::Path;

use cudock_base::format::count as count_of;
use cudock_facts::Facts;
use cudock_host::host::NvmlAnswer;
use cudock_host::{Area, Check, Diagnosis, Host, Root, Status, examine, nvml, probe};
use serde::Serialize;

use crate::cli::DoctorArgs;
use crate::failure::{Failure, Outcome, chain};
use crate::output::{self, BLUE, BOLD, DIM, Format, GREEN, RED, TableUsed, YELLOW, line, styled};

const TABLES: [&str; 5] = ["gpus", "drivers", "toolkits", "forward_compat", "frameworks"];

#[derive(Serialize)]
struct Report<'a> {
    schema: u8,
    status: Status,
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
    host: &'a Host,
    tables: &'a [TableUsed],
}

pub(super) fn run(facts: &Facts, words: &DoctorArgs, format: Format) -> Result<Outcome, Failure> {
    let root = match &words.root {
        Some(directory) => Root::tree(directory).map_err(|error| {
            Failure::input(chain(&error)).hint("--root names a directory that holds a root file system")
        })?,
        None => Root::live(),
    };
    let host = probe::read(&root, &ask_nvml);
    let diagnosis = examine(&host, facts, output::today());
    let tables = output::tables_used(facts, &TABLES);
    match format {
        Format::Json => {
            let status = diagnosis.worst();
            output::json(&Report { schema: 1, status, diagnosis: &diagnosis, host: &host, tables: &tables });
        }
        Format::Text => print(&host, &diagnosis, words.verbose),
    }
    output::warn_if_stale(&tables);
    Ok(if diagnosis.worst() == Status::Problem { Outcome::No } else { Outcome::Yes })
}

/// Asks NVML in a process of its own: a broken driver can hang or end the one that asks.
pub(super) fn ask_nvml(library: Option<&Path>) -> NvmlAnswer {
    let Ok(program) = std::env::current_exe() else {
        return NvmlAnswer::Failed("cudock does not find itself".to_owned());
    };
    let library = library.map(Path::as_os_str);
    let arguments: Vec<&OsStr> = std::iter::once(OsStr::new("nvml")).chain(library).collect();
    nvml::ask_in_child(&program, &arguments)
}

fn print(host: &Host, diagnosis: &Diagnosis, verbose: bool) {
    let surroundings = &host.surroundings;
    let mut place = vec![surroundings.os.clone().unwrap_or_else(|| "unknown system".to_owned())];
    place.push(surroundings.cpu_arch.clone());
    place.extend(surroundings.kernel.as_ref().map(|kernel| format!("kernel {kernel}")));
    if surroundings.wsl {
        place.push("WSL2".to_owned());
    }
    if surroundings.container.is_some() {
        place.push("in a container".to_owned());
    }
    line(styled(BOLD, &place.join(", ")));
    if let Some(python) = &host.python {
        line(styled(DIM, &format!("Python environment {} (by {})", python.prefix, python.found_by)));
    }
    let mut area = None;
    for check in &diagnosis.checks {
        if area != Some(check.area) {
            line(format!("\n{}", styled(BOLD, name(check.area))));
            area = Some(check.area);
        }
        print_check(check, verbose);
    }
    let count = |status| diagnosis.checks.iter().filter(|check| check.status == status).count();
    let (problems, warnings) = (count(Status::Problem), count(Status::Warning));
    let verdict = match (problems, warnings) {
        (0, 0) => styled(GREEN, "no problem found"),
        (0, warnings) => styled(YELLOW, &format!("no problem, {}", count_of(warnings, "warning"))),
        (problems, 0) => styled(RED, &count_of(problems, "problem")),
        (problems, warnings) => {
            styled(RED, &format!("{}, {}", count_of(problems, "problem"), count_of(warnings, "warning")))
        }
    };
    line(format!("\n{verdict}"));
}

fn print_check(check: &Check, verbose: bool) {
    let (style, word) = match check.status {
        Status::Ok => (GREEN, "ok"),
        Status::Note => (BLUE, "note"),
        Status::Warning => (YELLOW, "warning"),
        Status::Problem => (RED, "problem"),
    };
    let code = check.code.map_or_else(String::new, |code| format!(" [{code}]"));
    let text = output::wrapped(&" ".repeat(11), &format!("{}{code}", check.message));
    line(format!("  {}{}", styled(style, word), text.get(2 + word.len()..).unwrap_or_default()));
    if let Some(fix) = check.fix.as_deref().filter(|_| check.status != Status::Ok) {
        line(output::wrapped("           fix: ", fix));
    }
    if verbose {
        for evidence in &check.evidence {
            line(styled(
                DIM,
                &output::wrapped("           seen: ", &format!("{}: {}", evidence.path, evidence.detail)),
            ));
        }
    }
}

fn name(area: Area) -> &'static str {
    match area {
        Area::Gpu => "GPU",
        Area::Driver => "Driver",
        Area::Devices => "Devices",
        Area::Libraries => "Libraries",
        Area::Containers => "Containers",
        Area::Frameworks => "Frameworks",
    }
}
