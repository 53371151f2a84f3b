//! `cudock schema`: JSON Schemas of `cudock.toml` and of the JSON reports.

use cudock_base::text::suggest;
use cudock_base::text::table::TextTable;
use cudock_cli::SchemaArgs;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::output::{self, JsonReport};
use crate::steps::slim;
use crate::verbs::containers::cdi;
use crate::verbs::containers::reports::{
    ImagesReport, InspectContainerReport, PruneReport, PsReport, PullReport, StatsReport, TopReport,
    VolumeReport, WaitReport,
};
use crate::verbs::deploy::{groups, plan};
use crate::verbs::image::transfer;
use crate::verbs::judge::{check, doctor, explain, facts, init, inspect, lint, migrate, prices};
use crate::verbs::serving::{bench, runtime};

/// A schema's name, the description of its subject, and the function that creates it.
type Entry = (&'static str, &'static str, fn() -> Schema);

const SCHEMAS: &[Entry] = &[
    ("cudock.toml", "The file in which a project describes itself", cudock_project::json_schema),
    ("bench", "Report of `cudock bench URL`", report::<bench::BenchReport>),
    ("bench-model", "Report of `cudock bench --model FILE`", report::<bench::EngineBenchReport>),
    ("bench-tune", "Report of `cudock bench --tune PATH`", report::<cudock_tune::TuneReport>),
    ("cdi-check", "Report of `cudock cdi check`", report::<cdi::CheckReport>),
    ("check", "Report of `cudock check`", report::<check::CheckReport>),
    ("cost", "Report of `cudock cost`", report::<JsonReport<cudock_deploy::CostReport>>),
    ("doctor", "Report of `cudock doctor`", report::<doctor::DoctorReport>),
    ("explain", "Report of `cudock explain`", report::<explain::ExplainReport>),
    ("facts", "Report of `cudock facts`", report::<facts::FactsReport>),
    ("gc", "Report of `cudock gc`", report::<JsonReport<cudock_deploy::GcReport>>),
    ("groups", "Report of `cudock groups`", report::<JsonReport<groups::GroupsReport>>),
    ("images", "Report of `cudock images`", report::<JsonReport<ImagesReport>>),
    ("init", "Report of `cudock init`", report::<init::InitReport>),
    ("inspect", "Report of `cudock inspect`", report::<inspect::InspectReport>),
    (
        "inspect-container",
        "Report of `cudock inspect-container`",
        report::<JsonReport<InspectContainerReport>>,
    ),
    ("lint", "Report of `cudock lint`", report::<lint::LintReport>),
    ("lint-rules", "Report of `cudock lint --rules`", report::<lint::RulesReport>),
    ("build", "Report of `cudock build`", report::<JsonReport<cudock_build::BuildReport>>),
    ("lock", "Report of `cudock lock`", report::<JsonReport<cudock_lock::LockReport>>),
    ("migrate", "Report of `cudock migrate`", report::<migrate::MigrateReport>),
    ("migrate-translation", "Report of `cudock migrate -o`", report::<migrate::TranslateReport>),
    ("models", "Report of `cudock models`", report::<cudock_loadgen::ModelsReport>),
    ("plan", "Report of `cudock plan`", report::<plan::PlanReport>),
    ("plan-compare", "Report of `cudock plan --compare`", report::<plan::CompareReport>),
    ("plan-why", "Report of `cudock plan --why`", report::<plan::WhyReport>),
    ("prices", "Report of `cudock prices`", report::<prices::StatusReport>),
    ("prices-refresh", "Report of `cudock prices refresh`", report::<prices::RefreshOutput>),
    ("prune", "Report of `cudock prune`", report::<JsonReport<PruneReport>>),
    ("ps", "Report of `cudock ps`", report::<JsonReport<PsReport>>),
    ("pull", "Report of `cudock pull`", report::<JsonReport<PullReport>>),
    ("runtime-install", "Report of `cudock runtime install`", report::<runtime::InstallReport>),
    ("runtime-list", "Report of `cudock runtime list`", report::<runtime::ListReport>),
    ("sign", "Report of `cudock sign`", report::<JsonReport<cudock_trust::SignReport>>),
    ("slim", "Report of `cudock slim`", report::<slim::SlimReport>),
    ("copy", "Report of `cudock copy` and `cudock push`", report::<transfer::TransferReport>),
    ("stats", "Report of `cudock stats`", report::<JsonReport<StatsReport>>),
    ("sweep", "Report of `cudock sweep`", report::<cudock_sweep_report::SweepReport<'_>>),
    ("top", "Report of `cudock top`", report::<JsonReport<TopReport>>),
    ("verify", "Report of `cudock verify`", report::<JsonReport<cudock_deploy::VerifyReport>>),
    (
        "verify-image",
        "Report of `cudock verify --key`",
        report::<JsonReport<cudock_trust::ImageVerifyReport>>,
    ),
    (
        "volume",
        "Report of `cudock volume ls` and `cudock volume inspect`",
        report::<JsonReport<VolumeReport>>,
    ),
    ("wait", "Report of `cudock wait`", report::<JsonReport<WaitReport>>),
];

pub(crate) fn run(args: &SchemaArgs) -> Result<Outcome, Failure> {
    let Some(name) = &args.name else {
        let rows = SCHEMAS.iter().map(|(name, about, _)| vec![(*name).to_owned(), (*about).to_owned()]);
        output::table(&TextTable::list(&["NAME", "DESCRIBES"], rows.collect()));
        return Ok(Outcome::Yes);
    };
    let (name, about, schema) = SCHEMAS.iter().find(|(known, ..)| known == name).ok_or_else(|| {
        let near = suggest::nearest(name, SCHEMAS.iter().map(|(name, ..)| *name));
        Failure::input(format!("no schema `{name}`")).near(&near).hint("`cudock schema` lists the names")
    })?;
    let mut schema = schema();
    for (key, value) in [
        ("$id", format!("urn:cudock:schema:1:{name}")),
        ("title", (*name).to_owned()),
        ("description", (*about).to_owned()),
    ] {
        schema.insert(key.to_owned(), value.into());
    }
    output::json(&schema);
    Ok(Outcome::Yes)
}

/// The schema of a report.
fn report<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.with_transform(RecursiveTransform(complete)).into_generator().into_root_schema_for::<T>()
}

/// Allows keys that later versions may add, and states the version. Rows of the fact tables reject unknown keys only when
/// they are read.
fn complete(schema: &mut Schema) {
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    if let Some(Value::Object(keys)) = schema.get_mut("properties")
        && let Some(version) = keys.get_mut("schema")
    {
        *version = json!({"description": "Version of the format.", "const": 1});
    }
    // A field that replaces one of a flattened struct is listed twice.
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.sort_by_key(ToString::to_string);
        required.dedup();
    }
}
