//! The verbs for deployments on Azure: `up --on`, `export`, `gc`, `resume`, `cost`, `verify`, and parts of `ps`, `logs` and `down`.

use std::path::Path;

use cudock_azure::preflight::{CandidateReport, PreflightReport, PreflightVerdict};
use cudock_base::Environment;
use cudock_base::text::table::TextTable;
use cudock_cli::{ExecArgs, LogsArgs, UpArgs};
use cudock_deploy::preflight;
use cudock_deploy::{
    CloudApi, CostQuery, CostReport, DeployError, DeployOutput, DeployRequest, DeploySource,
    DeploymentRecord, DeploymentSummary, Ended, GcReport, GcScope, PhaseProgress, PlannedDeployment,
    Preflight, Requester, Resumed, Session, VerifyReport, existing_journal, find_deployment,
    plan_deployments, read_existing, text, write_export,
};
use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_project::Project;
use cudock_runtime::group::flags::{UpSource, find_source};

use super::containers::{home, reports};
use super::groups::{self};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, line, note, redraw, redraws, status, warning};
use cudock_cli::{CostArgs, DeployArgs, ExportArgs, GcArgs, ResumeArgs, VerifyArgs};

/// The exit code of a command that Ctrl-C ended, as in shells.
const INTERRUPTED: i32 = 130;

/// Prints what a deployment has to tell.
pub(super) struct Printer;

impl DeployOutput for Printer {
    fn running(&self, record: &DeploymentRecord, url: Option<&str>) {
        status(format!(
            "{} is running{}",
            record.name,
            url.map_or_else(String::new, |url| format!(" at {url}"))
        ));
    }

    fn output(&self, text: &str) {
        line(text.trim_end());
    }

    fn next_placement(&self, error: &str) {
        warning(format!("{error}; trying the next placement"));
    }
}

/// Shows progress: in one line of a terminal, else when a phase begins.
pub(super) fn show(progress: &PhaseProgress<'_>) {
    if redraws() {
        redraw(&text::progress(progress));
    } else if progress.elapsed.is_zero() {
        status(text::progress(progress));
    }
}

pub(super) fn session() -> Result<Session, Failure> {
    Ok(Session::open(&Environment::of_process(), |text| note(text))?)
}

/// The placements; with a cloud, those that suit the resources that exist there.
fn plan(
    args: &DeployArgs,
    facts: &Facts,
    requester: &Requester,
    cloud: Option<&dyn CloudApi>,
) -> Result<Vec<PlannedDeployment>, Failure> {
    let (reading, project) = match find_source(args.directory.as_deref(), args.file.as_deref())? {
        UpSource::Project(directory) => (None, Project::open(&directory)?),
        UpSource::Group(file) => {
            let directory = file.parent().unwrap_or(Path::new("."));
            (Some(groups::read(&file)?.1), Project::without_file(directory))
        }
    };
    let (target, flags) =
        cudock_deploy::resolve(&args.flags, &project.manifest).map_err(DeployError::from)?;
    let source = reading
        .as_ref()
        .map_or(DeploySource::Project(&project), |reading| DeploySource::Group(reading, &project));
    let existing = read_existing(cloud, &requester.subscription, target, &flags)?;
    let request = DeployRequest {
        source,
        target,
        flags: &flags,
        existing: &existing,
        name: args.name.as_deref(),
        port: args.port,
        command: &args.command,
        requester,
        today: output::today(),
        environment: &Environment::of_process(),
    };
    Ok(plan_deployments(facts, &request)?)
}

