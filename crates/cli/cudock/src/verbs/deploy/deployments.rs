//! The verbs for deployments on Azure: `up --on`, `export`, `gc`, `resume`, `cost`, `verify`, and parts of `ps`, `logs` and `down`.

use std::path::Path;

use cudock_base::Environment;
use cudock_cli::{CostArgs, DeployArgs, ExportArgs, GcArgs, ResumeArgs, UpArgs, VerifyArgs};
use cudock_deploy::{
    CloudApi, CostQuery, CostReport, DeployError, DeployRequest, DeploySource, GcReport, GcScope,
    PlannedDeployment, Preflight, Requester, Resumed, VerifyReport, existing_journal, find_deployment,
    plan_deployments, read_existing, text, write_export,
};
use cudock_facts::Facts;
use cudock_project::{DeployFlags, Project};
use cudock_runtime::group::flags::{UpSource, find_source};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line, note, status};
use crate::steps::cloud::{
    INTERRUPTED, Printer, asked, interrupted, preflight_failed, report_end, session, show,
};
use crate::steps::group_file;

/// The source of a deployment: a project directory or a group file.
struct DeployedWork<'a> {
    directory: Option<&'a Path>,
    /// A group file, in place of the directory's.
    file: Option<&'a Path>,
    /// Overrides that in the file.
    name: Option<&'a str>,
    /// The port of a project that is served.
    port: Option<u16>,
    /// The program and its arguments; those of the image if empty.
    command: &'a [String],
    flags: &'a DeployFlags,
}

/// The placements; with a cloud, those that suit the resources that exist there.
fn plan(
    work: &DeployedWork<'_>,
    facts: &Facts,
    requester: &Requester,
    cloud: Option<&dyn CloudApi>,
) -> Result<Vec<PlannedDeployment>, Failure> {
    let (reading, project) = match find_source(work.directory, work.file)? {
        UpSource::Project(directory) => (None, Project::open(&directory)?),
        UpSource::Group(file) => {
            let directory = file.parent().unwrap_or(Path::new("."));
            (Some(group_file::read(&file)?.1), Project::without_file(directory))
        }
    };
    let (service, flags) =
        cudock_deploy::resolve(work.flags, &project.manifest).map_err(DeployError::from)?;
    let source = reading
        .as_ref()
        .map_or(DeploySource::Project(&project), |reading| DeploySource::Group(reading, &project));
    let existing = read_existing(facts, cloud, &requester.subscription, service, &flags)?;
    let request = DeployRequest {
        source,
        service,
        flags: &flags,
        existing: &existing,
        name: work.name,
        port: work.port,
        command: work.command,
        requester,
        today: output::today(),
        environment: &Environment::of_process(),
    };
    Ok(plan_deployments(facts, &request)?)
}

/// `cudock export`.
pub(crate) fn export(facts: &Facts, args: &ExportArgs) -> Result<Outcome, Failure> {
    if args.deploy.flags.on.is_none() {
        return Err(Failure::input("no service to export for").hint("--on SERVICE"));
    }
    let requester = Requester::of_export(&Environment::of_process());
    let DeployArgs { directory, file, name, port, flags, command } = &args.deploy;
    let work = DeployedWork {
        directory: directory.as_deref(),
        file: file.as_deref(),
        name: name.as_deref(),
        port: *port,
        command,
        flags,
    };
    let planned = plan(&work, facts, &requester, None)?;
    for PlannedDeployment { deployment, .. } in planned.iter().take(1) {
        let files = cudock_azure::export(deployment, args.language).map_err(DeployError::from)?;
        write_export(&args.output, &files)?;
        deployment.losses.iter().for_each(|loss| note(&loss.message));
        for (name, _) in &files {
            line(args.output.join(name).to_string_lossy());
        }
    }
    Ok(Outcome::Yes)
}

