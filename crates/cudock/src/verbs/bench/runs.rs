//! The runs, one after the other, and the search for the highest rate.

use std::time::Duration;

use cudock_load::{
    Load, LoadReport, LoadSettings, Prepared, RateSearch, RequestOptions, SearchStep, ServerUrl,
    highest_rate, prepare,
};
use serde::Serialize;

use super::args::BenchArgs;
use super::{failure, print};
use crate::failure::{Failure, Outcome};
use crate::output::{self, DIM, Format, styled};
use cudock_base::format::fixed_bytes;

/// How long a run counts, and how long it lasts before that, unless the user says so.
const DURATION: Duration = Duration::from_secs(5);
const WARM_UP: Duration = Duration::from_secs(1);

fn duration(words: &BenchArgs) -> Duration {
    words.duration.map_or(DURATION, |span| span.0)
}

fn warm_up(words: &BenchArgs) -> Duration {
    words.warm_up.map_or(WARM_UP, |span| span.0)
}

/// All that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    schema: u8,
    url: String,
    path: String,
    protocol: cudock_load::payload::Protocol,
    body_bytes: usize,
    pub(super) runs: Vec<LoadReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) search: Option<Found>,
}

/// What a search came to.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub(super) target_p99_ms: f64,
    /// The highest rate within the target; none if even one a second is too much.
    pub(super) rate: Option<f64>,
    steps: Vec<SearchStep>,
}

pub(super) fn run(words: &BenchArgs, format: Format) -> Result<Outcome, Failure> {
    let loads = loads(words)?;
    let url = words.url.clone().unwrap_or_default();
    let target: ServerUrl = url.parse().map_err(|error| failure(&error))?;
    let options = RequestOptions {
        protocol: words.protocol.into(),
        model_name: words.model_name.as_deref(),
        shapes: &words.shape,
        dtype: words.dtype.as_deref(),
        body: words.body.as_deref(),
        headers: &words.header,
        rows: &words.rows,
        bodies: words.bodies,
        seed: words.seed,
    };
    let plan = prepare(&options, &target).map_err(|error| failure(&error))?;
    let bytes = plan.requests.iter().map(cudock_load::LoadRequest::body_length).max().unwrap_or_default();
    let text = format == Format::Text;
    talk(&format!(
        "POST http://{}{}, {} ({}), {} bodies",
        target.authority(),
        plan.path,
        plan.summary,
        fixed_bytes(bytes as u64),
        plan.requests.len(),
    ));
    let mut measured = Measured {
        schema: 1,
        url,
        path: plan.path.clone(),
        protocol: words.protocol.into(),
        body_bytes: bytes,
        runs: Vec::new(),
        search: None,
    };
    if text {
        print::head();
    }
    for load in loads {
        talk(&format!("{}, {} …", print::label(load), print::seconds(warm_up(words) + duration(words))));
        let report = once(words, &plan, load)?;
        if text {
            print::row(&report);
        }
        measured.runs.push(report);
    }
    if let Some(target) = words.target_p99 {
        search(words, &plan, target.0, text, &mut measured)?;
    }
    if let Some(file) = &words.plot {
        let title = format!(
            "{}{}, {}",
            measured.url,
            if target.path().is_some() { "" } else { &plan.path },
            plan.summary
        );
        std::fs::write(file, print::picture(&title, &measured.runs))
            .map_err(|error| Failure::outside(format!("cannot write {}: {error}", file.display())))?;
        talk(&format!("drawn into {}", file.display()));
    }
    match format {
        Format::Text => print::notes(&measured),
        Format::Json => output::json(&measured),
    }
    Ok(outcome(&measured))
}

/// The loads asked for, in order; a search alone needs none.
fn loads(words: &BenchArgs) -> Result<Vec<Load>, Failure> {
    if duration(words).is_zero() {
        return Err(Failure::input("a run of no length counts nothing").hint("pass --duration 5s"));
    }
    if let Some(rate) = words.rate.iter().find(|rate| !(**rate > 0.0 && rate.is_finite())) {
        return Err(Failure::input(format!("{rate} requests a second are no load")).hint("pass --rate 100"));
    }
    if words.clients.contains(&0) {
        return Err(Failure::input("no client is no load").hint("pass -c 1"));
    }
    let nothing = words.clients.is_empty() && words.rate.is_empty() && words.target_p99.is_none();
    let clients: &[usize] = if nothing { &[1, 8, 32, 128] } else { &words.clients };
    let closed = clients.iter().map(|clients| Load::Closed { clients: *clients });
    let open = words.rate.iter().map(|rate| Load::Open { rate: *rate, arrivals: words.arrivals.into() });
    Ok(closed.chain(open).collect())
}

fn once(words: &BenchArgs, plan: &Prepared, load: Load) -> Result<LoadReport, Failure> {
    let settings = LoadSettings {
        address: plan.address,
        load,
        warm_up: warm_up(words),
        duration: duration(words),
        grace: words.grace.0,
        threads: words.threads,
        connections: words.connections,
        check_every: words.check_every,
        seed: words.seed,
    };
    cudock_load::run(&settings, &plan.requests).map_err(|error| failure(&error))
}

fn search(
    words: &BenchArgs,
    plan: &Prepared,
    target: Duration,
    text: bool,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let best = measured.runs.iter().map(|run| run.goodput_per_second).fold(0.0, f64::max);
    let estimate = if best > 0.0 {
        best
    } else {
        talk("32 clients, to know where to begin …");
        once(words, plan, Load::Closed { clients: 32 })?.goodput_per_second
    };
    let search = RateSearch::around(estimate);
    let (rate, steps) = highest_rate(&search, |rate| {
        let load = Load::Open { rate, arrivals: words.arrivals.into() };
        talk(&format!("{}, {} …", print::label(load), print::seconds(warm_up(words) + duration(words))));
        let report = once(words, plan, load)?;
        let met = report.meets(target, RateSearch::GOODPUT);
        if text {
            print::row(&report);
        }
        measured.runs.push(report);
        Ok::<_, Failure>(met)
    })?;
    measured.search = Some(Found { target_p99_ms: target.as_secs_f64() * 1e3, rate, steps });
    Ok(())
}

/// Wrong answers, no answers, and a target out of reach are a no.
fn outcome(measured: &Measured) -> Outcome {
    let wrong = measured.runs.iter().any(|run| run.wrong > 0);
    let nothing = measured.runs.iter().any(|run| run.latency.count == 0 && run.goodput_per_second == 0.0);
    let missed = measured.search.as_ref().is_some_and(|found| found.rate.is_none());
    if wrong || nothing || missed { Outcome::No } else { Outcome::Yes }
}

fn talk(text: &str) {
    anstream::eprintln!("{}", styled(DIM, text));
}
