//! Which traces are recorded.

use crate::context::{TraceContext, TraceId};

/// Which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Whether the decision of the caller counts, if there is one.
    pub(crate) is_parent_based: bool,
    /// The share of other traces, 0 to 1.
    pub(crate) ratio: f64,
}

impl Default for Sampler {
    /// All traces, except those that their caller does not record.
    fn default() -> Self {
        Self { is_parent_based: true, ratio: 1.0 }
    }
}

impl Sampler {
    /// The sampler with a name of `OTEL_TRACES_SAMPLER` and maybe an argument, or `None`.
    pub(crate) fn named(name: &str, argument: Option<&str>) -> Option<Self> {
        let (is_parent_based, name) = match name.strip_prefix("parentbased_") {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        let ratio = match name {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => argument.map_or(Some(1.0), |text| text.trim().parse().ok())?,
            _ => return None,
        };
        (0.0..=1.0).contains(&ratio).then_some(Self { is_parent_based, ratio })
    }

    pub(crate) fn samples(&self, trace: TraceId, parent: Option<&TraceContext>) -> bool {
        match parent {
            Some(parent) if self.is_parent_based => parent.is_sampled,
            _ => self.includes(trace),
        }
    }

    /// Whether an id is within the ratio. Servers with the same ratio decide alike about a trace.
    #[allow(clippy::cast_precision_loss, reason = "a ratio needs no more")]
    fn includes(&self, TraceId(id): TraceId) -> bool {
        let low = id.last_chunk().copied().map_or(0, u64::from_be_bytes) >> 11;
        (low as f64) < self.ratio * (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samplers_have_the_names_of_the_specification() {
        let sampler = |is_parent_based, ratio| Some(Sampler { is_parent_based, ratio });
        for (name, argument, expected) in [
            ("always_on", None, sampler(false, 1.0)),
            ("always_off", None, sampler(false, 0.0)),
            ("traceidratio", Some("0.25"), sampler(false, 0.25)),
            ("parentbased_always_on", None, Some(Sampler::default())),
            ("parentbased_traceidratio", Some(" 0.5"), sampler(true, 0.5)),
            ("parentbased_traceidratio", None, sampler(true, 1.0)),
            ("traceidratio", Some("2"), None),
            ("traceidratio", Some("NaN"), None),
            ("sometimes", None, None),
        ] {
            assert_eq!(Sampler::named(name, argument), expected, "{name} {argument:?}");
        }
    }

    #[test]
    fn about_the_given_share_of_traces_is_recorded() {
        let sampler = Sampler { is_parent_based: true, ratio: 0.25 };
        let recorded = (0..4000).filter(|_| sampler.samples(TraceId::random(), None)).count();
        assert!((800..1200).contains(&recorded), "{recorded}");
    }

    #[test]
    fn the_caller_decides_if_it_may() {
        let header = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let parent = TraceContext::parse(header, None).unwrap();
        assert!(!Sampler::default().samples(parent.trace, Some(&parent)));
        let always = Sampler { is_parent_based: false, ratio: 1.0 };
        assert!(always.samples(parent.trace, Some(&parent)));
    }
}