/// `cudock up --on`.
pub(crate) fn up(facts: &Facts, args: &UpArgs) -> Result<Outcome, Failure> {
    let work = DeployedWork {
        directory: args.directory.as_deref(),
        file: args.file.as_deref(),
        name: args.name.as_deref(),
        port: args.port,
        command: &args.command,
        flags: &args.deploy,
    };
    if args.deploy.dry_run {
        let requester = Requester::of_dry_run(&Environment::of_process());
        for planned in plan(&work, facts, &requester, None)? {
            line(text::dry_run(&planned));
        }
        return Ok(Outcome::Yes);
    }
    let session = session()?;
    let requester = session.requester(&Environment::of_process())?;
    let placements = plan(&work, facts, &requester, Some(&session.interruptible))?;
    let Preflight { report, placements } = asked(&session, facts, placements);
    if placements.is_empty() {
        return Err(preflight_failed(&report));
    }
    if let Some(first) = placements.first() {
        status(text::announcement(first));
        first
            .deployment
            .losses
            .iter()
            .chain(report.findings(report.choice(usize::MAX)))
            .for_each(|loss| note(&loss.message));
    }
    let deployer = session.deployer(&show);
    if args.detach {
        let record = deployer.up_detached(&placements, &Printer).map(Some).or_else(interrupted)?;
        return Ok(record.map_or(Outcome::Program(INTERRUPTED), |record| {
            line(record.name);
            Outcome::Yes
        }));
    }
    let ended = deployer.up_attached(&placements, &Printer).map(Some).or_else(interrupted)?;
    Ok(ended.map_or(Outcome::Program(INTERRUPTED), |ended| report_end(&ended)))
}

/// `cudock down` of a deployment.
pub(crate) fn down(name: &str) -> Result<Outcome, Failure> {
    let session = session()?;
    let record = session.deployer(&show).down(name)?;
    status(text::deleted(&record));
    line(record.name);
    Ok(Outcome::Yes)
}

/// `cudock down --all`.
pub(crate) fn down_all() -> Result<Outcome, Failure> {
    let session = session()?;
    let mut failures = Vec::new();
    for deleted in session.deployer(&show).down_all()? {
        match deleted {
            Ok(name) => line(name),
            Err(error) => failures.push(Failure::from(error)),
        }
    }
    let Some(last) = failures.pop() else { return Ok(Outcome::Yes) };
    failures.iter().for_each(Failure::print);
    Err(last)
}

/// `cudock gc`.
pub(crate) fn gc(args: &GcArgs, format: Format) -> Result<Outcome, Failure> {
    let session = session()?;
    let Requester { subscription, owner, .. } = session.requester(&Environment::of_process())?;
    let scope =
        GcScope { subscription: &subscription, owner: &owner, runs: &args.runs, is_dry_run: args.dry_run };
    let report: GcReport = session.deployer(&show).gc(&scope)?;
    match format {
        Format::Text => text::gc(&report).iter().for_each(line),
        Format::Json => output::report(&report),
    }
    Ok(if report.has_failed() { Outcome::Program(3) } else { Outcome::Yes })
}

/// `cudock resume`.
pub(crate) fn resume(args: &ResumeArgs) -> Result<Outcome, Failure> {
    let session = session()?;
    let resumed = session.deployer(&show).resume(&args.name, &Printer).map(Some).or_else(interrupted)?;
    Ok(match resumed {
        Some(Resumed::Ended(ended)) => report_end(&ended),
        Some(Resumed::Running(record)) => {
            line(record.name);
            Outcome::Yes
        }
        Some(Resumed::Gone(record)) => {
            status(text::deleted(&record));
            record.exit_code.map_or(Outcome::Yes, Outcome::Program)
        }
        None => Outcome::Program(INTERRUPTED),
    })
}

/// `cudock cost`.
pub(crate) fn cost(facts: &Facts, args: &CostArgs, format: Format) -> Result<Outcome, Failure> {
    let query = CostQuery { name: args.name.as_deref(), today: output::today(), facts: Some(facts) };
    let report: CostReport = if args.offline {
        let journal = existing_journal(&Environment::of_process())?;
        let journal = journal.ok_or_else(|| Failure::input("nothing was deployed yet"))?;
        cudock_deploy::cost(&journal, None, &query)?
    } else {
        let session = session()?;
        session.deployer(&show).update_costs()?.iter().for_each(note);
        cudock_deploy::cost(&session.journal, Some(&session.client), &query)?
    };
    match format {
        Format::Text => {
            let (lines, table) = text::cost(&report);
            lines.iter().for_each(line);
            output::table(&table);
        }
        Format::Json => output::report(&report),
    }
    Ok(Outcome::Yes)
}

/// `cudock verify`.
pub(crate) fn verify(facts: &Facts, args: &VerifyArgs, format: Format) -> Result<Outcome, Failure> {
    let session = session()?;
    let record = find_deployment(&session.journal, &args.name)?;
    let report: VerifyReport =
        cudock_deploy::verify(&session.interruptible, facts, &record, &session.interrupted)?;
    match format {
        Format::Text => text::verify(&report).iter().for_each(line),
        Format::Json => output::report(&report),
    }
    Ok(if report.is_complete() { Outcome::Yes } else { Outcome::No })
}
