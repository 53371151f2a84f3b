//! What the tables say to a choice.

use cudock_facts::finding::Severity;
use cudock_migrate::{Fit, Status, codes};

use crate::support::{instead, judged, judged_on};

#[test]
fn a_retired_size_has_its_day_its_replacement_and_both_prices() {
    let findings = judged("az vm create --size Standard_NC6 -l westeurope");
    let finding = &findings[0];
    assert_eq!(finding.code, Some(codes::SIZE_RETIRED));
    assert_eq!(finding.message, "Standard_NC6 was retired on 2023-09-06");
    assert_eq!(instead(finding), ["Standard_NC4as_T4_v3"]);
    let t4 = &finding.replacements[0];
    let price = t4.price.as_ref().unwrap();
    assert_eq!((price.usd.to_string().as_str(), price.region.as_str()), ("0.658", "westeurope"));
    assert!(price.date.is_some());
    // In westus2, where a price of the old size is known: 0.526 against 0.90 is 41.6 % less.
    let against = t4.against.as_ref().unwrap();
    assert_eq!((against.old.to_string().as_str(), against.percent), ("0.90", -42));
    let texts: Vec<&str> = t4.changes.iter().map(|change| change.text.as_str()).collect();
    assert!(
        texts[0].starts_with("compute capability 3.7 becomes 7.5: machine code for sm_37 does not run there"),
        "{texts:?}"
    );
    assert!(texts.contains(&"it has 4 vCPU instead of 6 and 28 GiB of memory instead of 56"), "{texts:?}");
}

#[test]
fn a_size_with_more_gpus_gets_one_of_the_series_with_as_many() {
    // The tables name NC4as_T4_v3 for all K80 sizes; four K80s are replaced by four T4s.
    assert_eq!(instead(&judged("az vm create --size Standard_NC24")[0]), ["Standard_NC64as_T4_v3"]);
}

#[test]
fn a_sentence_with_sizes_and_series_becomes_sizes_cheapest_first() {
    let finding = &judged("az vm create --size Standard_NC6s_v3 -l westeurope")[0];
    assert_eq!(
        instead(finding),
        [
            "Standard_NC4as_T4_v3",
            "Standard_NC8as_T4_v3",
            "Standard_NC16as_T4_v3",
            "Standard_NV36ads_A10_v5",
            "Standard_NC24ads_A100_v4",
            "Standard_NC64as_T4_v3",
            "Standard_NV36adms_A10_v5",
            "Standard_NV72ads_A10_v5",
            "Standard_NC40ads_H100_v5",
            "Standard_NC48ads_A100_v4",
            "Standard_NC96ads_A100_v4",
        ]
    );
    assert!(finding.replacements.iter().all(|replacement| replacement.fit == Fit::Whole));
    let a10 = finding.replacements.iter().find(|one| one.name == "Standard_NV36ads_A10_v5").unwrap();
    assert!(a10.changes.iter().any(|change| change.code == Some(codes::VGPU_DRIVER)), "{:?}", a10.changes);
    let h100 = finding.replacements.iter().find(|one| one.name == "Standard_NC40ads_H100_v5").unwrap();
    assert!(h100.changes.iter().any(|change| change.code == Some(codes::NO_CODE_FOR_GPU)));
    // A T4 runs machine code of a V100.
    assert!(finding.replacements[0].changes.iter().all(|change| change.code != Some(codes::NO_CODE_FOR_GPU)));
}

#[test]
fn a_v100_is_replaced_by_the_a100_that_azure_named_first() {
    for (old, new) in [
        ("Standard_NC6s_v3", "Standard_NC24ads_A100_v4"),
        ("Standard_NC12s_v3", "Standard_NC48ads_A100_v4"),
        ("Standard_NC24s_v3", "Standard_NC96ads_A100_v4"),
        ("Standard_NC24rs_v3", "Standard_NC96ads_A100_v4"),
    ] {
        let finding = &judged(&format!("az vm create --size {old} -l westeurope"))[0];
        let whole = finding.replacements.iter().filter(|one| one.fit == Fit::Whole);
        assert!(whole.clone().any(|one| one.name == new), "{old}: {:?}", instead(finding));
        assert!(finding.cheapest_of_each_series().iter().any(|one| one.name == new), "{old}");
    }
}

