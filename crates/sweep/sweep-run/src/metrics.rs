//! Metrics in lines of output.

use std::borrow::Cow;

use cudock_base::text::strip_ansi;
use cudock_sweep::MetricFormat;
use regex::Regex;
use serde_json::Value;

/// Names of the step, most specific first.
const STEP_NAMES: [&str; 2] = ["step", "epoch"];

/// A metric that a line contains.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LineMetric {
    /// The index of the objective.
    pub(crate) objective: usize,
    pub(crate) step: Option<u64>,
    pub(crate) value: f64,
}

/// Finds the objectives in lines.
#[derive(Debug)]
pub(crate) struct LineParser {
    objectives: Vec<String>,
    format: MetricFormat,
}

impl LineParser {
    pub(crate) fn new(objectives: &[String], format: &MetricFormat) -> Self {
        Self { objectives: objectives.to_vec(), format: format.clone() }
    }

    /// The metrics of a line, in the order of the objectives; with a regular expression, of its matches. Colors do not
    /// matter.
    pub(crate) fn metrics(&self, line: &str) -> Vec<LineMetric> {
        let line = strip_ansi(line);
        match &self.format {
            MetricFormat::Pairs => self.pairs(&line),
            MetricFormat::Json => self.json(&line),
            MetricFormat::Regex(pattern) => self.matches(pattern.regex(), &line),
        }
    }

    fn pairs(&self, line: &str) -> Vec<LineMetric> {
        let values = self.objectives.iter().enumerate();
        let values = values.filter_map(|(index, name)| Some((index, number(value_of(line, name)?)?)));
        let mut values = values.peekable();
        if values.peek().is_none() {
            return Vec::new();
        }
        let step = STEP_NAMES.iter().find_map(|name| step_number(value_of(line, name)?));
        values.map(|(objective, value)| LineMetric { objective, step, value }).collect()
    }

    fn json(&self, line: &str) -> Vec<LineMetric> {
        let line = line.trim();
        if !line.starts_with('{') {
            return Vec::new();
        }
        let object =
            serde_json::from_str::<Value>(line).or_else(|_| serde_json::from_str(&quoted_constants(line)));
        let Ok(Value::Object(object)) = object else { return Vec::new() };
        let step = STEP_NAMES.iter().find_map(|name| step_number(&text_of(object.get(*name)?)?));
        let found = self.objectives.iter().enumerate().filter_map(|(objective, name)| {
            let value = number(&text_of(object.get(name)?)?)?;
            Some(LineMetric { objective, step, value })
        });
        found.collect()
    }

    fn matches(&self, regex: &Regex, line: &str) -> Vec<LineMetric> {
        let found = regex.captures_iter(line).filter_map(|captures| {
            let objective = match captures.name("name") {
                Some(name) => self.objectives.iter().position(|objective| objective == name.as_str())?,
                None => 0,
            };
            let value = number(captures.name("value")?.as_str())?;
            Some(LineMetric {
                objective,
                step: captures.name("step").and_then(|step| step_number(step.as_str())),
                value,
            })
        });
        found.collect()
    }
}

/// The text after the last `name=` in a line, up to the next separator. `name = value` and `name:
/// value` are understood, too, because many programs write that.
fn value_of<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let mut before = line;
    loop {
        let at = before.rfind(name)?;
        let starts = !before.get(..at)?.ends_with(is_name_character);
        let rest = line.get(at + name.len()..)?.trim_start_matches(' ');
        if starts && let Some(value) = rest.strip_prefix(['=', ':']) {
            let value = value.trim_start_matches([' ', '"', '\'']);
            let end = value.find(|c: char| c.is_whitespace() || ",;)]}\"'|%".contains(c));
            return value.get(..end.unwrap_or(value.len()));
        }
        before = before.get(..at)?;
    }
}

/// `val_accuracy` and `train/accuracy` are not `accuracy`.
fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || "_-./".contains(c)
}

/// A number as programs print it, not a number and infinity included.
fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

/// A step, which may be written as `3`, `3.0` or `3/10`.
fn step_number(text: &str) -> Option<u64> {
    let text = text.split('/').next().unwrap_or(text).trim();
    text.strip_suffix(".0").unwrap_or(text).parse().ok()
}

fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::String(text) => Some(Cow::Borrowed(text)),
        _ => None,
    }
}

