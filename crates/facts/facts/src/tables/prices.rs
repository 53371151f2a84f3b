use std::collections::HashMap;
use std::fmt;

use cudock_base::Usd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::version::Date;

/// `azure_prices.csv`: prices of sizes by region.
///
/// The only table that is not TOML: 1,400 rows of eight columns, which `cudock prices refresh` updates. Rows refer to
/// sizes and regions by index, which makes the embedded form a tenth of the text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// The day the table was last compared with its sources.
    pub as_of: Date,
    pub sources: Vec<PriceSource>,
    sizes: Vec<String>,
    regions: Vec<String>,
    rows: Vec<PackedRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PriceSource {
    /// The name rows use.
    pub name: String,
    pub address: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PackedRow {
    size: u16,
    region: u16,
    price: Option<PackedPrice>,
    spot: Option<PackedPrice>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PackedPrice {
    /// Billionths of a dollar for an hour: in half the bytes of [`Usd`], which is made for sums.
    nanos: u64,
    source: u16,
    date: Date,
}

impl PackedPrice {
    fn usd(&self) -> Usd {
        Usd::from_nanos(u128::from(self.nanos))
    }
}

/// A price in a region, with its source.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PriceRow<'a> {
    pub size: &'a str,
    pub region: &'a str,
    /// Pay as you go.
    pub price: Option<Usd>,
    pub price_date: Option<Date>,
    pub price_source: Option<&'a str>,
    pub spot: Option<Usd>,
    pub spot_date: Option<Date>,
    pub spot_source: Option<&'a str>,
}

/// An error at a position of the price file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricesError {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl fmt::Display for PricesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

const COLUMNS: &str = "size,region,price,spot,price_source,price_date,spot_source,spot_date";

impl Prices {
    pub const NAME: &'static str = "azure_prices";

    pub fn parse(text: &str) -> Result<Self, PricesError> {
        let mut as_of = None;
        let mut sources: Vec<PriceSource> = Vec::new();
        let mut sizes = Names::default();
        let mut regions = Names::default();
        let mut rows = Vec::new();
        let mut header_seen = false;
        for (index, line) in text.lines().enumerate() {
            let wrong = |column: usize, message: String| PricesError { line: index + 1, column, message };
            if let Some(comment) = line.strip_prefix('#') {
                let comment = comment.trim();
                if let Some(date) = comment.strip_prefix("as_of:") {
                    as_of = Some(date.trim().parse::<Date>().map_err(|error| wrong(1, error.to_string()))?);
                } else if let Some(source) = comment.strip_prefix("source ") {
                    let (name, address) = source
                        .split_once('=')
                        .ok_or_else(|| wrong(1, "expected `# source NAME = URL`".into()))?;
                    let (name, address) = (name.trim().to_owned(), address.trim().to_owned());
                    sources.push(PriceSource { name, address });
                }
                continue;
            }
            if line.trim().is_empty() {
                continue;
            }
            if !header_seen {
                if line.trim() != COLUMNS {
                    return Err(wrong(
                        1,
                        format!("the first line that is not a comment must be `{COLUMNS}`"),
                    ));
                }
                header_seen = true;
                continue;
            }
            let row = Cells::of(line, index + 1)?;
            rows.push(PackedRow {
                size: sizes.number(row.text(0)?).ok_or_else(|| row.wrong(0, "too many sizes"))?,
                region: regions.number(row.text(1)?).ok_or_else(|| row.wrong(1, "too many regions"))?,
                price: row.price(2, 4, 5, &sources)?,
                spot: row.price(3, 6, 7, &sources)?,
            });
        }
        let first = |message: &str| PricesError { line: 1, column: 1, message: message.to_owned() };
        let as_of = as_of.ok_or_else(|| first("a line `# as_of: YYYY-MM-DD` is missing"))?;
        if !header_seen {
            return Err(first("the table is empty"));
        }
        Ok(Self { as_of, sources, sizes: sizes.names, regions: regions.names, rows })
    }

    /// The date of the prices: that of the newest row, unless the table's own date is earlier. Checking a file again does
    /// not make its prices newer.
    pub fn newest(&self) -> Date {
        let dates =
            self.rows.iter().flat_map(|row| [&row.price, &row.spot]).flatten().map(|price| price.date);
        dates.max().map_or(self.as_of, |newest| newest.min(self.as_of))
    }

    /// All rows, in the order of the file.
    pub fn rows(&self) -> impl Iterator<Item = PriceRow<'_>> {
        self.rows.iter().filter_map(|row| self.unpack(row))
    }

    pub fn of_size<'a>(&'a self, size: &str) -> impl Iterator<Item = PriceRow<'a>> + use<'a> {
        let number = self.sizes.iter().position(|name| name.eq_ignore_ascii_case(size));
        self.rows
            .iter()
            .filter(move |row| Some(usize::from(row.size)) == number)
            .filter_map(|row| self.unpack(row))
    }

    pub fn regions(&self) -> impl Iterator<Item = &str> {
        self.regions.iter().map(String::as_str)
    }

    pub fn sizes(&self) -> impl Iterator<Item = &str> {
        self.sizes.iter().map(String::as_str)
    }

    fn unpack<'a>(&'a self, row: &PackedRow) -> Option<PriceRow<'a>> {
        let source = |price: &Option<PackedPrice>| -> Option<&'a str> {
            let number = usize::from(price.as_ref()?.source);
            Some(self.sources.get(number)?.name.as_str())
        };
        Some(PriceRow {
            size: self.sizes.get(usize::from(row.size))?,
            region: self.regions.get(usize::from(row.region))?,
            price: row.price.as_ref().map(PackedPrice::usd),
            price_date: row.price.as_ref().map(|price| price.date),
            price_source: source(&row.price),
            spot: row.spot.as_ref().map(PackedPrice::usd),
            spot_date: row.spot.as_ref().map(|price| price.date),
            spot_source: source(&row.spot),
        })
    }
}

