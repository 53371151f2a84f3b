//! `cudock migrate`: retired Azure GPU sizes and services in files, what replaces them, and their translation.

mod input;
mod reported;
mod text;

use cudock_base::write_new_files;
use cudock_cli::MigrateArgs;
use cudock_facts::Facts;
use cudock_facts::sheets::known_region;
use cudock_migrate::{ChoiceFinding, Translation, judge, read, translate};
use schemars::JsonSchema;
use serde::Serialize;

use self::input::MigrateInput;
use crate::failure::{Failure, Outcome};
use crate::finding_text;
use crate::output::{self, FindingFormat, TableUsed, line};

/// The findings in one file.
#[derive(Serialize, JsonSchema)]
struct FileReport {
    path: String,
    #[serde(skip)]
    text: String,
    findings: Vec<ChoiceFinding>,
    /// The number of choices beyond the limit.
    left_out: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct TranslateReport<'a> {
    schema: u8,
    directory: &'a std::path::Path,
    /// What became of each file.
    translations: &'a [Translation],
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct MigrateReport<'a> {
    schema: u8,
    files: &'a [FileReport],
    /// The number of choices that no longer work.
    over: usize,
    tables: &'a [TableUsed],
}

pub(crate) fn run(
    facts: &Facts,
    args: &MigrateArgs,
    format: FindingFormat,
    is_verbose: bool,
) -> Result<Outcome, Failure> {
    let region = args.region.as_deref().map(|region| known_region(facts, region)).transpose()?;
    let inputs =
        args.files.iter().map(|path| MigrateInput::read(path)).collect::<Result<Vec<_>, Failure>>()?;
    let day = output::today();
    if let Some(directory) = &args.output {
        let each = |input: &MigrateInput| translate(facts, day, region, &input.name, &input.text);
        let translations: Vec<Translation> = inputs.iter().map(each).collect();
        let files: Vec<(&str, &str)> = translations
            .iter()
            .flat_map(|translation| &translation.files)
            .map(|file| (file.name.as_str(), file.text.as_str()))
            .collect();
        if !files.is_empty() {
            write_new_files(directory, &files, args.force)?;
        }
        let is_complete = translations.iter().all(|translation| !translation.files.is_empty());
        if let FindingFormat::Json = format {
            output::json(&TranslateReport { schema: 1, directory, translations: &translations });
        } else {
            let paths = files.iter().map(|(name, _)| directory.join(name));
            paths.for_each(|path| line(path.to_string_lossy()));
            let findings = translations.iter().flat_map(|translation| &translation.findings);
            findings.for_each(|finding| finding_text::print(0, &finding.into()));
        }
        return Ok(if is_complete { Outcome::Yes } else { Outcome::No });
    }
    let files: Vec<FileReport> = inputs
        .into_iter()
        .map(|input| {
            let reading = read(&input.text);
            let findings = judge(facts, day, region, &reading.choices);
            let left_out = reading.left_out;
            FileReport { path: input.name, text: input.text, findings, left_out }
        })
        .collect();
    let over = files.iter().flat_map(|file| &file.findings).filter(|finding| finding.is_over()).count();
    let tables = output::tables_used(
        facts,
        &["azure_sizes", "azure_prices", "azure_services", "azure_meters", "gpus"],
    );
    match format {
        FindingFormat::Json => {
            output::json(&MigrateReport { schema: 1, files: &files, over, tables: &tables });
        }
        FindingFormat::Other(format) => output::findings(facts, format, &reported::findings(&files)),
        FindingFormat::Text => text::print(&files, is_verbose),
    }
    output::warn_if_stale(&tables);
    Ok(if over > 0 { Outcome::No } else { Outcome::Yes })
}
