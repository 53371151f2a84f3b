//! Newer tables that a user lays over the embedded ones.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::check::{self, Violation};
use crate::store::Facts;
use crate::tables::{
    Components, Drivers, FindingPages, ForwardCompat, Frameworks, Gpus, Images, Messages, Meters, Packages,
    Prices, Runtimes, Services, Sizes, StorageTable, TableFile, Toolkits,
};
use cudock_base::{ErrorKind, Excerpt, Report, did_you_mean, suggest};

/// Files larger than this are refused: the embedded tables together are a tenth of it.
const MAX_BYTES: u64 = 16 << 20;

/// Why an overlay cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// A file or the directory could not be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file's name is no table's.
    #[error("{} is not the name of a table", path.display())]
    UnknownTable {
        /// The file.
        path: PathBuf,
        /// The nearest name there is.
        suggestion: Option<String>,
    },
    /// A file's content does not fit.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
        /// The file's text, to show the place in.
        text: String,
        /// The place in bytes.
        span: Range<usize>,
    },
}

impl Report for OverlayError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Malformed { .. } => {
                vec![
                    "correct the table, or leave --facts and CUDOCK_FACTS out to use the embedded ones"
                        .to_owned(),
                ]
            }
            Self::UnknownTable { suggestion, .. } => {
                let near: Vec<&str> = suggestion.iter().map(String::as_str).collect();
                did_you_mean(&near)
                    .into_iter()
                    .chain(["`cudock facts` lists the tables".to_owned()])
                    .collect()
            }
            Self::Unreadable { .. } => {
                vec!["--facts and CUDOCK_FACTS name a directory of tables that you can read".to_owned()]
            }
        }
    }

    fn excerpt(&self) -> Option<Excerpt<'_>> {
        match self {
            Self::Malformed { path, text, span, .. } => Some(Excerpt { path, text, span }),
            _ => None,
        }
    }
}

/// One file of the overlay.
#[derive(Debug, Clone)]
pub(crate) struct Layer<T> {
    pub(crate) table: T,
    path: PathBuf,
    text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Overlay {
    pub(crate) gpus: Option<Layer<Gpus>>,
    pub(crate) drivers: Option<Layer<Drivers>>,
    pub(crate) toolkits: Option<Layer<Toolkits>>,
    pub(crate) components: Option<Layer<Components>>,
    pub(crate) forward_compat: Option<Layer<ForwardCompat>>,
    pub(crate) images: Option<Layer<Images>>,
    pub(crate) frameworks: Option<Layer<Frameworks>>,
    pub(crate) messages: Option<Layer<Messages>>,
    pub(crate) findings: Option<Layer<FindingPages>>,
    pub(crate) sizes: Option<Layer<Sizes>>,
    pub(crate) services: Option<Layer<Services>>,
    pub(crate) storage: Option<Layer<StorageTable>>,
    pub(crate) meters: Option<Layer<Meters>>,
    pub(crate) runtimes: Option<Layer<Runtimes>>,
    pub(crate) packages: Option<Layer<Packages>>,
    pub(crate) prices: Option<Layer<Prices>>,
    files: Vec<(&'static str, PathBuf)>,
}

impl Overlay {
    pub(crate) fn read(directory: &Path) -> Result<Self, OverlayError> {
        let unreadable = |source| OverlayError::Unreadable { path: directory.to_owned(), source };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            if matches!(ending, Some("toml" | "csv")) {
                paths.push(path);
            }
        }
        paths.sort();

        let mut overlay = Self::default();
        for path in paths {
            overlay.add(path)?;
        }
        Ok(overlay)
    }

    fn add(&mut self, path: PathBuf) -> Result<(), OverlayError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        match name.as_str() {
            "gpus.toml" => self.gpus = Some(self.layer(path)?),
            "drivers.toml" => self.drivers = Some(self.layer(path)?),
            "toolkits.toml" => self.toolkits = Some(self.layer(path)?),
            "components.toml" => self.components = Some(self.layer(path)?),
            "forward_compat.toml" => self.forward_compat = Some(self.layer(path)?),
            "images.toml" => self.images = Some(self.layer(path)?),
            "frameworks.toml" => self.frameworks = Some(self.layer(path)?),
            "messages.toml" => self.messages = Some(self.layer(path)?),
            "findings.toml" => self.findings = Some(self.layer(path)?),
            "azure_sizes.toml" => self.sizes = Some(self.layer(path)?),
            "azure_services.toml" => self.services = Some(self.layer(path)?),
            "azure_storage.toml" => self.storage = Some(self.layer(path)?),
            "azure_meters.toml" => self.meters = Some(self.layer(path)?),
            "runtimes.toml" => self.runtimes = Some(self.layer(path)?),
            "packages.toml" => self.packages = Some(self.layer(path)?),
            "azure_prices.csv" => {
                let text = read_text(&path)?;
                let table = Prices::parse(&text).map_err(|error| {
                    let start = offset_of(&text, error.line, error.column);
                    malformed(&path, &text, start..start, error.message)
                })?;
                self.files.push((Prices::NAME, path.clone()));
                self.prices = Some(Layer { table, path, text });
            }
            _ => {
                let suggestion = suggest::nearest(&name, FILES).first().map(|name| (*name).to_owned());
                return Err(OverlayError::UnknownTable { path, suggestion });
            }
        }
        Ok(())
    }