/// Names in order of first use, with their indexes.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    numbers: HashMap<String, u16>,
}

impl Names {
    fn number(&mut self, name: &str) -> Option<u16> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = u16::try_from(self.names.len()).ok()?;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        Some(number)
    }
}

/// A line's cells with their columns. No cell contains a comma, so none is quoted.
struct Cells<'a> {
    line: usize,
    cells: Vec<(usize, &'a str)>,
}

impl<'a> Cells<'a> {
    fn of(text: &'a str, line: usize) -> Result<Self, PricesError> {
        let mut column = 1;
        let mut cells = Vec::with_capacity(8);
        for cell in text.split(',') {
            cells.push((column, cell.trim()));
            column += cell.chars().count() + 1;
        }
        if cells.len() != 8 {
            let message = format!("expected 8 columns, found {}", cells.len());
            return Err(PricesError { line, column: 1, message });
        }
        Ok(Self { line, cells })
    }

    fn wrong(&self, index: usize, message: impl Into<String>) -> PricesError {
        let column = self.cells.get(index).map_or(1, |(column, _)| *column);
        PricesError { line: self.line, column, message: message.into() }
    }

    fn cell(&self, index: usize) -> &'a str {
        self.cells.get(index).map_or("", |(_, text)| *text)
    }

    fn text(&self, index: usize) -> Result<&'a str, PricesError> {
        Some(self.cell(index)).filter(|cell| !cell.is_empty()).ok_or_else(|| self.wrong(index, "is empty"))
    }

    fn price(
        &self,
        usd: usize,
        source: usize,
        date: usize,
        sources: &[PriceSource],
    ) -> Result<Option<PackedPrice>, PricesError> {
        if self.cell(usd).is_empty() {
            return Ok(None);
        }
        let name = self.text(source)?;
        let number = sources
            .iter()
            .position(|known| known.name == name)
            .and_then(|number| u16::try_from(number).ok())
            .ok_or_else(|| self.wrong(source, format!("no `# source {name} = …` line names this source")))?;
        let wrong = || self.wrong(usd, format!("`{}` is not a price such as 0.526", self.cell(usd)));
        let amount: Usd = self.cell(usd).parse().map_err(|_| wrong())?;
        Ok(Some(PackedPrice {
            nanos: u64::try_from(amount.nanos()).map_err(|_| wrong())?,
            source: number,
            date: self.text(date)?.parse().map_err(|error| self.wrong(date, format!("{error}")))?,
        }))
    }
}