/// `cudock export`.
pub(super) fn export(facts: &Facts, args: &ExportArgs) -> Result<Outcome, Failure> {
    if args.deploy.flags.on.is_none() {
        return Err(Failure::input("no service to export for").hint("--on SERVICE"));
    }
    let requester = Requester::of_export(&Environment::of_process());
    let planned = plan(&args.deploy, facts, &requester, None)?;
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
pub(super) fn up(facts: &Facts, args: &UpArgs) -> Result<Outcome, Failure> {
    let request = DeployArgs {
        directory: args.directory.clone(),
        file: args.file.clone(),
        name: args.name.clone(),
        port: args.port,
        command: args.command.clone(),
        flags: args.deploy.clone(),
    };
    if args.deploy.dry_run {
        let requester = Requester::of_dry_run(&Environment::of_process());
        for planned in plan(&request, facts, &requester, None)? {
            line(text::dry_run(&planned));
        }
        return Ok(Outcome::Yes);
    }
    let session = session()?;
    let requester = session.requester(&Environment::of_process())?;
    let placements = plan(&request, facts, &requester, Some(&session.interruptible))?;
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

/// What Azure says about placements before one of them is tried.
pub(super) fn asked(session: &Session, facts: &Facts, placements: Vec<PlannedDeployment>) -> Preflight {
    let environment = Environment::of_process();
    let preflight = preflight(&session.interruptible, facts, &environment, placements, output::today());
    preflight.report.passed_over(usize::MAX).iter().for_each(warning);
    preflight
}

/// Shows why nothing can be created.
pub(super) fn preflight_failed(report: &PreflightReport) -> Failure {
    let blocked = |one: &&CandidateReport| one.verdict == PreflightVerdict::Blocked;
    let shown = report.candidates.iter().find(blocked).or(report.candidates.first());
    output::table(&TextTable::list(&PreflightReport::TITLES, report.table(shown)));
    let errors = report.findings(shown).into_iter().filter(|finding| finding.severity == Severity::Error);
    let hints = errors.map(|finding| finding.fix.clone());
    hints.fold(Failure::with_code("nothing was created: preflight failed", 1), Failure::hint)
}

/// A command that was ended on purpose and left nothing behind has not failed.
pub(super) fn interrupted<T>(error: DeployError) -> Result<Option<T>, Failure> {
    match error {
        DeployError::Interrupted => {
            status("interrupted; everything was deleted");
            Ok(None)
        }
        error => Err(error.into()),
    }
}

pub(super) fn report_end(ended: &Ended) -> Outcome {
    status(text::deleted(&ended.record));
    Outcome::Program(ended.exit_code)
}

/// The deployments of `cudock ps`, with their states from Azure unless `is_offline`.
pub(super) fn deployments(is_all: bool, is_offline: bool) -> Result<Vec<DeploymentSummary>, Failure> {
    let environment = Environment::of_process();
    let Some(journal) = existing_journal(&environment)? else { return Ok(Vec::new()) };
    if is_offline || journal.existing()?.is_empty() {
        return Ok(cudock_deploy::ps(&journal, None, is_all)?.0);
    }
    let session = Session::with_journal(&environment, journal, |text| note(text))?;
    let (deployments, notes) = cudock_deploy::ps(&session.journal, Some(&session.interruptible), is_all)?;
    notes.iter().for_each(note);
    Ok(deployments)
}

/// The deployment of `cudock exec`, `logs` and `down`, unless a container or group here has the name.
pub(super) fn named(name: &str) -> Result<Option<DeploymentRecord>, Failure> {
    let is_local = home().is_ok_and(|home| {
        home.find(name).is_ok() || cudock_runtime::group::find(&home, name).is_ok_and(|group| group.is_some())
    });
    if is_local {
        return Ok(None);
    }
    let journal = existing_journal(&Environment::of_process())?;
    Ok(journal.map(|journal| journal.find(name)).transpose()?.flatten())
}

/// `cudock exec` in a deployment.
pub(super) fn exec(record: &DeploymentRecord, args: &ExecArgs) -> Result<Outcome, Failure> {
    if args.user.is_some() || args.workdir.is_some() || !args.env.is_empty() {
        return Err(Failure::input("-e, -u and -w are not supported in a deployment"));
    }
    if args.interactive && !args.tty {
        return Err(Failure::input("-i is not supported in a deployment without -t").hint("-it"));
    }
    let session = session()?;
    let (cloud, flag) = (&session.interruptible, &*session.interrupted);
    let ended = if args.tty {
        cudock_deploy::exec_on_terminal(cloud, record, &args.command, flag).map(|()| None)
    } else {
        cudock_deploy::exec(cloud, record, &args.command, flag).map(Some)
    };
    match ended {
        Ok(None) => Ok(Outcome::Yes),
        Ok(Some(output)) => {
            output.stderr.lines().for_each(status);
            line(output.stdout.trim_end());
            Ok(Outcome::Program(output.exit_code))
        }
        Err(DeployError::Interrupted) => Ok(Outcome::Program(INTERRUPTED)),
        Err(error) => Err(error.into()),
    }
}

/// `cudock logs` of a deployment.
pub(super) fn logs(record: &DeploymentRecord, args: &LogsArgs) -> Result<Outcome, Failure> {
    let session = session()?;
    let follow = args.follow.then_some(&*session.interrupted);
    let outputs = session.outputs.as_ref();
    cudock_deploy::print_logs(&session.interruptible, &session.clock, record, outputs, follow, &|text| {
        line(text.trim_end());
    })?;
    Ok(Outcome::Yes)
}

/// `cudock down` of a deployment.
pub(super) fn down(name: &str) -> Result<Outcome, Failure> {
    let session = session()?;
    let record = session.deployer(&show).down(name)?;
    status(text::deleted(&record));
    line(record.name);
    Ok(Outcome::Yes)
}

/// `cudock down --all`.
pub(super) fn down_all() -> Result<Outcome, Failure> {
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
pub(super) fn gc(args: &GcArgs, format: Format) -> Result<Outcome, Failure> {
    let session = session()?;
    let Requester { subscription, owner, .. } = session.requester(&Environment::of_process())?;
    let scope =
        GcScope { subscription: &subscription, owner: &owner, runs: &args.runs, is_dry_run: args.dry_run };
    let report: GcReport = session.deployer(&show).gc(&scope)?;
    match format {
        Format::Text => text::gc(&report).iter().for_each(line),
        Format::Json => reports::print(&report),
    }
    Ok(if report.has_failed() { Outcome::Program(3) } else { Outcome::Yes })
}

/// `cudock resume`.
pub(super) fn resume(args: &ResumeArgs) -> Result<Outcome, Failure> {
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
pub(super) fn cost(facts: &Facts, args: &CostArgs, format: Format) -> Result<Outcome, Failure> {
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
        Format::Json => reports::print(&report),
    }
    Ok(Outcome::Yes)
}

/// `cudock verify`.
pub(super) fn verify(facts: &Facts, args: &VerifyArgs, format: Format) -> Result<Outcome, Failure> {
    let session = session()?;
    let record = find_deployment(&session.journal, &args.name)?;
    let report: VerifyReport =
        cudock_deploy::verify(&session.interruptible, facts, &record, &session.interrupted)?;
    match format {
        Format::Text => text::verify(&report).iter().for_each(line),
        Format::Json => reports::print(&report),
    }
    Ok(if report.is_complete() { Outcome::Yes } else { Outcome::No })
}
