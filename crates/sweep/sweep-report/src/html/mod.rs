//! The HTML report: one file that needs neither a network nor a server.
//!
//! Charts are drawn here as SVG, so the report is complete without its script, which only sorts the table and highlights
//! one trial in all charts. The content security policy allows that script by its digest and nothing else: if a value got
//! past the escaping, it still could not run.

mod curves;
mod front;
mod parallel;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_base::text::format::{count, duration};
use cudock_base::{Digest, Timestamp, text};
use cudock_sweep::{Sweep, Trial, TrialId};

use super::text::{answer, state};
use super::values::{listed, number, parameters, reason, steps};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 360.0;
const MARGIN: f64 = 70.0;
/// The ends of the vertical axis.
const UP: (f64, f64) = (HEIGHT - 40.0, 32.0);
/// Trials in the charts, and rows of the table; the best are kept.
const MAX_DRAWN: usize = 500;
const MAX_ROWS: usize = 5000;

/// Explains the styles of lines. Colors are not the only difference.
const LEGEND: &str = "<p class=\"soft\">Solid: succeeded or running; dashed: stopped; dotted: failed; thick: best. \
    Point at a line, or choose a trial in the table, to see which it is.</p>\n";
const RANKS: &str = "<p class=\"soft\">From blue for the best fifth to orange for the worst.</p>\n";

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The data of the charts.
struct Drawing<'s> {
    sweep: &'s Sweep,
    /// The best first.
    trials: Vec<&'s Trial>,
    best: BTreeSet<TrialId>,
}

impl Drawing<'_> {
    /// The classes of a trial's line: how it ended, whether it is among the best, and its number.
    fn class(&self, trial: &Trial) -> String {
        let best = if self.best.contains(&trial.id) { " best" } else { "" };
        format!("trial {}{best} t{}", trial.status.name(), trial.id)
    }
}

/// The report as a page.
pub fn html(sweep: &Sweep, now: Timestamp) -> String {
    let plan = sweep.plan();
    let listed = listed(sweep);
    let drawing = Drawing {
        sweep,
        trials: listed.iter().copied().take(MAX_DRAWN).collect(),
        best: sweep.front().iter().map(|trial| trial.id).collect(),
    };
    let answer: String =
        answer(sweep).iter().map(|line| format!("<p>{}</p>\n", escape(line.trim()))).collect();
    let curves = plan.objectives.iter().filter_map(|objective| curves::curves(&drawing, objective));
    let curves: String = curves.map(|chart| figure(&chart)).collect();
    let legend = if curves.is_empty() { "" } else { LEGEND };
    let parallel =
        parallel::parallel(&drawing).map(|chart| RANKS.to_owned() + &figure(&chart)).unwrap_or_default();
    let name = escape(&text::truncate(&plan.name, 100));
    let sections = [
        section("Pareto front", &front::front(&drawing).map(|chart| figure(&chart)).unwrap_or_default()),
        section("Learning curves", &format!("{legend}{curves}")),
        section("Parallel coordinates", &parallel),
        section("Trials", &table(sweep, &listed, now)),
    ];
    let omitted = match listed.len().saturating_sub(MAX_DRAWN) {
        0 => String::new(),
        more => format!("<p class=\"soft\">The charts leave out {}, the worst.</p>\n", count(more, "trial")),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'sha256-{digest}'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Sweep {name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Sweep {name}</h1>\n\
         <div id=\"answer\">{answer}</div>\n<p id=\"state\">{state}</p>\n{omitted}{sections}</main>\n\
         <output id=\"detail\" aria-live=\"polite\"></output>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        digest = script_digest(),
        state = escape(&state(sweep, now)),
        sections = sections.concat(),
    )
}

/// A section; nothing if it has no content.
fn section(title: &str, content: &str) -> String {
    if content.is_empty() {
        String::new()
    } else {
        format!("<section>\n<h2>{title}</h2>\n{content}</section>\n")
    }
}

/// A chart can be wider than the screen, and then scrolls, also by keys.
fn figure(svg: &str) -> String {
    format!("<figure tabindex=\"0\">{svg}</figure>\n")
}

fn table(sweep: &Sweep, listed: &[&Trial], now: Timestamp) -> String {
    let plan = sweep.plan();
    let has_cost = sweep.price_per_hour().is_some();
    let objectives = plan.objectives.iter().map(|objective| objective.metric.as_str());
    let names = plan.space.parameters.iter().map(|parameter| parameter.name.as_str());
    let titles = ["Trial", "State"].into_iter().chain(objectives).chain(["Steps", "Time"]);
    let titles = titles.chain(has_cost.then_some("USD")).chain(names).chain(["Why it ended"]);
    let head: String = titles
        .map(|title| format!("<th scope=\"col\"><button type=\"button\">{}</button></th>", escape(title)))
        .collect();
    let rows: String = listed.iter().take(MAX_ROWS).map(|trial| row(sweep, trial, now)).collect();
    let omitted = match listed.len().saturating_sub(MAX_ROWS) {
        0 => String::new(),
        more => format!("<p class=\"soft\">{} omitted.</p>\n", count(more, "more trial")),
    };
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n{omitted}"
    )
}

