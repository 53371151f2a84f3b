//! Placements side by side, part by part, and where the cheaper one changes.

use cudock_base::suggest;
use cudock_plan::{Money, PartKind, Placement, Priority, Ranked, Rejection, ServiceKind};
use serde::Serialize;

use super::chart::told;
use super::grid::{Align, Grid};
use super::scan::{Change, Line, Scan};
use super::view::View;
use super::{why, words};
use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, DIM, RED, line, styled};

/// One of those to compare, as typed.
struct Wanted<'a> {
    word: &'a str,
    services: Vec<ServiceKind>,
    size: &'a str,
    region: Option<&'a str>,
    priority: Option<Priority>,
}

/// One of those to compare, as found.
struct Side<'a> {
    wanted: Wanted<'a>,
    ranked: Option<&'a Ranked>,
    placement: Option<Placement>,
}

/// The name of a column.
fn letter(index: usize) -> String {
    ('A'..='Z').nth(index).map_or_else(|| format!("#{}", index + 1), String::from)
}

pub(super) fn text(view: &View<'_>, words: &[String]) -> Result<Outcome, Failure> {
    let sides = sides(view, words)?;
    grid(view, &sides).print();
    for (index, side) in sides.iter().enumerate().filter(|(_, side)| side.placement.is_none()) {
        line(format!(
            "\n{} {}",
            styled(RED, "out"),
            styled(BOLD, &format!("{} {}", letter(index), side.wanted.word))
        ));
        for text in why_not(view, &side.wanted) {
            line(output::wrapped("  ", &text));
        }
    }
    let scan = Scan::new(view.workload);
    let changes = changes(view, &scan, &sides);
    line(format!("\n{}", styled(BOLD, "where the cheaper one changes")));
    for change in &changes {
        line(output::wrapped("  ", &told(change)));
    }
    if changes.is_empty() {
        line("  nowhere");
    }
    let (low, high) = scan.ends();
    line(styled(DIM, &format!("  looked for from {} to {}", scan.words(low), scan.words(high))));
    Ok(outcome(&sides))
}

pub(super) fn json(view: &View<'_>, words: &[String]) -> Result<Outcome, Failure> {
    #[derive(Serialize)]
    struct Report<'a> {
        schema: u8,
        name: &'a str,
        compared: Vec<Compared<'a>>,
        crossovers: Vec<Change>,
    }
    #[derive(Serialize)]
    struct Compared<'a> {
        asked: &'a str,
        placement: Option<&'a Placement>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        why_not: Vec<String>,
    }
    let sides = sides(view, words)?;
    let compared = sides.iter().map(|side| Compared {
        asked: side.wanted.word,
        placement: side.placement.as_ref(),
        why_not: if side.placement.is_some() { Vec::new() } else { why_not(view, &side.wanted) },
    });
    output::json(&Report {
        schema: 1,
        name: view.title,
        compared: compared.collect(),
        crossovers: changes(view, &Scan::new(view.workload), &sides),
    });
    Ok(outcome(&sides))
}

fn outcome(sides: &[Side<'_>]) -> Outcome {
    if sides.iter().all(|side| side.placement.is_some()) { Outcome::Yes } else { Outcome::No }
}

fn sides<'a>(view: &'a View<'a>, words: &'a [String]) -> Result<Vec<Side<'a>>, Failure> {
    if words.len() < 2 {
        return Err(Failure::input("--compare takes two or more")
            .hint("--compare Standard_NC4as_T4_v3,batch/Standard_NC24ads_A100_v4"));
    }
    words
        .iter()
        .map(|word| {
            let wanted = wanted(view, word)?;
            let cheapest = |service| view.plan.find(service, wanted.size, wanted.region, wanted.priority);
            let ranked =
                wanted.services.iter().filter_map(|service| cheapest(*service)).min_by_key(|ranked| {
                    let offer = &ranked.offer;
                    (ranked.total, ranked.time, offer.service, offer.region, offer.priority)
                });
            Ok(Side { placement: ranked.map(|ranked| view.plan.placement(ranked)), ranked, wanted })
        })
        .collect()
}

/// `SIZE`, `SERVICE/SIZE`, `SERVICE/SIZE/REGION`, each with `/spot` or `/regular` behind it if wanted.
fn wanted<'a>(view: &'a View<'a>, word: &'a str) -> Result<Wanted<'a>, Failure> {
    let mut parts: Vec<&str> = word.split('/').map(str::trim).collect();
    let priority = match parts.last() {
        Some(&"spot") => Some(Priority::Spot),
        Some(&"regular") => Some(Priority::Regular),
        _ => None,
    };
    if priority.is_some() {
        parts.pop();
    }
    let (services, size, region) = match parts.as_slice() {
        [size] => (ServiceKind::ALL.to_vec(), *size, None),
        [service, size] => (services(service)?, *size, None),
        [service, size, region] => (services(service)?, *size, Some(known_region(view, region)?)),
        _ => {
            return Err(Failure::input(format!("`{word}` is not to be compared"))
                .hint("write SIZE, SERVICE/SIZE or SERVICE/SIZE/REGION"));
        }
    };
    Ok(Wanted { word, services, size: why::known(view, size)?, region, priority })
}

