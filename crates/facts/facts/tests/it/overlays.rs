//! A user's table of meters lies over the embedded one, and must keep its rules.

use cudock_facts::tables::MeterKind;
use cudock_facts::{Facts, OverlayError};

const HEAD: &str = r#"
[table]
as_of = "2026-12-01"
[table.sources]
mine = "measured here, 2026-12-01"
"#;

fn with(rows: &str) -> Result<Facts, OverlayError> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("azure_meters.toml"), format!("{HEAD}{rows}")).unwrap();
    Facts::with_overlay(directory.path())
}

fn refusal(rows: &str) -> String {
    with(rows).unwrap_err().to_string()
}

#[test]
fn a_newer_row_takes_the_place_of_the_embedded_one_and_the_rest_stays() {
    let embedded = Facts::embedded();
    let facts = with(
        r#"
[[start]]
service = "aks"
provision_s = 200
pull_mb_per_s = 400
unpack_mb_per_s = 300
billed_from = "machine"
source = ["mine"]
"#,
    )
    .unwrap();
    let aks = facts.meters().start_of("aks").unwrap();
    assert_eq!((aks.provision_s, aks.assumed.len()), (200, 0));
    assert_eq!(facts.meters().start_of("vm"), embedded.meters().start_of("vm"));
    assert_eq!(facts.meters().meter, embedded.meters().meter);
    assert_eq!(facts.table("azure_meters").unwrap().as_of.to_string(), "2026-12-01");
    assert!(facts.table("azure_meters").unwrap().overlay.is_some());
}

#[test]
fn a_price_for_one_region_leaves_the_others_alone() {
    let facts = with(
        r#"
[[meter]]
service = "container-apps"
meter = "gpu-second"
gpu = "T4"
usd = "0.000070"
regions = ["eastus"]
as_of = "2026-12-01"
source = ["mine"]
"#,
    )
    .unwrap();
    let price = |region: &str| {
        let meter = facts.meters().price("container-apps", MeterKind::GpuSecond, Some("T4"), region);
        meter.unwrap().usd.to_string()
    };
    assert_eq!((price("eastus").as_str(), price("southcentralus").as_str()), ("0.00007", "0.000088"));
}

#[test]
fn a_price_for_a_region_that_shared_a_row_with_others_holds() {
    let embedded = Facts::embedded();
    let old =
        embedded.meters().price("container-apps", MeterKind::GpuSecond, Some("T4"), "westeurope").unwrap();
    assert!(old.regions.len() > 1, "the embedded row is of several regions");
    let facts = with(
        r#"
[[meter]]
service = "container-apps"
meter = "gpu-second"
gpu = "T4"
usd = "0.000096"
regions = ["westeurope"]
as_of = "2026-12-01"
source = ["mine"]
"#,
    )
    .unwrap();
    let price =
        |region: &str| facts.meters().price("container-apps", MeterKind::GpuSecond, Some("T4"), region);
    assert_eq!(price("westeurope").unwrap().usd.to_string(), "0.000096");
    let other = old.regions.iter().find(|region| *region != "westeurope").unwrap();
    assert_eq!(price(other), Some(old));
}

#[test]
fn a_row_that_breaks_a_rule_is_refused_with_its_place() {
    let meter = |more: &str| {
        format!(
            "\n[[meter]]\nservice = \"network\"\nmeter = \"egress-gb\"\nas_of = \"2026-12-01\"\nsource = [\"mine\"]\n{more}"
        )
    };
    let message = refusal(&meter("usd = 0.1"));
    assert!(message.contains("azure_meters.toml:12:7: invalid type: floating point `0.1`"), "{message}");
    let message = refusal(&meter("usd = \"0.1 $\""));
    assert!(message.contains("`0.1 $` is not a number; expected an amount such as 0.000024"), "{message}");
    let message = refusal(&meter("usd = \"0.1\"\nassumed = true"));
    assert!(
        message.contains("azure_meters.toml:7:1") && message.contains("has no note that explains it"),
        "{message}"
    );
    let message = refusal(&meter("usd = \"0.1\"\narea = \"atlantis\""));
    assert!(message.contains("is for an area that has no row"), "{message}");
    let message = refusal(&meter("usd = \"0.1\"\narea = \"europe\"\nregions = [\"eastus\"]"));
    assert!(message.contains("expected one of them"), "{message}");
    let message = refusal(&meter("usd = \"0.1\"\ngpu = \"T5\""));
    assert!(message.contains("is for the GPU `T5`"), "{message}");
}

