//! Charts: cost against load or duration, and where the cheapest service changes.

use std::fs;

use super::examples::{NAMES, example, list, number, report};
use crate::support::{code, shown};

#[test]
fn serverless_wins_below_the_crossover_and_machines_above_it() {
    let report = report("daytime-inference", &["--chart"]);
    let crossovers = list(&report, "crossovers");
    let asleep = crossovers
        .iter()
        .find(|one| one["below"] == "Container Apps serverless")
        .unwrap_or_else(|| panic!("serverless is the cheapest nowhere: {crossovers:?}"));
    // A replica of 1.559 USD an hour is up 1 - e^(-rT) of twelve hours, T being 300 s and a start; a machine of 0.526 is
    // up all day. So they meet where a few hundred seconds pass between requests, far below the requested 5/s.
    let rate = number(&asleep["value"]);
    assert!(rate > 0.000_5 && rate < 0.02, "{asleep}");
    assert!(asleep["at"].as_str().unwrap().contains("requests/s"), "{asleep}");
    let values: Vec<f64> = crossovers.iter().map(|one| number(&one["value"])).collect();
    assert!(values.is_sorted(), "{values:?}");
}

#[test]
fn a_crossover_is_where_the_costs_meet() {
    let names = "container-apps/Consumption-GPU-NC8as-T4/eastus,vm/Standard_NC4as_T4_v3/eastus";
    let report = report("daytime-inference", &["--compare", names]);
    let crossover = &list(&report, "crossovers")[0];
    let rate = number(&crossover["value"]);
    let cost_at = |rate: f64| {
        let rate = format!("{rate:.6},0@08:00-20:00");
        let args = ["--compare", names, "--rate", &rate];
        let compared = super::examples::report("daytime-inference", &args);
        let costs = list(&compared, "compared").iter().map(|one| number(&one["placement"]["cost"]["total"]));
        costs.collect::<Vec<f64>>()
    };
    // Requests are counted in thousandths a second: look a whole one to either side.
    let (below, above) = (cost_at((rate - 0.001).max(0.001)), cost_at(rate + 0.001));
    assert!(below[0] < below[1] && above[0] > above[1], "{below:?} {above:?} at {rate}");
}

#[test]
fn a_chart_in_the_terminal_has_axes_a_legend_and_the_crossovers() {
    let text = shown(&example("daytime-inference", &["--chart"]));
    for expected in
        ["USD per month by requests per second", "A  ", "Where the cheapest service changes", "requested: 5"]
    {
        assert!(text.contains(expected), "{expected} is not in: {text}");
    }
}

#[test]
fn a_chart_is_written_as_svg_whose_texts_do_not_overlap() {
    let directory = tempfile::tempdir().unwrap();
    for name in NAMES {
        let path = directory.path().join(format!("{name}.svg"));
        let output = example(name, &["--chart", path.to_str().unwrap()]);
        assert_eq!(code(&output), 0, "{}", shown(&output));
        let svg = fs::read_to_string(&path).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
        assert!(svg.contains("prefers-color-scheme:dark"), "{name}");
        assert!(!svg.contains("\"NaN") && !svg.contains("\"inf") && !svg.contains("MNaN"), "{name}");
        let texts = texts(&svg);
        assert!(texts.len() > 10, "{name}: {texts:?}");
        for (index, one) in texts.iter().enumerate() {
            for other in texts.iter().skip(index + 1) {
                assert!(!one.touches(other), "{name}: `{}` and `{}`", one.content, other.content);
            }
        }
    }
}

#[test]
fn a_chart_of_another_format_is_rejected() {
    let output = example("batch-job", &["--chart", "plan.png"]);
    assert_eq!(code(&output), 2);
    assert!(shown(&output).contains("SVG"), "{}", shown(&output));
}

/// A text and its bounding box, with a width per letter that most letters do not exceed.
#[derive(Debug)]
struct Text {
    left: f64,
    right: f64,
    y: f64,
    content: String,
}

impl Text {
    fn touches(&self, other: &Self) -> bool {
        const HEIGHT: f64 = 11.0;
        (self.y - other.y).abs() < HEIGHT && self.left < other.right && other.left < self.right
    }
}

fn texts(svg: &str) -> Vec<Text> {
    svg.lines()
        .filter(|line| line.starts_with("<text "))
        .map(|line| {
            let attribute = |name: &str| {
                let begin = line.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
                &line[begin..begin + line[begin..].find('"').unwrap()]
            };
            let text = &line[line.find('>').unwrap() + 1..line.rfind("</text>").unwrap()];
            let width = 6.3 * f64::from(u32::try_from(text.chars().count()).unwrap());
            let x: f64 = attribute("x").parse().unwrap();
            let (left, right) = match attribute("text-anchor") {
                "start" => (x, x + width),
                "end" => (x - width, x),
                _ => (x - width / 2.0, x + width / 2.0),
            };
            Text { left, right, y: attribute("y").parse().unwrap(), content: text.to_owned() }
        })
        .collect()
}
