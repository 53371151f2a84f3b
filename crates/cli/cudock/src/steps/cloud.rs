//! Azure: its session, what it says before something is created, and what is printed meanwhile.

use cudock_azure::preflight::{CandidateReport, PreflightReport, PreflightVerdict};
use cudock_base::Environment;
use cudock_base::text::table::TextTable;
use cudock_deploy::{
    DeployError, DeployOutput, DeploymentRecord, DeploymentSummary, Ended, PhaseProgress, PlannedDeployment,
    Preflight, Session, existing_journal, preflight, text,
};
use cudock_facts::Facts;
use cudock_facts::finding::Severity;
use cudock_runtime::container::exec::ExecRequest;

use crate::failure::{Failure, Outcome};
use crate::output::{self, line, note, redraw, redraws, status, warning};
use crate::steps::engine::home;

/// The exit code of a command that Ctrl-C ended, as in shells.
pub(crate) const INTERRUPTED: i32 = 130;

/// Prints the events of a deployment.
pub(crate) struct Printer;

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
pub(crate) fn show(progress: &PhaseProgress<'_>) {
    if redraws() {
        redraw(&text::progress(progress));
    } else if progress.elapsed.is_zero() {
        status(text::progress(progress));
    }
}

pub(crate) fn session() -> Result<Session, Failure> {
    Ok(Session::open(&Environment::of_process(), |text| note(text))?)
}

/// Checks placements with Azure before one of them is tried.
pub(crate) fn asked(session: &Session, facts: &Facts, placements: Vec<PlannedDeployment>) -> Preflight {
    let environment = Environment::of_process();
    let preflight = preflight(&session.interruptible, facts, &environment, placements, output::today());
    preflight.report.passed_over(usize::MAX).iter().for_each(warning);
    preflight
}

/// Shows why nothing can be created.
pub(crate) fn preflight_failed(report: &PreflightReport) -> Failure {
    let blocked = |one: &&CandidateReport| one.verdict == PreflightVerdict::Blocked;
    let shown = report.candidates.iter().find(blocked).or(report.candidates.first());
    output::table(&TextTable::list(&PreflightReport::TITLES, report.table(shown)));
    let errors = report.findings(shown).into_iter().filter(|finding| finding.severity == Severity::Error);
    let hints = errors.map(|finding| finding.fix.clone());
    hints.fold(Failure::with_code("nothing was created: preflight failed", 1), Failure::hint)
}

/// A command that was ended on purpose and left nothing behind has not failed.
pub(crate) fn interrupted<T>(error: DeployError) -> Result<Option<T>, Failure> {
    match error {
        DeployError::Interrupted => {
            status("interrupted; everything was deleted");
            Ok(None)
        }
        error => Err(error.into()),
    }
}

pub(crate) fn report_end(ended: &Ended) -> Outcome {
    status(text::deleted(&ended.record));
    Outcome::Program(ended.exit_code)
}

/// The deployments of `cudock ps`, with their states from Azure unless `is_offline`.
pub(crate) fn deployments(is_all: bool, is_offline: bool) -> Result<Vec<DeploymentSummary>, Failure> {
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
pub(crate) fn deployment_named(name: &str) -> Result<Option<DeploymentRecord>, Failure> {
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
pub(crate) fn exec(record: &DeploymentRecord, request: &ExecRequest) -> Result<Outcome, Failure> {
    if request.user.is_some() || request.cwd.is_some() || !request.environment.is_empty() {
        return Err(Failure::input("-e, -u and -w are not supported in a deployment"));
    }
    if request.stdin && !request.tty {
        return Err(Failure::input("-i is not supported in a deployment without -t").hint("-it"));
    }
    let session = session()?;
    let (cloud, flag) = (&session.interruptible, &*session.interrupted);
    let ended = if request.tty {
        cudock_deploy::exec_on_terminal(cloud, record, &request.args, flag).map(|()| None)
    } else {
        cudock_deploy::exec(cloud, record, &request.args, flag).map(Some)
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
pub(crate) fn logs(record: &DeploymentRecord, is_followed: bool) -> Result<Outcome, Failure> {
    let session = session()?;
    let follow = is_followed.then_some(&*session.interrupted);
    let outputs = session.outputs.as_ref();
    cudock_deploy::print_logs(&session.interruptible, &session.clock, record, outputs, follow, &|text| {
        line(text.trim_end());
    })?;
    Ok(Outcome::Yes)
}
