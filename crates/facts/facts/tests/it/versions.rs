//! Versions parse strictly, order by number, and write themselves as they were written.

use std::str::FromStr;

use cudock_facts::version::{
    Capability, CudaRelease, CudaVersion, Date, DriverVersion, PtxArch, PtxIsa, SmArch,
};
use proptest::prelude::*;

fn refuses<T: FromStr>(texts: &[&str]) {
    for text in texts {
        assert!(text.parse::<T>().is_err(), "{text:?} was taken");
    }
}

#[test]
fn capabilities_order_by_number_and_not_by_letter() {
    let order = ["5.2", "7.0", "7.5", "8.9", "9.0", "10.0", "10.3", "12.1"]
        .map(|text| text.parse::<Capability>().unwrap());
    assert!(order.is_sorted());
    assert_eq!(Capability::from_number(121).unwrap().to_string(), "12.1");
    refuses::<Capability>(&[
        "", "9", "9.", ".0", "9.0.0", "9.10", "-9.0", " 9.0", "9.0 ", "0.1", "9,0", "９.0",
    ]);
}

#[test]
fn drivers_compare_by_parts_and_missing_parts_are_zero() {
    let driver = |text: &str| text.parse::<DriverVersion>().unwrap();
    assert!(driver("535.54.03") < driver("535.104.05"), "104 is more than 54");
    assert!(driver("525.60.13") < driver("525.105.17"));
    assert_eq!(driver("580"), driver("580.00"));
    assert!(driver("580") < driver("580.65.06"));
    assert!(driver("536") > driver("535.999.99"));
    for text in ["535.161.08", "570.26", "580", "455.32.00", "528.33", "616.00"] {
        assert_eq!(driver(text).to_string(), text);
    }
    refuses::<DriverVersion>(&[
        "",
        "12.4",
        "12",
        "535.",
        "535..1",
        "535.1.1.1",
        "v535",
        "535.161.08-1",
        "99.1",
        "99999",
    ]);
}

#[test]
fn cuda_versions_and_releases_are_two_things() {
    assert!("12.4".parse::<CudaVersion>().unwrap() < "12.10".parse().unwrap());
    assert!("12.4.1".parse::<CudaRelease>().unwrap() > "12.4.0".parse().unwrap());
    assert_eq!("12.4.1".parse::<CudaRelease>().unwrap().version().to_string(), "12.4");
    assert_eq!(CudaVersion::from_api(12080).unwrap().to_string(), "12.8");
    assert_eq!(CudaVersion::from_api(0), None, "zero means that there is no driver");
    assert_eq!(CudaVersion::from_tag("cu118").unwrap().to_string(), "11.8");
    assert_eq!(CudaVersion::from_tag("cu92").unwrap().to_string(), "9.2");
    assert_eq!(CudaVersion::from_tag("cpu"), None);
    refuses::<CudaVersion>(&["12", "12.4.1", "12.x", "", "0.1", "300.1"]);
    refuses::<CudaRelease>(&["12.4", "12.4.1.2", "12.4.x", "."]);
}

#[test]
fn ptx_versions_order_by_number() {
    assert!("8.8".parse::<PtxIsa>().unwrap() < "9.0".parse().unwrap());
    assert!("7.8".parse::<PtxIsa>().unwrap() < "8.0".parse().unwrap());
    refuses::<PtxIsa>(&["8", "8.4.1", ""]);
}

#[test]
fn targets_are_written_as_compilers_write_them() {
    for text in ["sm_75", "sm_90", "sm_90a", "sm_100f", "sm_121a"] {
        assert_eq!(text.parse::<SmArch>().unwrap().to_string(), text);
    }
    assert_eq!("compute_90a".parse::<PtxArch>().unwrap().to_string(), "compute_90a");
    refuses::<SmArch>(&[
        "sm_",
        "sm_a",
        "sm_9",
        "sm_075",
        "sm_90b",
        "sm_90aa",
        "sm90",
        "compute_90",
        "SM_90",
        "sm_9 0",
        "sm_99999",
    ]);
    refuses::<PtxArch>(&["sm_90", "compute_", "compute_9"]);
}