#[test]
fn where_no_series_has_as_many_gpus_fewer_and_larger_ones_are_named_as_such() {
    let finding = &judged("az vm create --size Standard_NC24rs_v3")[0];
    let h100 = finding.replacements.iter().find(|one| one.name == "Standard_NC40ads_H100_v5").unwrap();
    assert_eq!(h100.fit, Fit::FewerGpus);
    assert!(h100.changes.iter().any(|change| change.text == "it has 1 GPU instead of 4"));
    assert!(h100.changes.iter().any(|change| change.text == "it has no InfiniBand"));
    assert_eq!(finding.replacements[0].name, "Standard_NC64as_T4_v3");
}

#[test]
fn a_region_may_keep_a_size_longer() {
    let finding = &judged("az vm create --size Standard_NC6s_v3 -l chinanorth3")[0];
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.message, "Standard_NC6s_v3 retires on 2027-06-30 in chinanorth3");
    let later = &judged_on("2027-07-01", "az vm create --size Standard_NC6s_v3 -l chinanorth3")[0];
    assert_eq!(later.severity, Severity::Error);
    let elsewhere = &judged("az vm create --size Standard_NC6s_v3")[0];
    assert!(elsewhere.message.contains("still in chinanorth3 until 2027-06-30"), "{}", elsewhere.message);
}

#[test]
fn before_its_end_a_size_is_only_warned_about() {
    let finding = &judged_on("2026-09-29", "az vm create --size Standard_NV12s_v3 -l westeurope")[0];
    assert_eq!((finding.code, finding.severity), (Some(codes::SIZE_RETIRES), Severity::Warning));
    assert!(!finding.is_over());
    assert!(judged_on("2026-09-30", "az vm create --size Standard_NV12s_v3 -l westeurope")[0].is_over());
}

#[test]
fn a_name_that_never_was_leads_to_what_was_meant() {
    let finding = &judged("az vm create --size Standard_NC6_v3 -l westeurope")[0];
    assert_eq!(finding.status, Status::NoSuchSize { near: vec!["Standard_NC6s_v3".to_owned()] });
    assert_eq!(finding.message, "unknown Azure size Standard_NC6_v3; did you mean Standard_NC6s_v3?");
    assert!(
        finding.notes[0].starts_with("Standard_NC6s_v3 was retired on 2025-09-30"),
        "{:?}",
        finding.notes
    );
    let right = &judged("az vm create --size Standard_NC6s_v3 -l westeurope")[0];
    assert_eq!(instead(finding), instead(right), "what was meant decides, not how it is spelled");
    let slip = &judged("az vm create --size Standard_NC4as_T4_v2")[0];
    let Status::NoSuchSize { near } = &slip.status else { panic!("{:?}", slip.status) };
    assert_eq!(near[0], "Standard_NC4as_T4_v3");
    assert!(slip.replacements.is_empty(), "what was meant is on sale");
}

#[test]
fn what_is_on_sale_is_left_alone() {
    let finding = &judged("az vm create --size Standard_NC24ads_A100_v4")[0];
    assert_eq!((finding.code, finding.severity), (None, Severity::Note));
    assert_eq!(finding.status, Status::OnSale);
    assert!(finding.replacements.is_empty());
    assert!(finding.old.as_ref().unwrap().price.is_some());
}

#[test]
fn a_size_that_only_has_a_price_is_reported_as_such() {
    let finding = &judged("az vm create --size Standard_ND96is_H100_v5")[0];
    assert_eq!((finding.code, finding.severity), (Some(codes::UNDOCUMENTED), Severity::Warning));
}

#[test]
fn an_offer_of_a_retired_size_is_replaced_as_the_size_is() {
    let finding = &judged("az vm create --size Standard_NC6_Promo")[0];
    assert_eq!(finding.code, Some(codes::SIZE_RETIRED));
    assert_eq!(instead(finding), ["Standard_NC4as_T4_v3"]);
    assert_eq!(finding.old.as_ref().unwrap().gpu.as_ref().unwrap().memory_gb, Some(12.0));
}

