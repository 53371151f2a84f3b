//! Reads a user's tables, which add to or replace the embedded ones.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::check::violation::Violation;
use crate::tables::{self, Prices, TableFile, for_each_table};
use cudock_base::text::suggest;
use cudock_base::{ErrorKind, Excerpt, LineIndex, Report, did_you_mean, files};

/// The size limit for a file; the embedded tables together are a tenth of it.
const MAX_BYTES: u64 = 16 << 20;

#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is not the name of a table", path.display())]
    UnknownTable { path: PathBuf, suggestion: Option<String> },
    #[error("{}:{line}:{column}: {message}", path.display())]
    Malformed { path: PathBuf, line: usize, column: usize, message: String, text: String, span: Range<usize> },
}

impl Report for OverlayError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        let near = match self {
            Self::UnknownTable { suggestion, .. } => did_you_mean(suggestion.as_slice()),
            _ => None,
        };
        let hint = match self {
            Self::Malformed { .. } => {
                "correct the table, or omit --facts and CUDOCK_FACTS to use the embedded ones"
            }
            Self::UnknownTable { .. } => "`cudock facts` lists the tables",
            Self::Unreadable { .. } => "pass a readable directory of tables with --facts or CUDOCK_FACTS",
        };
        near.into_iter().chain([hint.to_owned()]).collect()
    }

    fn excerpt(&self) -> Option<Excerpt<'_>> {
        match self {
            Self::Malformed { path, text, span, .. } => Some(Excerpt { path, text, span }),
            _ => None,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Layer<T> {
    pub(crate) table: T,
    path: PathBuf,
    text: String,
}

impl<T: TableFile> Layer<T> {
    fn read(path: &Path) -> Result<Self, OverlayError> {
        let text = read_text(path)?;
        let table = toml::from_str(&text).map_err(|error| {
            malformed(path, &text, error.span().unwrap_or(0..0), error.message().to_owned())
        })?;
        Ok(Self { table, path: path.to_owned(), text })
    }

    /// The error for a violation in this table. A row of the embedded table that is only invalid because of the overlay
    /// is reported at the start of the overlay's file.
    fn error_for(&self, violation: &Violation) -> OverlayError {
        let in_list = self.table.rows().into_iter().filter(|(list, _)| *list == violation.list);
        let index = in_list.enumerate().find(|(_, (_, row))| row.key() == violation.key);
        let span =
            index.and_then(|(index, _)| span_of_row(&self.text, violation.list, index)).unwrap_or(0..0);
        let message = format!("{} {}: {}", violation.list, violation.key, violation.message);
        malformed(&self.path, &self.text, span, message)
    }
}

impl Layer<Prices> {
    fn read_prices(path: &Path) -> Result<Self, OverlayError> {
        let text = read_text(path)?;
        let table = Prices::parse(&text).map_err(|error| {
            let start = offset_of(&text, error.line, error.column);
            malformed(path, &text, start..start, error.message)
        })?;
        Ok(Self { table, path: path.to_owned(), text })
    }

    fn price_error_for(&self, violation: &Violation) -> OverlayError {
        let start = self.text.find(&violation.key).unwrap_or(0);
        malformed(&self.path, &self.text, start..start + violation.key.len(), violation.message.clone())
    }
}

const PRICES_FILE: &str = "azure_prices.csv";

macro_rules! define_overlay {
    ($($name:ident: $type:ident = $file:literal, $doc:literal $(=> $finish:ident)?;)*) => {
        /// A user's tables.
        #[derive(Debug, Default)]
        pub(crate) struct Overlay {
            $(pub(crate) $name: Option<Layer<tables::$type>>,)*
            pub(crate) prices: Option<Layer<Prices>>,
        }

        const FILES: &[&str] = &[$(concat!($file, ".toml"),)* PRICES_FILE];

        impl Overlay {
            fn add(&mut self, path: PathBuf) -> Result<(), OverlayError> {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                match name.strip_suffix(".toml").unwrap_or(name) {
                    $($file => self.$name = Some(Layer::read(&path)?),)*
                    PRICES_FILE => self.prices = Some(Layer::read_prices(&path)?),
                    _ => {
                        let nearest = suggest::nearest(name, FILES.iter().copied());
                        let suggestion = nearest.first().map(|name| (*name).to_owned());
                        return Err(OverlayError::UnknownTable { path, suggestion });
                    }
                }
                Ok(())
            }

            pub(crate) fn file_of(&self, table: &str) -> Option<PathBuf> {
                match table {
                    $($file => self.$name.as_ref().map(|layer| layer.path.clone()),)*
                    Prices::NAME => self.prices.as_ref().map(|layer| layer.path.clone()),
                    _ => None,
                }
            }

            /// The error for a violation in one of these tables, at the row that causes it.
            pub(crate) fn error_for(&self, violation: &Violation) -> Option<OverlayError> {
                match violation.table {
                    $($file => self.$name.as_ref().map(|layer| layer.error_for(violation)),)*
                    Prices::NAME => self.prices.as_ref().map(|layer| layer.price_error_for(violation)),
                    _ => None,
                }
            }
        }
    };
}

for_each_table!(define_overlay);

impl Overlay {
    pub(crate) fn read(directory: &Path) -> Result<Self, OverlayError> {
        let unreadable = |source| OverlayError::Unreadable { path: directory.to_owned(), source };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if matches!(extension, Some("toml" | "csv")) {
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
}

fn span_of_row(text: &str, list: &str, index: usize) -> Option<Range<usize>> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let rows = document.get_ref().get(list)?.get_ref().as_array()?;
    Some(rows.get(index)?.span())
}

fn read_text(path: &Path) -> Result<String, OverlayError> {
    let unreadable = |source| OverlayError::Unreadable { path: path.to_owned(), source };
    let text = files::read_optional(path, MAX_BYTES).map_err(unreadable)?;
    text.ok_or_else(|| unreadable(io::ErrorKind::NotFound.into()))
}

fn malformed(path: &Path, text: &str, span: Range<usize>, message: String) -> OverlayError {
    let (line, column) = LineIndex::new(text).location(span.start);
    OverlayError::Malformed { path: path.to_owned(), line, column, message, text: text.to_owned(), span }
}

fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    start + rest.char_indices().nth(column.saturating_sub(1)).map_or(0, |(offset, _)| offset)
}
