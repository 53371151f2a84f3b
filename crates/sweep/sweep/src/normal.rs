//! The normal distribution.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// The probability of a value below `x`, to about 1e-7 (Abramowitz and Stegun, 7.1.26).
pub(crate) fn cdf(x: f64) -> f64 {
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let series = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let upper = 0.5 * series * (-z * z).exp();
    if x < 0.0 { upper } else { 1.0 - upper }
}

pub(crate) fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// The value below which a share `p` lies, to about 1e-9 of itself (P. J. Acklam's rational approximation). Shares outside
/// of (0, 1) are moved inside.
pub(crate) fn quantile(p: f64) -> f64 {
    const CENTER: ([f64; 6], [f64; 6]) = (
        [
            -3.969_683_028_665_376e1,
            2.209_460_984_245_205e2,
            -2.759_285_104_469_687e2,
            1.383_577_518_672_69e2,
            -3.066_479_806_614_716e1,
            2.506_628_277_459_239,
        ],
        [
            -5.447_609_879_822_406e1,
            1.615_858_368_580_409e2,
            -1.556_989_798_598_866e2,
            6.680_131_188_771_972e1,
            -1.328_068_155_288_572e1,
            1.0,
        ],
    );
    const TAIL: ([f64; 6], [f64; 5]) = (
        [
            -7.784_894_002_430_293e-3,
            -3.223_964_580_411_365e-1,
            -2.400_758_277_161_838,
            -2.549_732_539_343_734,
            4.374_664_141_464_968,
            2.938_163_982_698_783,
        ],
        [
            7.784_695_709_041_462e-3,
            3.224_671_290_700_398e-1,
            2.445_134_137_142_996,
            3.754_408_661_907_416,
            1.0,
        ],
    );
    let p = p.clamp(f64::EPSILON, 1.0 - f64::EPSILON);
    let tail = p.min(1.0 - p);
    if tail < 0.024_25 {
        let q = (-2.0 * tail.ln()).sqrt();
        let lower = polynomial(&TAIL.0, q) / polynomial(&TAIL.1, q);
        return if p < 0.5 { lower } else { -lower };
    }
    let q = p - 0.5;
    q * polynomial(&CENTER.0, q * q) / polynomial(&CENTER.1, q * q)
}

/// Coefficients from the highest power.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantiles_are_met() {
        for (p, x) in [
            (0.5, 0.0),
            (0.841_344_746, 1.0),
            (0.975, 1.959_963_985),
            (0.01, -2.326_347_874),
            (1e-6, -4.753_424_309),
        ] {
            assert!((quantile(p) - x).abs() < 1e-7, "{p}: {}", quantile(p));
            assert!((cdf(x) - p).abs() < 2e-7, "{x}: {}", cdf(x));
        }
        assert!(quantile(0.0).is_finite() && quantile(1.0).is_finite());
    }

    #[test]
    fn the_quantile_is_the_inverse_of_the_distribution() {
        for thousandth in 1..1000 {
            let p = f64::from(thousandth) / 1000.0;
            assert!((cdf(quantile(p)) - p).abs() < 2e-7, "{p}");
        }
    }
}