/// Which machine code runs on which card, as NVIDIA's guide has it.
#[test]
fn machine_code_runs_where_it_runs() {
    for (code, runs, does_not) in [
        ("sm_70", &["7.0", "7.5"][..], &["6.1", "8.0"][..]),
        ("sm_80", &["8.0", "8.6", "8.9"], &["7.5", "9.0", "8.7"]),
        ("sm_86", &["8.6", "8.9"], &["8.0", "9.0"]),
        ("sm_89", &["8.9"], &["8.6", "8.0"]),
        ("sm_90", &["9.0"], &["10.0", "8.9"]),
        ("sm_90a", &["9.0"], &["10.0"]),
        ("sm_100", &["10.0", "10.3", "10.7"], &["12.0", "11.0", "10.1"]),
        ("sm_100a", &["10.0"], &["10.3"]),
        ("sm_100f", &["10.0", "10.3", "10.7"], &["12.0"]),
        ("sm_103f", &["10.3", "10.7"], &["10.0"]),
        ("sm_120", &["12.0", "12.1"], &["10.0", "9.0"]),
        ("sm_120a", &["12.0"], &["12.1"]),
        ("sm_87", &["8.7"], &["8.6", "8.9"]),
        ("sm_101", &["10.1", "11.0"], &["10.0", "10.3"]),
        ("sm_110", &["11.0", "10.1"], &["12.0"]),
    ] {
        let arch: SmArch = code.parse().unwrap();
        for card in runs {
            assert!(arch.runs_on(card.parse().unwrap()), "{code} runs on {card}");
        }
        for card in does_not {
            assert!(!arch.runs_on(card.parse().unwrap()), "{code} does not run on {card}");
        }
    }
}

#[test]
fn ptx_compiles_upwards_only_and_within_its_bounds() {
    for (code, compiles, does_not) in [
        ("compute_80", &["8.0", "8.9", "9.0", "12.0"][..], &["7.5"][..]),
        ("compute_90a", &["9.0"], &["10.0", "8.9"]),
        ("compute_100f", &["10.0", "10.3"], &["12.0", "9.0"]),
        ("compute_120", &["12.0", "12.1"], &["10.3", "9.0"]),
    ] {
        let arch: PtxArch = code.parse().unwrap();
        for card in compiles {
            assert!(arch.compiles_for(card.parse().unwrap()), "{code} compiles for {card}");
        }
        for card in does_not {
            assert!(!arch.compiles_for(card.parse().unwrap()), "{code} does not compile for {card}");
        }
    }
}

#[test]
fn dates_are_days_of_the_calendar() {
    let date = |text: &str| text.parse::<Date>().unwrap();
    assert_eq!(date("1970-01-02").days_since(date("1970-01-01")), 1);
    assert_eq!(date("2026-11-14").days_since(date("2026-05-18")), 180);
    assert_eq!(date("2024-02-29").to_string(), "2024-02-29");
    assert_eq!(date("2000-03-01").days_since(date("2000-02-28")), 2);
    refuses::<Date>(&[
        "2026-02-29",
        "2026-13-01",
        "2026-00-10",
        "2026-1-1",
        "26-01-01",
        "2026/01/01",
        "2026-01-32",
        "",
        "+026-01-01",
    ]);
}

proptest! {
    #[test]
    fn every_day_is_written_as_it_is_read(days in 0..60_000_i32) {
        let epoch = "1970-01-01".parse::<Date>().unwrap();
        let date = (1970..2200).flat_map(|year| (1..=12).map(move |month| (year, month)))
            .filter_map(|(year, month)| Date::new(year, month, 1))
            .take_while(|first| first.days_since(epoch) <= days)
            .last()
            .unwrap();
        prop_assert_eq!(date.to_string().parse::<Date>().unwrap(), date);
        prop_assert!(days - date.days_since(epoch) < 31);
    }

    #[test]
    fn drivers_keep_their_text_and_their_order(a in 100..1000_u16, b in 0..400_u16, c in 0..100_u16, d in 100..1000_u16, e in 0..400_u16) {
        let one = format!("{a}.{b:02}.{c:02}").parse::<DriverVersion>().unwrap();
        let two = format!("{d}.{e:02}").parse::<DriverVersion>().unwrap();
        prop_assert_eq!(one.to_string(), format!("{a}.{b:02}.{c:02}"));
        prop_assert_eq!(one.cmp(&two), (a, b, c).cmp(&(d, e, 0)));
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,20}") {
        text.parse::<DriverVersion>().ok();
        text.parse::<CudaVersion>().ok();
        text.parse::<CudaRelease>().ok();
        text.parse::<Capability>().ok();
        text.parse::<SmArch>().ok();
        text.parse::<PtxArch>().ok();
        text.parse::<PtxIsa>().ok();
        text.parse::<Date>().ok();
        CudaVersion::from_tag(&text);
        cudock_facts::lookup::ImageTag::parse(&text);
        cudock_facts::tables::Prices::parse(&text).ok();
    }
}
