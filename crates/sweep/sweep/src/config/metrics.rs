//! Where metrics come from, and how a line has them.

use std::path::PathBuf;
use std::str::FromStr;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::choice::{Choice, Kind, Kinds};
use crate::config::problem::Problem;

/// Where metrics come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricOptions {
    /// The source; standard output if absent.
    pub from: Option<Choice<MetricSource>>,
    /// The format of a line of standard output or of the file; `name=value` if absent.
    pub format: Option<Choice<MetricFormat>>,
    /// The regular expression of `format = "regex"`, with a group `value` and optionally `name` and `step`.
    pub pattern: Option<String>,
    /// The file, or the directory of MLflow's file store; `mlruns` for the latter if absent.
    pub path: Option<PathBuf>,
}

/// The source of metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricSource {
    /// Standard output of the trial.
    Stdout(MetricFormat),
    /// A file that the trial appends to, relative to its working directory.
    File { path: PathBuf, format: MetricFormat },
    /// A directory in the format of MLflow's file store (`mlruns`), relative to the trial's working directory.
    Mlflow { path: PathBuf },
}

/// The format of metrics in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricFormat {
    /// `name=value` anywhere in a line, several per line; `step=N` or `epoch=N` in the same line is the step.
    Pairs,
    /// A JSON object per line, whose numbers are metrics; `step` or `epoch` is the step.
    Json,
    /// Matches of a regular expression.
    Regex(MetricPattern),
}

/// A regular expression with a group `value`, and optionally groups `name` and `step`. Without `name` it is the first
/// objective.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MetricPattern(Regex);

impl MetricPattern {
    pub fn regex(&self) -> &Regex {
        &self.0
    }
}

impl FromStr for MetricPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The last line of the library's message is the reason; those before it repeat the expression.
        let regex = Regex::new(text).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().last().unwrap_or_default();
            format!("invalid regular expression: {}", line.trim_start_matches("error: "))
        })?;
        if regex.capture_names().flatten().any(|name| name == "value") {
            return Ok(Self(regex));
        }
        Err("the pattern has no group `value`: write (?<value>[0-9.eE+-]+) around the number".to_owned())
    }
}

impl TryFrom<String> for MetricPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<MetricPattern> for String {
    fn from(pattern: MetricPattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

impl PartialEq for MetricPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for MetricPattern {}

impl Kinds for MetricSource {
    type Settings = MetricOptions;
    const SCHEMA: (&'static str, &'static str) = ("MetricOrigin", "A source of metrics.");
    const KINDS: &'static [Kind<Self>] = &[
        Kind::new("stdout", "Standard output of the program.", MetricOptions::stdout),
        Kind::new("file", "A file that the program appends to.", MetricOptions::file),
        Kind::new("mlflow", "MLflow's file store.", MetricOptions::mlflow),
    ];
}

impl Kinds for MetricFormat {
    type Settings = MetricOptions;
    const SCHEMA: (&'static str, &'static str) = ("MetricSyntax", "The format of a line with metrics.");
    const KINDS: &'static [Kind<Self>] = &[
        Kind::new("pairs", "`accuracy=0.93`, anywhere in a line.", |options: &MetricOptions| {
            options.plain(Self::Pairs)
        }),
        Kind::new("json", "`{\"accuracy\": 0.93}`.", |options: &MetricOptions| options.plain(Self::Json)),
        Kind::new("regex", "What `pattern` matches.", MetricOptions::regex),
    ];
}

impl MetricOptions {
    pub(super) fn source(&self) -> Result<MetricSource, Problem> {
        self.from.map_or_else(|| self.stdout(), |source| source.read(self))
    }

    fn stdout(&self) -> Result<MetricSource, Problem> {
        let format = self.line_format()?;
        unused("path", self.path.is_some(), "from = \"file\" or \"mlflow\"")?;
        Ok(MetricSource::Stdout(format))
    }

    fn file(&self) -> Result<MetricSource, Problem> {
        let format = self.line_format()?;
        let missing = || problem("path", "`from = \"file\"` needs a `path` such as \"metrics.jsonl\"");
        Ok(MetricSource::File { path: self.path.clone().ok_or_else(missing)?, format })
    }

    fn mlflow(&self) -> Result<MetricSource, Problem> {
        unused("format", self.format.is_some(), "from = \"stdout\" or \"file\"")?;
        unused("pattern", self.pattern.is_some(), "format = \"regex\"")?;
        Ok(MetricSource::Mlflow { path: self.path.clone().unwrap_or_else(|| "mlruns".into()) })
    }

    fn line_format(&self) -> Result<MetricFormat, Problem> {
        self.format.map_or_else(|| self.plain(MetricFormat::Pairs), |format| format.read(self))
    }

    /// A format without settings.
    fn plain(&self, format: MetricFormat) -> Result<MetricFormat, Problem> {
        unused("pattern", self.pattern.is_some(), "format = \"regex\"").map(|()| format)
    }

    fn regex(&self) -> Result<MetricFormat, Problem> {
        let Some(pattern) = &self.pattern else {
            let message = "`format = \"regex\"` needs a `pattern` such as \"accuracy: (?<value>[0-9.]+)\"";
            return Err(problem("pattern", message));
        };
        pattern.parse().map(MetricFormat::Regex).map_err(|message: String| problem("pattern", message))
    }
}

fn problem(key: &str, message: impl Into<String>) -> Problem {
    Problem::new(&format!("metrics.{key}"), message)
}

/// Rejects a key that is set although what needs it is not.
fn unused(key: &str, is_set: bool, wanted: &str) -> Result<(), Problem> {
    if !is_set {
        return Ok(());
    }
    Err(problem(key, format!("`{key}` is for `{wanted}`: remove it, or set that")))
}