#[test]
fn gpus_of_container_instances_lead_to_container_apps_and_sizes() {
    let finding = &judged("az container create --gpu-count 1 --gpu-sku V100 -l westeurope")[0];
    assert_eq!(finding.code, Some(codes::SERVICE_WITHOUT_GPU));
    assert!(finding.message.ends_with("has no GPUs since 2025-07-14"), "{}", finding.message);
    let names = instead(finding);
    assert_eq!(names[0], "Consumption-GPU-NC8as-T4");
    assert!(
        names.contains(&"Standard_NC4as_T4_v3") && names.contains(&"Standard_NC40ads_H100_v5"),
        "{names:?}"
    );
    assert!(finding.notes.iter().any(|note| note.contains("no --gpu-count")), "{:?}", finding.notes);
    // Eight vCPU, 56 GiB and the GPU, by the second, for an hour.
    assert_eq!(finding.replacements[0].price.as_ref().unwrap().region, "westeurope");
    let four = &judged("az container create --gpu-count 4 --gpu-sku V100")[0];
    assert_eq!(instead(four)[0], "NC96-A100", "a replica by the second holds one GPU");
}

#[test]
fn low_priority_nodes_and_libraries_have_their_end() {
    let findings = judged(
        "import azure.batch\nfrom azureml.core import Run\nc = BatchServiceClient(target_low_priority_nodes=5)\n",
    );
    let shown: Vec<_> = findings.iter().map(|one| (one.code.unwrap(), one.severity, &one.status)).collect();
    let on = |day: &str| Status::Ended { on: Some(day.parse().unwrap()) };
    assert_eq!(
        shown,
        [
            (codes::OLD_INTERFACE, Severity::Error, &on("2026-06-30")),
            (codes::OLD_INTERFACE, Severity::Warning, &Status::Outdated),
            (codes::NO_LOW_PRIORITY, Severity::Error, &on("2025-09-30")),
        ]
    );
    assert!(findings[1].notes.iter().any(|note| note.contains("BatchClient")));
}

