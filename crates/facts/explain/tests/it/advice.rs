//! No advice names what the tables call failing.

use cudock_explain::{Catalog, fixes};
use cudock_facts::Facts;
use cudock_facts::tables::Branch;
use cudock_facts::version::{CudaVersion, DriverVersion};

/// Words such as cu126 and R580 in a text.
fn numbers_after(text: &str, prefix: &str) -> Vec<u16> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(|word| word.strip_prefix(prefix))
        .filter(|digits| digits.len() == 3)
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

fn newest(branch: &Branch) -> DriverVersion {
    branch.latest_linux.unwrap_or(DriverVersion::of_branch(branch.branch))
}

fn advice(facts: &Facts, number: u32) -> Vec<String> {
    let catalog = Catalog::new(facts.messages()).unwrap();
    let line = format!(
        "RuntimeError: The NVIDIA driver on your system is too old (found version {number}). Please update"
    );
    let report = catalog.explain(&line);
    assert_eq!(report.hits[0].message.id, "torch-driver-too-old");
    fixes(facts, &report.hits[0])
}

#[test]
fn a_driver_of_cuda_11_4_is_advised_a_cu11_build_and_not_the_one_that_failed() {
    let facts = Facts::embedded();
    let advice = advice(&facts, 11040);
    assert_eq!(numbers_after(&advice[0], "cu"), [118, 118], "{advice:?}");
    let text = advice.join("\n");
    assert!(text.contains("525.60.13") && text.contains("580"), "{text}");
    assert!(text.contains("Kepler"), "R470 is the last branch of Kepler: {text}");
}

#[test]
fn every_build_named_for_a_driver_starts_on_it() {
    let facts = Facts::embedded();
    let drivers = facts.drivers();
    for branch in &drivers.branch {
        let number = u32::from(branch.cuda.major()) * 1000 + u32::from(branch.cuda.minor()) * 10;
        let advice = advice(&facts, number);
        let text = advice.join("\n");
        let tags = numbers_after(&text, "cu");
        assert!(!tags.is_empty(), "{number} is advised no build: {text}");
        for tag in tags {
            let cuda = CudaVersion::from_tag(&format!("cu{tag}")).unwrap();
            let floor = drivers.minor_compat(cuda.major()).unwrap().min_linux;
            assert!(cuda <= branch.cuda || newest(branch) >= floor, "{number}: {text}");
        }
        for row in &drivers.minor_compat {
            // A driver that is named as an upgrade is newer than the one that is there.
            if text.contains(&format!("{} or newer", row.min_linux)) {
                assert!(row.min_linux > newest(branch), "{number}: {text}");
            }
        }
    }
}

/// Whatever GPU that driver drives: the build that is named for it has code for it.
#[test]
fn every_gpu_that_a_driver_drives_is_named_a_build_with_code_for_it() {
    let facts = Facts::embedded();
    let drivers = facts.drivers();
    for (branch, card, gpu) in drivers.branch.iter().flat_map(|branch| {
        let gpus = ["K80", "P100", "V100", "T4", "A100-80", "A10", "L4", "H100-SXM", "B200", "RTX-5090"];
        gpus.map(|gpu| (branch, facts.gpus().find(gpu).one().unwrap().capability.unwrap(), gpu))
    }) {
        let row = drivers.architecture_of(card).unwrap();
        let first = row.first_toolkit_of.get(&card).copied().or(row.first_toolkit);
        let driven = row.last_driver_branch.is_none_or(|last| branch.branch <= last)
            && first.is_none_or(|first| first <= branch.cuda);
        if !driven {
            continue;
        }
        let number = u32::from(branch.cuda.major()) * 1000 + u32::from(branch.cuda.minor()) * 10;
        let advice = advice(&facts, number);
        let own = advice.iter().find(|fix| {
            fix.starts_with("For GPUs") && fix.split([' ', ',']).any(|word| word == card.to_string())
        });
        let named = own.unwrap_or(&advice[0]);
        let (version, tag) =
            named.split_once("torch ").unwrap().1.split([',', ':']).next().unwrap().split_once('+').unwrap();
        let version = version.parse().unwrap();
        let mut builds = facts.frameworks().torch_builds(&version).filter(|build| build.tag == tag);
        let known = facts.frameworks().newest_torch(drivers, Some(newest(branch)), &[card]).is_some();
        assert!(
            !known || builds.any(|build| build.has_code_for(&[card])),
            "{gpu} on R{}: {advice:?}",
            branch.branch
        );
    }
}

#[test]
fn a_driver_older_than_the_tables_is_advised_an_upgrade_and_nothing_else() {
    let facts = Facts::embedded();
    let advice = advice(&facts, 10020);
    assert!(numbers_after(&advice.join("\n"), "cu").is_empty(), "{advice:?}");
    assert!(advice[0].contains("450.80.02"), "{advice:?}");
}

/// Fixed sentences of messages and of finding pages: a version they name exists, and a driver and a build in one sentence fit.
#[test]
fn fixed_fixes_name_versions_that_exist_and_fit() {
    let facts = Facts::embedded();
    let (drivers, frameworks) = (facts.drivers(), facts.frameworks());
    let of_messages =
        facts.messages().message.iter().map(|message| (message.id.clone(), message.fix.clone()));
    let of_findings = facts.findings().finding.iter().map(|page| (page.code.clone(), page.fix.clone()));
    let mut checked = 0;
    for (id, fixes) in of_messages.chain(of_findings) {
        for fix in fixes {
            let branches = numbers_after(&fix, "R");
            for branch in &branches {
                checked += 1;
                assert!(
                    drivers.branch.iter().any(|row| row.branch == *branch),
                    "{id}: no branch R{branch}: {fix}"
                );
            }
            for tag in numbers_after(&fix, "cu") {
                checked += 1;
                let tag = format!("cu{tag}");
                assert!(
                    frameworks.torch_build.iter().any(|build| build.tag == tag),
                    "{id}: no torch build {tag}: {fix}"
                );
                let cuda = CudaVersion::from_tag(&tag).unwrap();
                for branch in drivers.branch.iter().filter(|row| branches.contains(&row.branch)) {
                    assert!(
                        drivers.runs_toolkit(newest(branch), cuda),
                        "{id}: {tag} does not start on R{}: {fix}",
                        branch.branch
                    );
                }
            }
            for cuda in fix.split("CUDA ").skip(1).filter_map(|rest| {
                let word: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
                word.trim_end_matches('.').parse::<CudaVersion>().ok()
            }) {
                checked += 1;
                let known = facts.toolkits().toolkit(cuda).is_some() || cuda < CudaVersion::new(11, 0);
                assert!(known, "{id}: no toolkit {cuda}: {fix}");
            }
        }
    }
    assert!(checked > 10, "{checked} versions were checked");
}