/// Python writes constants that are not JSON.
fn quoted_constants(line: &str) -> String {
    let quoted = line.replace(": NaN", ": \"NaN\"").replace(": -Infinity", ": \"-inf\"");
    quoted.replace(": Infinity", ": \"inf\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(format: &MetricFormat, line: &str) -> Vec<(usize, Option<u64>, String)> {
        let parser = LineParser::new(&["accuracy".into(), "loss".into()], format);
        let metrics = parser.metrics(line);
        metrics.into_iter().map(|metric| (metric.objective, metric.step, metric.value.to_string())).collect()
    }

    fn owned(metrics: &[(usize, Option<u64>, &str)]) -> Vec<(usize, Option<u64>, String)> {
        metrics.iter().map(|(index, step, value)| (*index, *step, (*value).to_owned())).collect()
    }

    #[test]
    fn pairs_are_found_anywhere_in_a_line() {
        for (line, expected) in [
            ("accuracy=0.5", &[(0, None, "0.5")][..]),
            ("step=3 accuracy=0.5 loss=1e-3", &[(0, Some(3), "0.5"), (1, Some(3), "0.001")]),
            ("[12:00:01] epoch=2/10, loss=nan; accuracy=-inf)", &[(0, Some(2), "-inf"), (1, Some(2), "NaN")]),
            ("Epoch: 4 - accuracy: 0.91 - val_accuracy: 0.8", &[(0, None, "0.91")]),
            ("epoch: 4 - val_accuracy: 0.8 - accuracy: 0.91", &[(0, Some(4), "0.91")]),
            ("{\"step\": 7, \"accuracy\": 0.25}", &[]),
            ("accuracy = 91%", &[(0, None, "91")]),
            ("accuracy=0.1 accuracy=0.2", &[(0, None, "0.2")]),
            ("val_accuracy=0.5 train/accuracy=0.1 accuracy", &[]),
            ("accuracy=high", &[]),
            ("", &[]),
        ] {
            assert_eq!(parsed(&MetricFormat::Pairs, line), owned(expected), "{line}");
        }
    }

    #[test]
    fn a_metric_in_color_is_read_in_every_format() {
        let regex = MetricFormat::Regex(r"^acc (?<value>[\d.]+)$".parse().unwrap());
        for (format, line) in [
            (&MetricFormat::Pairs, "\x1b[32maccuracy=0.9"),
            (&MetricFormat::Pairs, "\x1b[1maccuracy\x1b[0m: \x1b[38;5;2m0.9\x1b[0m"),
            (&MetricFormat::Json, "\x1b[36m{\"accuracy\": 0.9}\x1b[0m"),
            (&regex, "\x1b[2K\x1b[32macc 0.9\x1b[m"),
        ] {
            assert_eq!(parsed(format, line), owned(&[(0, None, "0.9")]), "{line:?}");
        }
    }

    #[test]
    fn json_lines_may_have_the_constants_of_python() {
        for (line, expected) in [
            ("{\"step\": 7, \"accuracy\": 0.25, \"name\": \"x\"}", &[(0, Some(7), "0.25")][..]),
            (
                "  {\"epoch\": 2.0, \"loss\": NaN, \"accuracy\": -Infinity}",
                &[(0, Some(2), "-inf"), (1, Some(2), "NaN")],
            ),
            ("{\"loss\": \"0.5\"}", &[(1, None, "0.5")]),
            ("{\"nested\": {\"loss\": 1}}", &[]),
            ("{\"loss\": 1", &[]),
            ("loss=1", &[]),
        ] {
            assert_eq!(parsed(&MetricFormat::Json, line), owned(expected), "{line}");
        }
    }

    #[test]
    fn a_regular_expression_names_value_step_and_metric() {
        let first = MetricFormat::Regex(r"acc (?<value>\S+)".parse().unwrap());
        assert_eq!(parsed(&first, "acc 0.5 of 1"), owned(&[(0, None, "0.5")]));
        let named = MetricFormat::Regex(r"#(?<step>\d+) (?<name>\w+)->(?<value>[\d.]+)".parse().unwrap());
        assert_eq!(
            parsed(&named, "#1 loss->2 #2 accuracy->0.5 #3 other->1"),
            owned(&[(1, Some(1), "2"), (0, Some(2), "0.5")])
        );
        assert_eq!(parsed(&named, "#1 loss->."), []);
    }
}
