//! A refresh: reads region by region into the journal, then writes the table.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cudock_base::files::lock;
use cudock_base::{FileError, text};
use cudock_facts::Facts;
use cudock_facts::lookup::NameMatch;
use cudock_facts::tables::Prices;
use cudock_facts::version::Date;
use cudock_http::Progress;

use crate::api::query;
use crate::error::PricesError;
use crate::fetch::{ListSize, PageError, PriceService};
use crate::files;
use crate::journal::{Journal, Run};
use crate::meters::file;
use crate::meters::{MeterCollector, SERVICES};
use crate::region::{RegionCollector, RegionPrices};
use crate::report::{RefreshReport, Written, report};
use crate::request::RefreshRequest;
use crate::rules::{Sizes, SkipReason, judge};
use crate::table::{Changes, PriceTable};

const TABLE: &str = "azure_prices.csv";
const LOCK: &str = "azure_prices.lock";

/// Receives the progress of a run.
pub trait Listener: Send + Sync {
    /// Waiting for another run in the same directory.
    fn waiting(&self) {}
    /// An earlier, unfinished run has read `done` of the regions.
    fn resumed(&self, _done: usize, _of: usize) {}
    /// A region is being requested.
    fn region(&self, _index: usize, _of: usize, _region: &str) {}
    /// A region was read and kept.
    fn done(&self, _index: usize, _of: usize, _region: &RegionPrices) {}
    /// An attempt failed and another follows after `wait`.
    fn retrying(&self, _reason: &str, _wait: Duration) {}
}

impl Listener for () {}

/// Refreshes prices.
///
/// Each region is on disk before the next is requested, so that an interrupted run can be resumed. The table is replaced
/// atomically, and only by one that reads back correctly.
pub fn refresh(
    request: &RefreshRequest,
    facts: &Facts,
    listener: &dyn Listener,
) -> Result<RefreshReport, PricesError> {
    let sizes = sizes(request, facts)?;
    let regions = regions(request, facts)?;
    fs::create_dir_all(&request.directory).map_err(FileError::at("create directory", &request.directory))?;
    let _lock = locked(&request.directory, listener)?;
    let (mut journal, left) = Journal::open(&request.directory, &request.endpoint, &sizes, request.today)?;
    if let Some(run) = left {
        write(&request.directory, &run, facts, request.today)?;
    }
    let resumed: BTreeSet<String> = journal.run.regions.iter().map(|done| done.region.clone()).collect();
    let done_before = regions.iter().filter(|region| resumed.contains(*region)).count();
    if done_before > 0 {
        listener.resumed(done_before, regions.len());
    }
    let retries = Retrying(listener);
    let service = PriceService::new(&request.endpoint, &request.connection, &retries)?;
    for (index, region) in regions.iter().enumerate() {
        if journal.has(region) {
            continue;
        }
        listener.region(index + 1, regions.len(), region);
        let read =
            read_region(&service, region, &sizes, request.today).map_err(|PageError { page, error }| {
                let kept = regions.iter().filter(|region| journal.has(region)).count();
                PricesError::Service {
                    region: region.clone(),
                    page,
                    host: request.endpoint.host().to_owned(),
                    error,
                    kept,
                }
            })?;
        journal.add(read.clone())?;
        listener.done(index + 1, regions.len(), &read);
    }
    let written = write(&request.directory, &journal.run, facts, request.today)?;
    let run = journal.close()?;
    Ok(report(request, &run, &regions, &resumed, written))
}

pub fn table_in(directory: &Path) -> Result<Option<(PathBuf, Prices)>, PricesError> {
    let path = directory.join(TABLE);
    let Some(text) = files::read(&path)? else { return Ok(None) };
    let table = Prices::parse(&text)
        .map_err(|error| PricesError::Overlay { path: path.clone(), reason: error.to_string() })?;
    Ok(Some((path, table)))
}