fn services(name: &str) -> Result<Vec<ServiceKind>, Failure> {
    let found = ServiceKind::named(name);
    if found.is_empty() {
        let near = suggest::nearest(name, ServiceKind::ALL.map(ServiceKind::id));
        return Err(Failure::input(format!("no service is called `{name}`")).near(&near));
    }
    Ok(found)
}

fn known_region<'a>(view: &'a View<'a>, name: &str) -> Result<&'a str, Failure> {
    let wanted = suggest::normalize(name);
    let names = || view.catalog.regions().map(|region| view.catalog.region_name(region));
    names().find(|known| suggest::normalize(known) == wanted).ok_or_else(|| {
        Failure::input(format!("no region is called `{name}`")).near(&suggest::nearest(name, names()))
    })
}

/// Why one of them is not to be had: its rejections, or that nothing of the kind is on offer.
fn why_not(view: &View<'_>, wanted: &Wanted<'_>) -> Vec<String> {
    let about = |rejection: &&Rejection| {
        let service = rejection.service.is_none_or(|service| wanted.services.contains(&service));
        let size = rejection.size.as_deref().is_none_or(|size| size == wanted.size);
        let region = match (&rejection.region, wanted.region) {
            (Some(out), Some(wanted)) => out == wanted,
            _ => true,
        };
        service && size && region && (rejection.service.is_some() || rejection.size.is_some())
    };
    let told = |rejection: &Rejection| {
        let service = rejection.service.map_or("anywhere", ServiceKind::id);
        format!("{service}: {} [{}]", rejection.reason, rejection.code)
    };
    let mut reasons: Vec<String> = view.plan.rejected().iter().filter(about).map(told).collect();
    reasons.dedup();
    if reasons.is_empty() {
        reasons.push("nothing of the kind is on offer there at a price the tables know".to_owned());
    }
    reasons
}

/// A column for each side, a line for each figure.
fn grid(view: &View<'_>, sides: &[Side<'_>]) -> Grid {
    let mut grid = Grid::new([("", Align::Left)]);
    for index in 0..sides.len() {
        grid.column(letter(index), Align::Right);
    }
    let mut add = |name: &str, cell: &dyn Fn(&Placement) -> String| {
        let cells: Vec<String> =
            sides.iter().map(|side| side.placement.as_ref().map_or_else(|| "-".to_owned(), cell)).collect();
        if cells.iter().any(|cell| !cell.is_empty() && cell != "-") {
            grid.row(std::iter::once(name.to_owned()).chain(cells).collect());
        }
    };
    add("service", &|placement| placement.service.id().to_owned());
    add("size", &|placement| placement.size.clone());
    add("GPU", &words::gpus);
    add("region", &|placement| placement.region.clone());
    add("priority", &|placement| words::priority(placement.priority).to_owned());
    add("management", &|placement| words::management(placement.management).to_owned());
    add("at once", &|placement| placement.instances.to_string());
    add("USD/h each", &|placement| words::hourly(placement.price_per_hour));
    add("start", &|placement| words::time(placement.times.start));
    if !view.serves() {
        add("work", &|placement| words::time(placement.times.work));
        add("lost", &|placement| {
            if placement.times.lost.is_zero() { String::new() } else { words::time(placement.times.lost) }
        });
        add("in all", &|placement| words::time(placement.times.total));
    }
    for kind in PartKind::ALL {
        add(words::part(kind), &|placement| {
            let parts = placement.cost.parts.iter().filter(|part| part.kind == kind);
            let sum: Money = parts.map(|part| part.money).sum();
            if sum == Money::ZERO { String::new() } else { words::dollars(sum) }
        });
    }
    add(if view.serves() { "a month" } else { "total" }, &|placement| words::dollars(placement.cost.total));
    add("a million", &|placement| placement.per_million.map(words::dollars).unwrap_or_default());
    add("warnings", &|placement| {
        placement.warnings.iter().map(|warning| warning.code).collect::<Vec<_>>().join(" ")
    });
    grid
}

/// Where the cheapest of those that fit changes.
fn changes(view: &View<'_>, scan: &Scan, sides: &[Side<'_>]) -> Vec<Change> {
    let fitting = sides.iter().enumerate().filter_map(|(index, side)| Some((index, side, side.ranked?)));
    let lines: Vec<Line> = fitting
        .map(|(index, side, ranked)| {
            scan.line(view, format!("{} {}", letter(index), side.wanted.word), ranked.offer)
        })
        .collect();
    scan.changes(view, &lines)
}
