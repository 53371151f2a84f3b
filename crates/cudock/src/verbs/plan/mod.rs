//! `cudock plan`: where a workload could run on Azure, at what cost, and why not elsewhere.

mod args;
mod chart;
mod compare;
mod csv;
mod grid;
mod json;
mod reigns;
mod relax;
mod scan;
mod table;
mod understood;
mod view;
mod why;
mod words;

use std::path::Path;

use cudock_facts::Facts;
use cudock_plan::{Catalog, plan};
use cudock_project::Project;
use cudock_workload::{Notify, Resolved, WorkloadError};

pub(crate) use self::args::PlanArgs;
use self::json::Beside;
use self::view::View;
use crate::cli::FormatWord;
use crate::failure::{Failure, Outcome, chain};
use crate::output;
use crate::verbs::containers::{announce_read, progress};
use crate::verbs::other_verb;

/// The tables an answer rests on.
const TABLES: [&str; 6] =
    ["azure_prices", "azure_sizes", "azure_services", "azure_meters", "azure_storage", "gpus"];

/// How many placements people are shown.
const TOP: usize = 10;

/// How many of those that no source lists.
const UNLISTED: usize = 3;

pub(super) fn run(facts: &Facts, words: &PlanArgs, format: FormatWord) -> Result<Outcome, Failure> {
    let project = project(words.path.as_deref())?;
    let today = output::today();
    let notify = Notify { progress: progress(false), on_read: &announce_read };
    let Resolved { workload, verdicts } =
        cudock_workload::resolve(facts, &project, &words.workload, today, &notify)?;
    let catalog = Catalog::of(facts);
    let plan = plan(&catalog, facts, &workload, &verdicts);
    let title = if project.places.has("workload") { project.name() } else { "this workload".to_owned() };
    let view = View {
        facts,
        catalog: &catalog,
        workload: &workload,
        verdicts: &verdicts,
        plan: &plan,
        title: &title,
        today,
    };
    let outcome = report(&view, words, format)?;
    output::warn_if_stale(&output::tables_used(facts, &TABLES));
    Ok(outcome)
}

/// The file that is named, the one in the folder that is named, the one here, or none.
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

fn report(view: &View<'_>, words: &PlanArgs, format: FormatWord) -> Result<Outcome, Failure> {
    let programs = format == FormatWord::Json;
    if format == FormatWord::Csv && (words.why.is_some() || !words.compare.is_empty()) {
        return Err(Failure::input("--format csv has the placements only").hint("use --format json"));
    }
    if let Some(size) = &words.why {
        return if programs { why::json(view, size) } else { why::text(view, size) };
    }
    if !words.compare.is_empty() {
        return if programs {
            compare::json(view, &words.compare)
        } else {
            compare::text(view, &words.compare)
        };
    }
    let fits = !view.plan.ranked().is_empty();
    let relaxed = if fits {
        Vec::new()
    } else {
        relax::relaxed(view.catalog, view.facts, view.workload, view.verdicts)
    };
    let top = match (words.top, format) {
        (Some(top), _) => top,
        (None, FormatWord::Text) if !words.all => TOP,
        (None, _) => usize::MAX,
    };
    let placements = view.placements(top, words.all_regions);
    let most = if top == TOP && words.top.is_none() { UNLISTED } else { top };
    let unlisted = view.unlisted(most, words.all_regions);
    let drawn =
        words.chart.as_ref().filter(|_| fits).map(|file| chart::drawn(view, file.as_deref())).transpose()?;
    let crossovers = drawn.as_ref().map(|drawn| drawn.changes.as_slice());
    match format {
        FormatWord::Json | FormatWord::Sarif => {
            let tables = output::tables_used(view.facts, &TABLES);
            let beside = Beside { unlisted: &unlisted, relaxed: &relaxed, crossovers, tables: &tables };
            json::print(view, &placements, &beside);
        }
        FormatWord::Csv => csv::print(&placements),
        FormatWord::Text => {
            understood::print(view, &placements);
            if fits {
                table::placements(view, &placements);
                table::choices(view, &placements);
                table::warnings(&placements);
            } else {
                table::nothing(view, &relaxed);
            }
            table::unlisted(view, &unlisted);
            table::rejected(view, words.all, fits);
            if let Some(drawn) = &drawn {
                drawn.print();
            }
        }
    }
    Ok(if fits { Outcome::Yes } else { Outcome::No })
}

impl From<WorkloadError> for Failure {
    fn from(error: WorkloadError) -> Self {
        match error {
            WorkloadError::Usage(error) => error.into(),
            WorkloadError::Subject(error) => error.into(),
        }
    }
}