fn sizes(request: &RefreshRequest, facts: &Facts) -> Result<Sizes, PricesError> {
    if request.sizes.is_empty() {
        return Ok(Sizes::new(facts.sizes().size.iter().map(|size| size.name.clone()), true));
    }
    let found = request.sizes.iter().map(|name| match facts.sizes().find(name) {
        NameMatch::One(size) => Ok(size.name.clone()),
        NameMatch::Several(_) => Err(PricesError::Size { name: name.clone(), near: Vec::new() }),
        NameMatch::NotFound(near) => Err(PricesError::Size {
            name: name.clone(),
            near: near.iter().map(|name| String::from(*name)).collect(),
        }),
    });
    Ok(Sizes::new(found.collect::<Result<Vec<String>, PricesError>>()?, false))
}

/// The regions in alphabetical order, without duplicates. Regions that the tables do not have may be new, so they are
/// requested as well.
fn regions(request: &RefreshRequest, facts: &Facts) -> Result<Vec<String>, PricesError> {
    if request.regions.is_empty() {
        let known: BTreeSet<&str> = facts.prices().regions().collect();
        return Ok(known.into_iter().map(str::to_owned).collect());
    }
    let mut regions = BTreeSet::new();
    for name in &request.regions {
        let folded: String =
            name.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
        if !query::is_region(&folded) {
            return Err(PricesError::Region { name: text::truncate(name, 60) });
        }
        regions.insert(folded);
    }
    Ok(regions.into_iter().collect())
}

fn locked(directory: &Path, listener: &dyn Listener) -> Result<File, PricesError> {
    let path = directory.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(FileError::at("open", &path))?;
    lock(&file, &|| listener.waiting()).map_err(FileError::at("lock", &path))?;
    Ok(file)
}

fn read_region(
    service: &PriceService<'_>,
    region: &str,
    sizes: &Sizes,
    today: Date,
) -> Result<RegionPrices, PageError> {
    let mut collector = RegionCollector::default();
    let machines = service.read_list(region, &query::machines(region, sizes), |row| {
        judge(row, region, sizes, today).map(|verdict| collector.add(verdict))
    })?;
    let mut read = collector.finish(region, today);
    let mut others = ListSize::default();
    if sizes.all {
        let mut collector = MeterCollector::default();
        others = service
            .read_list(region, &query::meters(region, &SERVICES), |row| collector.add(row, region, today))
            .map_err(|error| PageError { page: error.page.saturating_add(machines.pages), ..error })?;
        let left_out;
        (read.meters, left_out) = collector.finish();
        if left_out > 0 {
            *read.left_out.entry(SkipReason::Other).or_default() += left_out;
        }
    }
    read.pages = machines.pages.saturating_add(others.pages);
    read.rows = machines.rows.saturating_add(others.rows);
    Ok(read)
}

fn write(directory: &Path, run: &Run, facts: &Facts, today: Date) -> Result<Written, PricesError> {
    let embedded = Facts::embedded();
    let there = table_in(directory)?;
    let tables = std::iter::once(embedded.prices()).chain(there.as_ref().map(|(_, table)| table));
    let path = directory.join(TABLE);
    let mut written = Written { table: None, rows: 0, changes: Changes::default(), meters: None };
    if let Some(mut table) = PriceTable::of(tables) {
        table.apply(run, today);
        table.count_kept();
        (written.rows, written.changes) = (table.rows(), table.changes);
        if table.changes.read > 0 {
            let text = table.text();
            let is_size = |name: &str| facts.sizes().find(name).one().is_some_and(|size| size.name == name);
            table
                .check(&text, is_size)
                .map_err(|reason| PricesError::Check { path: path.clone(), reason })?;
            files::write(&path, text.as_bytes())?;
            written.table = Some(path);
        }
    }
    if run.sizes.is_empty() {
        written.meters = Some(file::write(directory, run, &embedded)?);
    }
    Ok(written)
}

/// Forwards retries to the listener.
struct Retrying<'a>(&'a dyn Listener);

impl Progress for Retrying<'_> {
    fn retrying(&self, what: &str, reason: &str, wait: Duration) {
        self.0.retrying(&format!("{what}: {reason}"), wait);
    }
}