    fn layer<T: TableFile>(&mut self, path: PathBuf) -> Result<Layer<T>, OverlayError> {
        let text = read_text(&path)?;
        let table: T = toml::from_str(&text).map_err(|error| {
            malformed(&path, &text, error.span().unwrap_or(0..0), error.message().to_owned())
        })?;
        self.files.push((T::NAME, path.clone()));
        Ok(Layer { table, path, text })
    }

    pub(crate) fn file_of(&self, table: &str) -> Option<PathBuf> {
        self.files.iter().find(|(name, _)| *name == table).map(|(_, path)| path.clone())
    }

    /// Holds the tables as they are with the overlay to the rules the embedded ones are held to, and lays a
    /// broken one at the door of the row in the overlay that broke it.
    pub(crate) fn check_against(&self, facts: &Facts) -> Result<(), OverlayError> {
        for violation in check::all(facts) {
            let found = [
                place(self.gpus.as_ref(), &violation),
                place(self.drivers.as_ref(), &violation),
                place(self.toolkits.as_ref(), &violation),
                place(self.components.as_ref(), &violation),
                place(self.forward_compat.as_ref(), &violation),
                place(self.images.as_ref(), &violation),
                place(self.frameworks.as_ref(), &violation),
                place(self.messages.as_ref(), &violation),
                place(self.findings.as_ref(), &violation),
                place(self.sizes.as_ref(), &violation),
                place(self.services.as_ref(), &violation),
                place(self.storage.as_ref(), &violation),
                place(self.meters.as_ref(), &violation),
                place(self.runtimes.as_ref(), &violation),
                place(self.packages.as_ref(), &violation),
                self.prices.as_ref().filter(|_| violation.table == Prices::NAME).map(|layer| {
                    let start = layer.text.find(&violation.key).unwrap_or(0);
                    malformed(
                        &layer.path,
                        &layer.text,
                        start..start + violation.key.len(),
                        violation.message.clone(),
                    )
                }),
            ];
            if let Some(error) = found.into_iter().flatten().next() {
                return Err(error);
            }
        }
        Ok(())
    }
}

const FILES: [&str; 16] = [
    "gpus.toml",
    "drivers.toml",
    "toolkits.toml",
    "components.toml",
    "forward_compat.toml",
    "images.toml",
    "frameworks.toml",
    "messages.toml",
    "findings.toml",
    "azure_sizes.toml",
    "azure_services.toml",
    "azure_storage.toml",
    "azure_meters.toml",
    "azure_prices.csv",
    "runtimes.toml",
    "packages.toml",
];

/// The error for a violation, if this layer's table is the one violated. A row of the embedded table that breaks
/// only because of the overlay is shown at the head of the overlay's file.
fn place<T: TableFile>(layer: Option<&Layer<T>>, violation: &Violation) -> Option<OverlayError> {
    let layer = layer.filter(|_| violation.table == T::NAME)?;
    let in_list = layer.table.rows().into_iter().filter(|(list, _)| *list == violation.list);
    let index = in_list.enumerate().find(|(_, (_, row))| row.key() == violation.key).map(|(index, _)| index);
    let span = index.and_then(|index| span_of_row(&layer.text, violation.list, index)).unwrap_or(0..0);
    let message = format!("{} {}: {}", violation.list, violation.key, violation.message);
    Some(malformed(&layer.path, &layer.text, span, message))
}

fn span_of_row(text: &str, list: &str, index: usize) -> Option<Range<usize>> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let rows = document.get_ref().get(list)?.get_ref().as_array()?;
    Some(rows.get(index)?.span())
}

fn read_text(path: &Path) -> Result<String, OverlayError> {
    let unreadable = |source| OverlayError::Unreadable { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_BYTES {
        let message = format!("{size} bytes is too large for a table (at most {MAX_BYTES})");
        return Err(unreadable(io::Error::new(io::ErrorKind::FileTooLarge, message)));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

fn malformed(path: &Path, text: &str, span: Range<usize>, message: String) -> OverlayError {
    let before = text.get(..span.start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    OverlayError::Malformed { path: path.to_owned(), line, column, message, text: text.to_owned(), span }
}

fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    start + rest.char_indices().nth(column.saturating_sub(1)).map_or(0, |(offset, _)| offset)
}