#[test]
fn rows_about_things_that_are_not_there_are_refused() {
    let billing =
        "\n[[billing]]\nservice = \"functions\"\nunit_s = 1\nrounding = \"up\"\nsource = [\"mine\"]\n";
    assert!(refusal(billing).contains("is for `functions`, which is not a service"));
    let billing = "\n[[billing]]\nservice = \"vm\"\nunit_s = 0\nrounding = \"up\"\nsource = [\"mine\"]\n";
    assert!(refusal(billing).contains("has a unit of zero seconds"));
    let start = "\n[[start]]\nservice = \"vm\"\nprovision_s = 1\npull_mb_per_s = 1\nunpack_mb_per_s = 1\nunpack_zstd_mb_per_s = 0\nbilled_from = \"machine\"\nsource = [\"mine\"]\n";
    assert!(refusal(start).contains("has a pull or unpack rate of zero"));
    let storage = "\n[[throughput]]\nstorage = \"floppy\"\nmb_per_s = 1\nsource = [\"mine\"]\n";
    assert!(refusal(storage).contains("is for `floppy`, which is not a storage"));
    let size =
        "\n[[endpoint_size]]\nsize = \"Standard_NC6_v9\"\nreserve_exempt = false\nsource = [\"mine\"]\n";
    assert!(refusal(size).contains("is not a size of azure_sizes.toml"));
    let bound = "\n[[bound]]\nservice = \"vm\"\nkey = \"image-size\"\nvalue = 1\nunit = \"seconds\"\nsource = [\"mine\"]\n";
    assert!(refusal(bound).contains("bound vm/image-size: has the unit `seconds`, expected `bytes`"));
    let area =
        "\n[[area]]\nid = \"moon\"\nname = \"Moon\"\nregions = [\"westeurope\"]\nsource = [\"mine\"]\n";
    assert!(refusal(area).contains("shares westeurope with another"));
    let unsourced = "\n[[billing]]\nservice = \"vm\"\nunit_s = 1\nrounding = \"up\"\nsource = []\n";
    assert!(refusal(unsourced).contains("has no source"));
}

#[test]
fn a_misspelled_table_gets_the_name_that_was_meant() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("azure_meter.toml"), HEAD).unwrap();
    match Facts::with_overlay(directory.path()).unwrap_err() {
        OverlayError::UnknownTable { suggestion, .. } => {
            assert_eq!(suggestion.as_deref(), Some("azure_meters.toml"));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_throughput_of_a_card_must_be_a_number_above_nothing() {
    for figure in ["0.0", "-1.0", "inf", "nan"] {
        let directory = tempfile::tempdir().unwrap();
        let row = format!(
            "[table]\nas_of = \"2026-12-01\"\n[table.sources]\nmine = \"x\"\n[[gpu]]\nid = \"T4\"\nnames = []\nvendor = \"nvidia\"\ncapability = \"7.5\"\nclass = \"datacenter\"\nmemory_gb = [16]\nforward_compat = \"yes\"\npci_ids = []\nfp16_tflops = {figure}\nsource = [\"mine\"]\n"
        );
        std::fs::write(directory.path().join("gpus.toml"), row).unwrap();
        let message = Facts::with_overlay(directory.path()).unwrap_err().to_string();
        assert!(message.contains("has the throughput"), "{figure}: {message}");
    }
}
