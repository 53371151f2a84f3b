//! `cudock plan`: finds where a workload fits on Azure, and at what cost.

mod compare;
mod json;
mod text;
mod why;

use std::path::Path;

use cudock_cli::PlanArgs;
use cudock_facts::Facts;
use cudock_facts::version::Date;
use cudock_plan::csv;
use cudock_plan::{Catalog, Plan, plan};
use cudock_project::Project;
use cudock_workload::{Notify, Resolved};

pub(crate) use self::compare::CompareReport;
pub(crate) use self::json::PlanReport;
use self::json::{Extras, Relaxed};
use self::text::{brief, chart, table, workload};
pub(crate) use self::why::WhyReport;
use crate::failure::{Failure, Outcome, chain};
use crate::output::{self, Csv, PlanFormat, line};
use crate::steps::images::{announce_read, progress};
use crate::steps::pointer::other_verb;

/// A plan and the title of its report.
struct View<'a> {
    plan: &'a Plan<'a>,
    title: &'a str,
    /// The day the report is for.
    today: Date,
}

/// The tables that a plan is based on.
const TABLES: [&str; 6] =
    ["azure_prices", "azure_sizes", "azure_services", "azure_meters", "azure_storage", "gpus"];

/// How many placements the default report shows.
const SHORT_TOP: usize = 5;

/// How many placements the verbose report shows.
const TOP: usize = 10;

/// How many placements that no source lists are shown.
const UNLISTED: usize = 3;

pub(crate) fn run(
    facts: &Facts,
    args: &PlanArgs,
    format: PlanFormat,
    is_verbose: bool,
) -> Result<Outcome, Failure> {
    let project = project(args.path.as_deref())?;
    let today = output::today();
    let notify = Notify { progress: progress(), on_read: &announce_read };
    let Resolved { workload, verdicts } =
        cudock_workload::resolve(facts, &project, &args.workload, today, &notify)?;
    let catalog = Catalog::of(facts);
    let plan = plan(&catalog, facts, &workload, &verdicts);
    let title = if project.text.has("workload") { project.name() } else { "this workload".to_owned() };
    let view = View { plan: &plan, title: &title, today };
    let outcome = report(&view, args, format, is_verbose)?;
    output::warn_if_stale(&output::tables_used(facts, &TABLES));
    Ok(outcome)
}

/// The project of a file or directory, of this directory, or without a file.
fn project(path: Option<&Path>) -> Result<Project, Failure> {
    let here = Path::new(".");
    let read = match path {
        Some(path) if path.is_dir() => Project::open(path),
        Some(path) if path.is_file() && path.extension().is_none_or(|ending| ending != "toml") => {
            let message = format!("{}: not a project file (cudock.toml)", path.display());
            return Err(Failure::input(message).hint(other_verb(path)));
        }
        Some(path) => Project::read(path),
        None if here.join(cudock_project::FILE_NAME).exists() => Project::open(here),
        None => Ok(Project::without_file(here)),
    };
    read.map_err(|error| Failure::input(chain(&error)))
}

fn report(
    view: &View<'_>,
    args: &PlanArgs,
    format: PlanFormat,
    is_verbose: bool,
) -> Result<Outcome, Failure> {
    let is_json = format == PlanFormat::Json;
    if format == PlanFormat::Other(Csv) && (args.why.is_some() || !args.compare.is_empty()) {
        return Err(
            Failure::input("--format csv supports the list of placements only").hint("use --format json")
        );
    }
    let plan = view.plan;
    if let Some(size) = &args.why {
        return if is_json { why::json(plan, view.title, size) } else { why::text(plan, size) };
    }
    if !args.compare.is_empty() {
        return if is_json {
            compare::json(plan, view.title, &args.compare)
        } else {
            compare::text(plan, &args.compare)
        };
    }
    let fits = !plan.ranked().is_empty();
    let relaxed = if fits { Vec::new() } else { Relaxed::of(plan) };
    let top = match (args.top, format) {
        (Some(top), _) => top,
        (None, PlanFormat::Text) if !args.all && !is_verbose => SHORT_TOP,
        (None, PlanFormat::Text) if !args.all => TOP,
        (None, _) => usize::MAX,
    };
    let placements = plan.list(top, args.all_regions);
    let is_short = format == PlanFormat::Text && args.top.is_none() && !args.all;
    let most = if is_short { UNLISTED } else { top };
    let unlisted = plan.list_unlisted(most, args.all_regions);
    let file = args.chart.as_ref().map(Option::as_deref);
    let chart = file.filter(|_| fits).map(|file| chart::draw(plan, view.title, file)).transpose()?;
    let crossovers = chart.as_ref().map(|chart| chart.breakpoints.as_slice());
    match format {
        PlanFormat::Json => {
            let tables = output::tables_used(plan.facts(), &TABLES);
            let extras = Extras { unlisted: &unlisted, relaxed: &relaxed, crossovers, tables: &tables };
            json::print(view, &placements, &extras);
        }
        PlanFormat::Other(Csv) => line(csv(&placements)),
        PlanFormat::Text if !is_verbose && !args.all => {
            if fits {
                brief::print(view, &placements);
            } else {
                table::no_fit(view, &relaxed);
                table::unlisted(view, &unlisted);
                line("\nUse --verbose for the workload, assumptions and all reasons.");
            }
        }
        PlanFormat::Text => {
            workload::print(view, &placements);
            if fits {
                table::placements(view, &placements);
                table::choices(view, &placements);
                table::warnings(&placements);
            } else {
                table::no_fit(view, &relaxed);
            }
            table::unlisted(view, &unlisted);
            table::rejected(view, args.all, fits);
        }
    }
    if let (PlanFormat::Text, Some(chart)) = (format, &chart) {
        chart::print(chart, file.flatten());
    }
    Ok(if fits { Outcome::Yes } else { Outcome::No })
}
