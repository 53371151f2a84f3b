//! Every rule against its own examples.

use cudock_base::Date;
use cudock_facts::Facts;
use cudock_facts::finding::Finding;
use cudock_facts::version::DriverVersion;
use cudock_lint::{LintOptions, LintTarget, RULES, Rule, apply, lint};
use cudock_target::Target;

/// The target that the first line of an example names: `# for: H100, driver 535`, `# for: cpu`.
fn target(facts: &Facts, text: &str) -> Option<LintTarget> {
    let line = text.lines().next()?.strip_prefix("# for: ")?;
    let (name, driver) =
        line.split_once(", driver ").map_or((line, None), |(name, driver)| (name, Some(driver)));
    if name == "cpu" {
        return Some(LintTarget::Cpu);
    }
    let driver: Option<DriverVersion> = driver.map(|driver| driver.parse().unwrap());
    let target = if name.starts_with("Standard_") {
        Target::of_size(facts, name, driver, Date::new(2026, 11, 16).unwrap()).unwrap()
    } else {
        Target::of_gpu(facts, name, driver).unwrap()
    };
    Some(LintTarget::Gpu(Box::new(target)))
}

pub(crate) fn findings(facts: &Facts, text: &str) -> Vec<Finding> {
    let target = target(facts, text);
    let options = LintOptions { target: target.as_ref(), ..LintOptions::new(facts) };
    lint("Dockerfile", text, &options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn of_rule<'a>(findings: &'a [Finding], rule: &'a Rule) -> impl Iterator<Item = &'a Finding> {
    findings.iter().filter(|finding| finding.code == rule.code)
}

fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().flat_map(|group| group.iter())
}

#[test]
fn every_rule_finds_its_bad_example_and_not_the_good_one() {
    let facts = Facts::embedded();
    for rule in rules() {
        let bad = findings(&facts, rule.bad);
        let good = findings(&facts, rule.good);
        assert!(of_rule(&bad, rule).next().is_some(), "{} does not find its bad example", rule.code);
        let wrong: Vec<_> = of_rule(&good, rule).collect();
        assert!(wrong.is_empty(), "{} finds its good example: {wrong:?}", rule.code);
    }
}

#[test]
fn every_fix_removes_its_finding_and_adds_no_other() {
    let facts = Facts::embedded();
    for rule in rules() {
        let before = findings(&facts, rule.bad);
        let own: Vec<Finding> = of_rule(&before, rule).cloned().collect();
        let has_edits = own.iter().all(|finding| !finding.suggestions.is_empty());
        assert_eq!(has_edits, rule.is_fixable, "{}: is_fixable", rule.code);
        if !rule.is_fixable {
            continue;
        }
        let fixed = apply(rule.bad, &own);
        assert_eq!(fixed.applied, own.len(), "{}: edits overlap", rule.code);
        let after = findings(&facts, &fixed.text);
        assert!(of_rule(&after, rule).next().is_none(), "{}: not fixed:\n{}", rule.code, fixed.text);
        let codes = |all: &[Finding]| all.iter().map(|finding| finding.code).collect::<Vec<_>>();
        let known = codes(&before);
        let new: Vec<_> = after.iter().filter(|finding| !known.contains(&finding.code)).collect();
        assert!(new.is_empty(), "{}: the fix adds {new:?}:\n{}", rule.code, fixed.text);
        assert_eq!(apply(&fixed.text, &[]).text, fixed.text);
    }
}

#[test]
fn codes_and_names_are_unique_and_have_a_page() {
    let facts = Facts::embedded();
    let mut seen = std::collections::HashSet::new();
    for rule in rules() {
        assert!(seen.insert(rule.code) && seen.insert(rule.name), "{} is there twice", rule.code);
        assert!(facts.findings().get(rule.code).is_some(), "{} has no page", rule.code);
    }
}
