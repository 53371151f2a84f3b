//! All about one size: what each service says to it, and each part of its cost with the arithmetic.

use cudock_base::suggest;
use cudock_facts::finding::Finding;
use cudock_plan::{Placement, Priority, Rejection, RuleLine, ServiceKind};
use serde::Serialize;

use super::table::severity_words;
use super::view::View;
use super::words;
use crate::failure::{Failure, Outcome};
use crate::output::{self, BOLD, DIM, GREEN, RED, line, styled};

/// What one service says to a size.
#[derive(Serialize)]
struct Answer<'a> {
    service: ServiceKind,
    /// The cheapest region of each priority.
    placements: Vec<Placement>,
    rejections: Vec<&'a Rejection>,
    /// Every rule, in the order they are applied.
    rules: Vec<Rule>,
}

#[derive(PartialEq, Serialize)]
struct Rule {
    code: &'static str,
    holds: bool,
    text: String,
}

impl Rule {
    fn shown(&self, indent: &str) -> String {
        let mark = if self.holds { "yes" } else { "no " };
        let text = output::wrapped(&format!("{indent}{mark}  "), &format!("{} [{}]", self.text, self.code));
        if self.holds { styled(DIM, &text) } else { text }
    }
}

impl From<RuleLine> for Rule {
    fn from(line: RuleLine) -> Self {
        Self { code: line.code, holds: line.holds, text: line.text }
    }
}

impl Answer<'_> {
    /// Whether a rule that is not met says what a rejection says.
    fn tells(&self, rejection: &Rejection) -> bool {
        self.rules
            .iter()
            .any(|rule| !rule.holds && rule.code == rejection.code && rule.text == rejection.reason)
    }
}

pub(super) fn text(view: &View<'_>, name: &str) -> Result<Outcome, Failure> {
    let size = known(view, name)?;
    let answers = answers(view, size);
    line(format!("\n{}", styled(BOLD, size)));
    if answers.is_empty() {
        line("  no service offers it at a price the tables know");
    }
    let common = common(&answers);
    for rule in &common {
        line(rule.shown("  "));
    }
    for answer in &answers {
        print(view, answer, &common);
    }
    Ok(outcome(&answers))
}

/// The rules that say the same on every service: what is true of the size itself.
fn common<'a>(answers: &'a [Answer<'_>]) -> Vec<&'a Rule> {
    let Some((first, others)) = answers.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    first.rules.iter().filter(|rule| others.iter().all(|answer| answer.rules.contains(rule))).collect()
}

pub(super) fn json(view: &View<'_>, name: &str) -> Result<Outcome, Failure> {
    let size = known(view, name)?;
    let answers = answers(view, size);
    output::json(&Report { schema: 1, name: view.title, size, services: &answers });
    Ok(outcome(&answers))
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u8,
    name: &'a str,
    size: &'a str,
    services: &'a [Answer<'a>],
}

fn outcome(answers: &[Answer<'_>]) -> Outcome {
    if answers.iter().any(|answer| !answer.placements.is_empty()) { Outcome::Yes } else { Outcome::No }
}

/// The size's own spelling.
pub(super) fn known<'a>(view: &View<'a>, name: &str) -> Result<&'a str, Failure> {
    let sizes = view.facts.sizes().size.iter().map(|size| size.name.as_str());
    let profiles = view.facts.services().profile.iter().map(|profile| profile.name.as_str());
    let all: Vec<&str> = sizes.chain(profiles).chain(view.facts.prices().sizes()).collect();
    let wanted = suggest::normalize(name);
    let prefixed = suggest::normalize(&format!("Standard_{name}"));
    let same = |known: &&&str| [&wanted, &prefixed].contains(&&suggest::normalize(known));
    all.iter().find(same).copied().ok_or_else(|| {
        Failure::input(format!("no size or profile is called `{name}`"))
            .near(&suggest::nearest(name, all.iter().copied()))
            .hint("`cudock facts size` lists the sizes on sale, `cudock facts service container-apps` the profiles")
    })
}

