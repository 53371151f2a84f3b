//! The Prometheus text format.

use std::fmt::Write;

use crate::metrics::histogram::Histogram;

/// Octaves of microseconds that become buckets: 64 µs to 33 s.
const OCTAVES: std::ops::RangeInclusive<u32> = 6..=25;

/// Builds the text: metric families in order, each followed by its samples.
#[derive(Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let _ = writeln!(self.text, "{name}{} {value}", braced(labels, None));
    }

    /// Adds the samples of a histogram, in seconds.
    pub fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        for octave in OCTAVES {
            let bound = f64::from(1_u32 << octave) / 1e6;
            let braces = braced(labels, Some(&bound.to_string()));
            let _ = writeln!(self.text, "{name}_bucket{braces} {}", histogram.at_most_octave(octave));
        }
        let _ = writeln!(self.text, "{name}_bucket{} {}", braced(labels, Some("+Inf")), histogram.count());
        let _ = writeln!(self.text, "{name}_sum{} {}", braced(labels, None), histogram.sum().as_secs_f64());
        let _ = writeln!(self.text, "{name}_count{} {}", braced(labels, None), histogram.count());
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

fn braced(labels: &[(&str, &str)], bound: Option<&str>) -> String {
    let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
    let inner: Vec<String> = all
        .map(|(name, value)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}=\"{value}\"")
        })
        .collect();
    if inner.is_empty() { String::new() } else { format!("{{{}}}", inner.join(",")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn buckets_grow_and_end_with_all() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_micros(70));
        histogram.record(Duration::from_millis(3));
        let mut page = Exposition::default();
        page.family("x_seconds", "histogram", "Time.");
        page.histogram("x_seconds", &[("model", "a\"b")], &histogram);
        let text = page.into_text();
        assert!(text.starts_with("# HELP x_seconds Time.\n# TYPE x_seconds histogram\n"), "{text}");
        assert!(text.contains("x_seconds_bucket{model=\"a\\\"b\",le=\"0.000064\"} 0\n"), "{text}");
        assert!(text.contains("le=\"0.000128\"} 1\n"), "{text}");
        assert!(text.contains("le=\"0.004096\"} 2\n"), "{text}");
        assert!(text.contains("le=\"+Inf\"} 2\n"), "{text}");
        assert!(text.ends_with("x_seconds_count{model=\"a\\\"b\"} 2\n"), "{text}");
    }
}
