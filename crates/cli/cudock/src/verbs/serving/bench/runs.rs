//! Runs loads one after the other, and searches for the highest rate.

use std::path::Path;
use std::time::Duration;

use cudock_base::text::format::fixed_bytes;
use cudock_cli::BenchArgs;
use cudock_loadgen::results::text::{head, label, row, seconds};
use cudock_loadgen::{Load, LoadReport, Prepared, RateSearch, ServerUrl, highest_rate, prepare};

use super::report::{BenchReport, SearchResult};
use super::text;
use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, DIM, Format, line, status, styled};

pub(crate) fn run(args: &BenchArgs, format: Format) -> Result<Outcome, Failure> {
    let loads = loads(args)?;
    let url = args.url.clone().unwrap_or_default();
    let target: ServerUrl = url.parse()?;
    let plan = prepare(&args.requests(), &target)?;
    let bytes = plan.requests.iter().map(|request| request.body_length).max().unwrap_or_default();
    let text = format == Format::Text;
    progress(&format!(
        "POST http://{}{}, {} ({}), {} bodies",
        target.authority(),
        plan.path,
        plan.summary,
        fixed_bytes(bytes as u64),
        plan.requests.len(),
    ));
    let mut measured = BenchReport {
        schema: 1,
        url,
        path: plan.path.clone(),
        protocol: args.protocol,
        body_bytes: bytes,
        runs: Vec::new(),
        search: None,
    };
    if text {
        line(styled(BOLD, &head()));
    }
    for load in loads {
        let report = run_load(args, &plan, load)?;
        if text {
            line(row(&report));
        }
        measured.runs.push(report);
    }
    if let Some(target) = args.target_p99 {
        search(args, &plan, target.0, text, &mut measured)?;
    }
    if let Some(file) = &args.plot {
        let title = format!(
            "{}{}, {}",
            measured.url,
            if target.path().is_some() { "" } else { &plan.path },
            plan.summary
        );
        write_plot(file, &cudock_loadgen::results::plot::runs(&title, &measured.runs))?;
    }
    match format {
        Format::Text => text::notes(&measured),
        Format::Json => output::json(&measured),
    }
    Ok(outcome(&measured))
}

pub(crate) fn write_plot(file: &Path, svg: &str) -> Result<(), Failure> {
    std::fs::write(file, svg)
        .map_err(|error| Failure::outside(format!("cannot write {}: {error}", file.display())))?;
    progress(&format!("plot written to {}", file.display()));
    Ok(())
}

/// The requested loads, in order; a search alone needs none.
fn loads(args: &BenchArgs) -> Result<Vec<Load>, Failure> {
    if args.duration.is_some_and(|duration| duration.0.is_zero()) {
        return Err(Failure::input("--duration is zero").hint("pass --duration 5s"));
    }
    if let Some(rate) = args.rate.iter().find(|rate| !(**rate > 0.0 && rate.is_finite())) {
        return Err(Failure::input(format!(
            "invalid rate {rate}: expected a positive number of requests per second"
        ))
        .hint("pass --rate 100"));
    }
    if args.clients.contains(&0) {
        return Err(Failure::input("the number of clients is zero").hint("pass -c 1"));
    }
    let nothing = args.clients.is_empty() && args.rate.is_empty() && args.target_p99.is_none();
    let clients: &[usize] = if nothing { &[1, 8, 32, 128] } else { &args.clients };
    let closed = clients.iter().map(|clients| Load::Closed { clients: *clients });
    let open = args.rate.iter().map(|rate| Load::Open { rate: *rate, arrivals: args.arrivals });
    Ok(closed.chain(open).collect())
}

fn run_load(args: &BenchArgs, plan: &Prepared, load: Load) -> Result<LoadReport, Failure> {
    let settings = args.load(plan.address, load);
    progress(&format!("{}, {} …", label(load), seconds(settings.warm_up + settings.duration)));
    Ok(cudock_loadgen::run(&settings, &plan.requests)?)
}

fn search(
    args: &BenchArgs,
    plan: &Prepared,
    target: Duration,
    text: bool,
    measured: &mut BenchReport,
) -> Result<(), Failure> {
    let best = measured.runs.iter().map(|run| run.goodput_per_second).fold(0.0, f64::max);
    let estimate = if best > 0.0 {
        best
    } else {
        progress("32 clients, to estimate the rate …");
        let settings = args.load(plan.address, Load::Closed { clients: 32 });
        cudock_loadgen::run(&settings, &plan.requests)?.goodput_per_second
    };
    let search = RateSearch::around(estimate);
    let (rate, steps) = highest_rate(&search, |rate| {
        let load = Load::Open { rate, arrivals: args.arrivals };
        let report = run_load(args, plan, load)?;
        let met = report.meets(target, RateSearch::GOODPUT);
        if text {
            line(row(&report));
        }
        measured.runs.push(report);
        Ok::<_, Failure>(met)
    })?;
    measured.search = Some(SearchResult { target_p99_ms: target.as_secs_f64() * 1e3, rate, steps });
    Ok(())
}

/// Wrong responses, no responses, and a missed target are failures.
fn outcome(measured: &BenchReport) -> Outcome {
    let wrong = measured.runs.iter().any(|run| run.wrong > 0);
    let nothing = measured.runs.iter().any(|run| run.latency.count == 0 && run.goodput_per_second == 0.0);
    let missed = measured.search.as_ref().is_some_and(|found| found.rate.is_none());
    if wrong || nothing || missed { Outcome::No } else { Outcome::Yes }
}

pub(crate) fn progress(text: &str) {
    status(styled(DIM, text));
}