fn answers<'a>(view: &'a View<'_>, size: &str) -> Vec<Answer<'a>> {
    let mut answers = Vec::new();
    let wanted = &view.workload.wishes.services;
    let asked = |service: &ServiceKind| wanted.is_empty() || wanted.iter().any(|id| id == service.id());
    for service in ServiceKind::ALL.into_iter().filter(asked) {
        let cheapest = [Priority::Regular, Priority::Spot]
            .into_iter()
            .filter_map(|priority| view.plan.find(service, size, None, Some(priority)));
        let about = |rejection: &&Rejection| {
            rejection.service.is_none_or(|of| of == service)
                && rejection.size.as_deref().is_none_or(|of| of == size)
                && (rejection.service.is_some() || rejection.size.is_some())
        };
        let answer = Answer {
            service,
            placements: cheapest.map(|ranked| view.plan.placement(ranked)).collect(),
            rejections: view.plan.rejected().iter().filter(about).collect(),
            rules: view.plan.rules(service, size).into_iter().map(Rule::from).collect(),
        };
        if !answer.placements.is_empty() || !answer.rejections.is_empty() {
            answers.push(answer);
        }
    }
    answers
}

fn print(view: &View<'_>, answer: &Answer<'_>, common: &[&Rule]) {
    let (style, word) = if answer.placements.is_empty() { (RED, "out ") } else { (GREEN, "fits") };
    line(format!("\n{}  {}", styled(style, word), styled(BOLD, answer.service.name())));
    // Of a service that is out as a whole only what stands in the way tells anything.
    let whole = answer.rejections.iter().any(|rejection| rejection.size.is_none());
    for rule in answer.rules.iter().filter(|rule| !(common.contains(rule) || whole && rule.holds)) {
        line(rule.shown("      "));
    }
    for rejection in answer.rejections.iter().filter(|rejection| !answer.tells(rejection)) {
        let place = [rejection.region.clone(), rejection.priority.map(|of| words::priority(of).to_owned())];
        let place: Vec<String> = place.into_iter().flatten().collect();
        let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) };
        line(output::wrapped("      out  ", &format!("{place}{} [{}]", rejection.reason, rejection.code)));
    }
    for placement in &answer.placements {
        print_placement(view, placement);
    }
}

/// One placement in full.
pub(super) fn print_placement(view: &View<'_>, placement: &Placement) {
    let count =
        if placement.instances == 1 { String::new() } else { format!("{} at once, ", placement.instances) };
    line(format!(
        "\n      {} in {}, {count}${} an hour each{}",
        words::priority(placement.priority),
        placement.region,
        words::hourly(placement.price_per_hour),
        placement.price_date.map_or_else(String::new, |date| format!(", read {date}")),
    ));
    let times = &placement.times;
    let parts = [("start", times.start), ("work", times.work), ("lost", times.lost), ("in all", times.total)];
    let told = parts.iter().filter(|(_, time)| !time.is_zero());
    let told: Vec<String> = told.map(|(name, time)| format!("{name} {}", words::time(*time))).collect();
    line(output::wrapped("        time   ", &told.join(", ")));
    let width = placement.cost.parts.iter().map(|part| words::dollars(part.money).len()).max().unwrap_or(0);
    for part in &placement.cost.parts {
        let head = format!("        {:>width$}  {:10} ", words::dollars(part.money), words::part(part.kind));
        line(output::wrapped(&head, &part.how));
    }
    let unit = if view.serves() { "a month of 730 hours" } else { "in all" };
    line(styled(BOLD, &format!("        {:>width$}  {unit}", words::dollars(placement.cost.total))));
    if let Some(million) = placement.per_million {
        line(format!("        {:>width$}  a million predictions", words::dollars(million)));
    }
    if let Some(quota) = &placement.quota {
        line(output::wrapped("        quota  ", quota));
    }
    for reason in &placement.reasons {
        line(styled(DIM, &output::wrapped("        because  ", reason)));
    }
    for warning in &placement.warnings {
        print_warning(warning);
    }
}

fn print_warning(warning: &Finding) {
    let (style, word) = severity_words(warning.severity);
    let indent = " ".repeat(8 + word.len() + 2);
    let seen: Vec<&str> = warning.evidence.iter().map(|seen| seen.detail.as_str()).collect();
    let seen = if seen.is_empty() { String::new() } else { format!(": {}", seen.join("; ")) };
    let text = output::wrapped(&indent, &format!("{}{seen} [{}]", warning.message, warning.code));
    line(format!("        {}  {}", styled(style, word), text.get(indent.len()..).unwrap_or_default()));
}