fn row(sweep: &Sweep, trial: &Trial, now: Timestamp) -> String {
    let plan = sweep.plan();
    let why = reason(trial, &plan.objectives).unwrap_or_default();
    let time = trial.run_time(now);
    let cost = sweep.price_per_hour().map(|_| trial.cost(now));
    let id = trial.id;
    let scores = trial.scores(&plan.objectives).into_iter().map(|score| match score {
        Some(score) => numeric(&score.to_string(), &number(score)),
        None => numeric("", ""),
    });
    let values = plan.space.parameters.iter().map(|parameter| {
        let value = trial.parameters.get(&parameter.name).map(ToString::to_string).unwrap_or_default();
        format!("<td>{}</td>", escape(&text::truncate(&value, 200)))
    });
    let status = trial.status.name();
    let cells: String = [
        numeric(&id.to_string(), &format!("<button type=\"button\" aria-pressed=\"false\">{id}</button>")),
        format!("<td class=\"{status}\">{status}</td>"),
    ]
    .into_iter()
    .chain(scores)
    .chain([
        numeric(&steps(trial, &plan.objectives).to_string(), &steps(trial, &plan.objectives).to_string()),
        numeric(&time.as_secs_f64().to_string(), &duration(time)),
    ])
    .chain(cost.map(|cost| numeric(&cost.to_string(), &cost.rounded())))
    .chain(values)
    .chain([format!("<td>{}</td>", escape(&why))])
    .collect();
    let ending = trial.ending(&plan.objectives).unwrap_or_else(|| format!("trial {id} {status}"));
    let detail = format!("{ending} ({})", parameters(&trial.parameters));
    format!("<tr data-trial=\"{id}\" data-detail=\"{}\">{cells}</tr>\n", escape(&detail))
}

/// A cell that is sorted by its number.
fn numeric(value: &str, shown: &str) -> String {
    format!("<td class=\"number\" data-value=\"{value}\">{shown}</td>")
}

/// Text for elements and quoted attributes.
fn escape(text: &str) -> String {
    let text = text.replace(char::is_control, " ").replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

/// The digest by which the content security policy knows the script.
fn script_digest() -> String {
    let digest = Digest::sha256_of(SCRIPT.as_bytes());
    let hex = digest.hex();
    let bytes = (0..hex.len()).step_by(2).filter_map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok());
    STANDARD.encode(bytes.collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element_or_attribute() {
        let text = "\"><script>alert('x')</script>&\n\u{1b}";
        assert_eq!(escape(text), "&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;  ");
    }

    #[test]
    fn the_script_cannot_end_its_element() {
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
        assert_eq!(script_digest().len(), 44);
    }
}