#[test]
fn a_name_and_its_misspellings_get_the_same_replacements() {
    let replaced = |name: &str| {
        let findings = judged(&format!("az vm create --size {name} -l westeurope"));
        let [finding] = findings.as_slice() else { panic!("{name}") };
        instead(finding).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let facts = cudock_facts::Facts::embedded();
    for size in facts.sizes().size.iter().filter(|size| size.retired_on.is_some()) {
        let expected = replaced(&size.name);
        assert!(!expected.is_empty(), "{}", size.name);
        for spelling in [size.name.to_lowercase(), size.name.to_uppercase()] {
            assert_eq!(replaced(&spelling), expected, "{spelling}");
        }
    }
    for (right, wrong) in [
        ("Standard_NC6s_v3", "Standard_NC6_v3"),
        ("Standard_NC6s_v3", "standard_nc6_V3"),
        ("Standard_NC24rs_v3", "Standard_NC24rsv3"),
        ("Standard_NV12s_v3", "Standard_NV12sv3"),
    ] {
        assert_eq!(replaced(wrong), replaced(right), "{wrong}");
    }
}

#[test]
fn sizes_that_only_the_retirement_notices_name_are_known() {
    for (name, replacement) in [("Standard_NV4ahs_v4", "V710"), ("Standard_NV32ms_v3", "A10")] {
        let finding = &judged(&format!("az vm create --size {name}"))[0];
        assert_eq!(finding.message, format!("{name} was retired on 2026-09-30"));
        assert!(instead(finding).iter().any(|size| size.contains(replacement)), "{:?}", instead(finding));
    }
}

#[test]
fn a_number_of_gpus_that_no_size_has_is_not_fine() {
    let findings =
        judged("resources:\n  cloud: azure\n  accelerators: ['V100:4', 'T4:2', 'T4:4', 'A100-80GB:3']\n");
    let shown: Vec<(&str, Option<&str>)> =
        findings.iter().map(|one| (one.message.as_str(), one.code)).collect();
    assert_eq!(
        shown,
        [
            (
                "no size on sale has 4 x V100; Standard_NC24s_v3 was retired on 2025-09-30",
                Some(codes::SIZE_RETIRED)
            ),
            ("no Azure size has 2 x T4; sizes on sale have 1, 4", Some(codes::NO_SUCH_COUNT)),
            ("4 x T4 is on sale, as Standard_NC64as_T4_v3", None),
            ("no Azure size has 3 x A100-80GB; sizes on sale have 1, 2, 4, 8", Some(codes::NO_SUCH_COUNT)),
        ]
    );
    assert!(findings[0].notes[0].contains("Standard_ND40rs_v2 has 8"), "{:?}", findings[0].notes);
}

#[test]
fn gpus_by_name_are_on_sale_as_long_as_a_size_has_them() {
    let findings =
        judged("resources:\n  cloud: azure\n  accelerators: [K80, 'V100:8', 'A100-80GB:2', tpu-v2-8]\n");
    let shown: Vec<(&str, Option<&str>)> =
        findings.iter().map(|one| (one.message.as_str(), one.code)).collect();
    assert_eq!(
        shown,
        [
            (
                "no size on sale has 1 x K80; Standard_NC6 was retired on 2023-09-06",
                Some(codes::SIZE_RETIRED)
            ),
            ("8 x V100 is on sale, as Standard_ND40rs_v2", None),
            ("2 x A100-80GB is on sale, as Standard_NC48ads_A100_v4", None),
        ]
    );
}

#[test]
fn amd_is_replaced_by_amd_and_another_maker_is_reported() {
    let finding = &judged("az vm create --size Standard_NV4as_v4")[0];
    assert!(instead(finding).iter().any(|name| name.contains("V710")), "{:?}", instead(finding));
    for one in &finding.replacements {
        let is_nvidia = one.gpu.id == "A10";
        let is_reported = one.changes.iter().any(|change| change.code == Some(codes::OTHER_MAKER));
        assert_eq!(is_reported, is_nvidia, "{}: {:?}", one.name, one.changes);
    }
}

#[test]
fn every_retired_size_has_something_to_take_instead_that_is_on_sale() {
    let facts = cudock_facts::Facts::embedded();
    let day = "2026-11-15".parse().unwrap();
    let mut seen = 0;
    for size in &facts.sizes().size {
        let findings = judged(&format!("az vm create --size {}", size.name));
        let [finding] = findings.as_slice() else { panic!("{}", size.name) };
        for replacement in &finding.replacements {
            let row = facts.sizes().find(&replacement.name).one().unwrap();
            assert!(row.is_on_sale(day), "{} -> {}", size.name, row.name);
            assert_ne!(row.name, size.name);
        }
        if finding.is_over() && size.gpu.is_some() {
            seen += 1;
            assert!(!finding.replacements.is_empty(), "{}", size.name);
            let order: Vec<_> = finding
                .replacements
                .iter()
                .map(|one| (one.fit, one.price.as_ref().map(|price| price.usd)))
                .collect();
            assert!(order.is_sorted(), "{}: {order:?}", size.name);
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn every_code_has_its_page() {
    let facts = cudock_facts::Facts::embedded();
    for code in codes::ALL {
        assert!(facts.findings().get(code).is_some(), "{code}");
    }
}

#[test]
fn a_size_is_replaced_by_an_edit_and_keeps_its_spelling() {
    let suggested = |text: &str| -> Vec<(String, String)> {
        let index = cudock_base::LineIndex::new(text);
        let findings = judged(text);
        let finding = findings[0].finding("a.sh", &index).unwrap();
        let edits = finding.suggestions.iter().map(|suggestion| {
            let [edit] = suggestion.edits.as_slice() else { panic!("one edit: {suggestion:?}") };
            let mut edited = text.to_owned();
            edited.replace_range(edit.region.span.bytes(), &edit.text);
            (suggestion.message.clone(), edited)
        });
        edits.collect()
    };
    let with_prefix = suggested("az vm create --size Standard_NC6 -l westeurope");
    let (message, edited) = &with_prefix[0];
    assert_eq!(message, "use Standard_NC4as_T4_v3");
    assert_eq!(edited, "az vm create --size Standard_NC4as_T4_v3 -l westeurope");
    let without_prefix = suggested("# µ\naz vm create --size NC6");
    assert_eq!(without_prefix[0].1, "# µ\naz vm create --size NC4as_T4_v3");
    let container = "location: eastus\nproperties:\n  containers:\n  - properties:\n      resources:\n        \
                     requests: {gpu: {count: 1, sku: K80}}\ntype: Microsoft.ContainerInstance/containerGroups\n";
    assert_eq!(suggested(container), [], "no size can be written there");
}

#[test]
fn what_is_on_sale_is_not_a_finding() {
    let text = "az vm create --size Standard_NC24ads_A100_v4";
    let judged = judged(text);
    assert_eq!(judged.len(), 1);
    assert!(judged[0].finding("a.sh", &cudock_base::LineIndex::new(text)).is_none());
}
